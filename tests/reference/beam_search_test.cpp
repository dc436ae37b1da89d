// reference/beam_search: greedy and beam search over small hand-made models.
#include "reference/beam_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "reference/log_softmax.h"

using namespace vkformer;
using reference::beam_search;
using reference::greedy_search;
using reference::Hypothesis;
using reference::NextLogits;
using reference::SearchOptions;
using Ids = std::vector<int64_t>;

namespace {

// A model that looks at the last token only: row `last` of a table of probabilities.
NextLogits markov(const std::vector<std::vector<double>>& table) {
  return [table](const Ids& prefix) -> Result<std::vector<double>> {
    std::vector<double> logits;
    for (double p : table[static_cast<size_t>(prefix.back())]) logits.push_back(std::log(p));
    return logits;
  };
}

// Greedy takes 1 (0.5) and then at best 0.4; the best pair is 2 (0.4), 3 (0.9).
// Tokens: 0 start, 1, 2, 3.
const std::vector<std::vector<double>> kTrap = {
    {0.05, 0.5, 0.4, 0.05}, {0.3, 0.3, 0.0, 0.4}, {0.05, 0.05, 0.0, 0.9}, {0.25, 0.25, 0.25, 0.25}};

// Unremarkable but fixed logits for any prefix.
Result<std::vector<double>> wavy_logits(const Ids& prefix) {
  double phase = 0.0;
  for (int64_t id : prefix) phase = 1.9 * phase + static_cast<double>(id) + 0.37;
  std::vector<double> logits;
  for (int token = 0; token < 5; ++token) logits.push_back(3.0 * std::sin(phase + 2.1 * token));
  return logits;
}

// The best log-probability of all sequences of `steps` tokens, by trying them all.
double best_of_all(const Ids& prefix, int steps) {
  if (steps == 0) return 0.0;
  std::vector<double> logs = std::move(wavy_logits(prefix)).value();
  reference::log_softmax_row(logs);
  double best = -INFINITY;
  for (size_t token = 0; token < logs.size(); ++token) {
    Ids longer = prefix;
    longer.push_back(static_cast<int64_t>(token));
    best = std::max(best, logs[token] + best_of_all(longer, steps - 1));
  }
  return best;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reference beam_search: greedy takes the best token, beams the best sequence") {
    SearchOptions options;
    options.max_new_tokens = 2;
    options.num_beams = 2;
    const Result<Ids> greedy = greedy_search({0}, markov(kTrap), options);
    REQUIRE(greedy.ok());
    CHECK(*greedy == Ids{0, 1, 3});
    const Result<std::vector<Hypothesis>> beams = beam_search({0}, markov(kTrap), options);
    REQUIRE(beams.ok());
    REQUIRE(beams->size() == 2);
    CHECK((*beams)[0].ids == Ids{0, 2, 3});
    CHECK((*beams)[0].score == doctest::Approx(std::log(0.4 * 0.9) / 2.0));
    CHECK((*beams)[1].ids == Ids{0, 1, 3});
    CHECK((*beams)[1].score == doctest::Approx(std::log(0.5 * 0.4) / 2.0));
  }

  TEST_CASE("reference beam_search: one beam without an end token is greedy search") {
    SearchOptions options;
    options.max_new_tokens = 9;
    options.num_beams = 1;
    const Result<Ids> greedy = greedy_search({3, 1}, wavy_logits, options);
    const Result<std::vector<Hypothesis>> beam = beam_search({3, 1}, wavy_logits, options);
    REQUIRE(greedy.ok());
    REQUIRE(beam.ok());
    CHECK(greedy->size() == 11);
    CHECK(beam->front().ids == *greedy);
  }

  TEST_CASE("reference beam_search: as many beams as sequences find the optimum") {
    SearchOptions options;
    options.max_new_tokens = 4;
    options.num_beams = 125;
    options.length_penalty = 0.0;
    const Result<std::vector<Hypothesis>> beams = beam_search({2}, wavy_logits, options);
    REQUIRE(beams.ok());
    CHECK(beams->front().score == doctest::Approx(best_of_all({2}, 4)));
    for (size_t i = 1; i < beams->size(); ++i) CHECK((*beams)[i - 1].score >= (*beams)[i].score);
  }

  TEST_CASE("reference beam_search: an end token finishes a sequence, the penalty weighs length") {
    // Ending at once has probability 0.4; going on gives 0.6 * 0.6 = 0.36, then certainty.
    const std::vector<std::vector<double>> table = {
        {0.0, 0.6, 0.4}, {0.0, 0.4, 0.6}, {0.0, 0.0, 1.0}};
    SearchOptions options;
    options.max_new_tokens = 2;
    options.num_beams = 2;
    options.eos_token_ids = {2};
    options.length_penalty = 0.0;
    const Result<std::vector<Hypothesis>> by_sum = beam_search({0}, markov(table), options);
    REQUIRE(by_sum.ok());
    CHECK(by_sum->front().ids == Ids{0, 2});
    CHECK(by_sum->front().score == doctest::Approx(std::log(0.4)));
    options.length_penalty = 1.0;
    const Result<std::vector<Hypothesis>> by_mean = beam_search({0}, markov(table), options);
    REQUIRE(by_mean.ok());
    CHECK(by_mean->front().ids == Ids{0, 1, 2});
    CHECK(by_mean->front().score == doctest::Approx(std::log(0.36) / 2.0));
    const Result<Ids> greedy = greedy_search({0}, markov(table), options);
    REQUIRE(greedy.ok());
    CHECK(*greedy == Ids{0, 1, 2});
  }

  TEST_CASE("reference beam_search: early stopping ends at n finished sequences") {
    // Token 2 ends; every step offers it, so two sequences are finished after two steps.
    const std::vector<std::vector<double>> table = {
        {0.5, 0.1, 0.4}, {0.5, 0.1, 0.4}, {0.5, 0.1, 0.4}};
    SearchOptions options;
    options.max_new_tokens = 50;
    options.num_beams = 2;
    options.eos_token_ids = {2};
    options.length_penalty = 8.0;  // favors long sequences, so only the flag can stop
    options.early_stopping = reference::EarlyStopping::kYes;
    int calls = 0;
    const NextLogits model = markov(table);
    const NextLogits counted = [&](const Ids& prefix) {
      ++calls;
      return model(prefix);
    };
    const Result<std::vector<Hypothesis>> y = beam_search({0}, counted, options);
    REQUIRE(y.ok());
    CHECK(y->size() == 2);
    CHECK(calls == 4);
    CHECK(y->front().ids == Ids{0, 0, 2});
  }

  TEST_CASE("reference beam_search: candidates ranked after the beams finish nothing") {
    // With one beam and K = 2, the end token ranks second: neither kept nor finished.
    const std::vector<std::vector<double>> table = {{0.6, 0.4}, {0.6, 0.4}};
    SearchOptions options;
    options.max_new_tokens = 3;
    options.num_beams = 1;
    options.eos_token_ids = {1};
    const Result<std::vector<Hypothesis>> y = beam_search({0}, markov(table), options);
    REQUIRE(y.ok());
    REQUIRE(y->size() == 1);
    CHECK(y->front().ids == Ids{0, 0, 0, 0});
  }

  TEST_CASE("reference beam_search: score processing in its order") {
    SearchOptions options;
    options.max_new_tokens = 3;
    options.bad_words_ids = {0};
    options.suppress_tokens = {1};
    options.begin_suppress_tokens = {2};
    const auto processed = [&](int64_t new_tokens) {
      std::vector<double> scores = {5, 4, 3, 2};
      reference::process_scores(scores, new_tokens, options);
      return scores;
    };
    CHECK(processed(0) == std::vector<double>{-INFINITY, -INFINITY, -INFINITY, 2});
    CHECK(processed(1) == std::vector<double>{-INFINITY, -INFINITY, 3, 2});
    options.forced_bos_token_id = 0;
    options.forced_eos_token_id = 1;
    CHECK(processed(0) == std::vector<double>{0, -INFINITY, -INFINITY, -INFINITY});
    CHECK(processed(1) == std::vector<double>{-INFINITY, -INFINITY, 3, 2});
    CHECK(processed(2) == std::vector<double>{-INFINITY, 0, -INFINITY, -INFINITY});
    options.forced_eos_token_id = 99;
    options.bad_words_ids = {-1, 99};
    CHECK(processed(2) == std::vector<double>(4, -INFINITY));
  }

  TEST_CASE("reference beam_search: forced tokens open and close every sequence") {
    SearchOptions options;
    options.max_new_tokens = 4;
    options.num_beams = 3;
    options.eos_token_ids = {4};
    options.suppress_tokens = {4};
    options.forced_bos_token_id = 2;
    options.forced_eos_token_id = 4;
    const Result<std::vector<Hypothesis>> beams = beam_search({0}, wavy_logits, options);
    REQUIRE(beams.ok());
    const Hypothesis& best = beams->front();
    REQUIRE(best.ids.size() == 5);
    CHECK(best.ids[1] == 2);
    CHECK(best.ids[4] == 4);
    CHECK(best.score > -100.0);
    const Result<Ids> greedy = greedy_search({0}, wavy_logits, options);
    REQUIRE(greedy.ok());
    CHECK((*greedy)[1] == 2);
    CHECK(greedy->back() == 4);
  }

  TEST_CASE("reference beam_search: bad options and bad models are errors") {
    SearchOptions options;
    options.max_new_tokens = 0;
    CHECK_FALSE(beam_search({0}, wavy_logits, options).ok());
    CHECK_FALSE(greedy_search({0}, wavy_logits, options).ok());
    options = {};
    options.num_beams = 0;
    CHECK_FALSE(beam_search({0}, wavy_logits, options).ok());
    options.num_beams = int64_t{1} << 60;
    CHECK_FALSE(beam_search({0}, wavy_logits, options).ok());
    options = {};
    options.length_penalty = std::nan("");
    CHECK_FALSE(beam_search({0}, wavy_logits, options).ok());
    options = {};
    for (double bad : {NAN, INFINITY}) {
      const NextLogits model = [bad](const Ids&) -> Result<std::vector<double>> {
        return std::vector<double>{0.0, bad};
      };
      CHECK_FALSE(beam_search({0}, model, options).ok());
      CHECK_FALSE(greedy_search({0}, model, options).ok());
    }
    const NextLogits empty = [](const Ids&) -> Result<std::vector<double>> {
      return std::vector<double>{};
    };
    CHECK_FALSE(beam_search({0}, empty, options).ok());
    const NextLogits failing = [](const Ids&) -> Result<std::vector<double>> {
      return Error{ErrorCode::kDeviceLost, "gone"};
    };
    const Result<Ids> lost = greedy_search({0}, failing, options);
    REQUIRE_FALSE(lost.ok());
    CHECK(lost.error().code == ErrorCode::kDeviceLost);
    int calls = 0;
    const NextLogits changing = [&calls](const Ids&) -> Result<std::vector<double>> {
      return std::vector<double>(calls++ == 0 ? 3 : 2, 0.0);
    };
    CHECK_FALSE(beam_search({0}, changing, options).ok());
  }
}
