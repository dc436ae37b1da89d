#include "ops/token_scores.h"

#include "ops/choice_run.h"

namespace vkformer::testing {
namespace {

// Histories of rising lengths whose tokens come again and again.
std::vector<std::vector<int64_t>> histories(size_t rows, int64_t vocab, size_t longest) {
  std::mt19937 engine(static_cast<uint32_t>(rows + longest));
  std::vector<std::vector<int64_t>> list(rows);
  for (size_t row = 0; row < rows; ++row) {
    const size_t length = 2 + (longest - 2) * (row + 1) / rows;
    for (size_t t = 0; t < length; ++t) {
      list[row].push_back(
          static_cast<int64_t>(engine() % static_cast<uint32_t>(std::min<int64_t>(vocab, 5))));
      // In each part of a long row.
      if (vocab > 4096) list[row].back() = list[row].back() * 1639 % vocab;
    }
  }
  return list;
}

reference::PenaltySettings penalties(const ChoiceRow& row, const std::vector<TokenRule>& rules) {
  reference::PenaltySettings s{row.repetition, row.presence, row.frequency, row.no_repeat, {}};
  for (const TokenRule& rule : rules) s.rules.push_back({rule.tokens, rule.bias});
  return s;
}

// Where a row's prompt ends in its own history; rows end together.
size_t own_prompt(const ChoiceCase& c, size_t row) {
  size_t longest = 0;
  for (const auto& h : c.histories) longest = std::max(longest, h.size());
  const size_t start = longest - c.histories[row].size();
  return c.prompt > start ? c.prompt - start : 0;
}

void check(const TierDevice& device, const ChoiceCase& c) {
  CAPTURE(device.tier);
  const ChoiceFound found = ChoiceRun(c).run(device);
  const int64_t vocab = c.logits.dim(1);
  for (size_t row = 0; row < c.histories.size(); ++row) {
    CAPTURE(row);
    const auto begin = c.logits.data.begin() + static_cast<ptrdiff_t>(row) * vocab;
    const std::vector<double> logits(begin, begin + vocab);
    const ChoiceRow& settings = c.rows.size() == 1 ? c.rows[0] : c.rows[row];
    const std::vector<double> expected = reference::penalised_scores(
        logits, c.histories[row], own_prompt(c, row), penalties(settings, c.rules));
    for (int64_t v = 0; v < vocab; ++v) {
      const double got = found.scores[static_cast<int64_t>(row) * vocab + v];
      const double want = expected[static_cast<size_t>(v)];
      CHECK((got == want || std::abs(got - want) <= 1e-6 + 1e-6 * std::abs(want)));
    }
  }
}

bool is_impossible(double score) {
  return score == -kInfinity;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("token_scores: penalties on what came before, over vocabularies and histories") {
    for (const TierDevice& device : tier_devices()) {
      for (int64_t vocab : {2, 31, 33, 129, 1009, 8195}) {
        for (size_t longest : {2u, 7u, 65u, 300u}) {
          ChoiceCase c;
          c.logits = random_array({4, vocab}, static_cast<uint32_t>(vocab), 3);
          c.histories = histories(4, vocab, longest);
          c.prompt = static_cast<uint32_t>(longest) / 2 + 1;
          c.rows = {plain_choice()};
          c.rows[0].repetition = 1.3f;
          c.rows[0].presence = 0.75f;
          c.rows[0].frequency = -0.125f;
          check(device, c);
        }
      }
    }
  }

  TEST_CASE("token_scores: no n tokens come twice, each row by its own settings") {
    for (const TierDevice& device : tier_devices()) {
      ChoiceCase c;
      c.logits = random_array({6, 40}, 5, 2);
      c.histories = histories(6, 4, 50);
      c.histories[5] = {3, 3, 3, 3};  // a row that overlaps with itself
      for (uint32_t n : {0u, 1u, 2u, 3u, 5u, 2u}) {
        c.rows.push_back(plain_choice());
        c.rows.back().no_repeat = n;
      }
      check(device, c);
      for (ChoiceRow& row : c.rows) row.no_repeat = 60;  // longer than any history
      check(device, c);
    }
  }

  TEST_CASE("token_scores: rules hold behind the tokens they name, and add up") {
    for (const TierDevice& device : tier_devices()) {
      ChoiceCase c;
      c.logits = random_array({3, 70}, 6, 2);
      c.histories = {{1, 2, 3}, {9, 2, 3}, {3}};
      c.rows = {plain_choice()};
      c.rules = {{{69}, 1.5f}, {{2, 3, 4}, -2.0f},   {{3, 4}, 0.25f},        {{1, 2, 3, 4}, 8.0f},
                 {{4}, -0.5f}, {{3, 0}, -HUGE_VALF}, {{5, 1, 2, 3, 6}, 1.0f}};
      check(device, c);
    }
  }

  TEST_CASE("token_scores: suppressed, premature, forced and forbidden tokens") {
    for (const TierDevice& device : tier_devices()) {
      ChoiceCase c;
      c.logits = random_array({2, 45}, 7);
      c.histories = {{1, 2}, {2}};
      c.prompt = 2;
      c.rows = {plain_choice(), plain_choice()};
      c.rows[1].masked = 1;
      c.allowed = {{}, {3, 31, 32, 44}};
      c.eos = {4, 32};
      c.min_new_tokens = 1;
      c.suppress = {1u << 7, 0u, 1u << 31, 1u};
      ChoiceFound found = ChoiceRun(c).run(device);
      for (int64_t v = 0; v < 45; ++v) {
        CAPTURE(v);
        const bool never = v == 7 || v == 31 || v == 32 || v == 4;
        CHECK(is_impossible(found.scores[v]) == never);
        CHECK(is_impossible(found.scores[45 + v]) == (v != 3 && v != 44));
      }
      c.forced_first = 9;
      found = ChoiceRun(c).run(device);
      for (int64_t v = 0; v < 45; ++v) {
        CHECK(is_impossible(found.scores[v]) == (v != 9));
        if (v == 9) CHECK(found.scores[v] == 0);
      }
      CHECK(found.tokens == std::vector<uint32_t>{9, 9});
    }
  }

  TEST_CASE("token_scores from log-probabilities of rows of several parts") {
    for (const TierDevice& device : tier_devices()) {
      ChoiceCase c;
      c.logits = random_array({2, 10000}, 8, 4, 100);
      c.rows = {plain_choice()};
      c.from = ScoresFrom::kLogProbabilities;
      c.logits[10000] = kNan;
      const ChoiceFound found = ChoiceRun(c).run(device);
      double sum = 0;
      for (int64_t v = 0; v < 10000; ++v) sum += std::exp(found.scores[v]);
      CHECK(sum == doctest::Approx(1.0).epsilon(2e-5));
      CHECK(std::isnan(found.scores[19999]));
    }
  }

  TEST_CASE("token_scores from log-probabilities, NaN and idle slots") {
    for (const TierDevice& device : tier_devices()) {
      ChoiceCase c;
      c.logits = random_array({3, 33}, 8, 4, 100);
      c.rows = {plain_choice()};
      c.from = ScoresFrom::kLogProbabilities;
      c.live = 2;
      c.logits[33 + 5] = kNan;
      const ChoiceFound found = ChoiceRun(c).run(device);
      double sum = 0;
      for (int64_t v = 0; v < 33; ++v) sum += std::exp(found.scores[v]);
      CHECK(sum == doctest::Approx(1.0).epsilon(2e-5));
      CHECK(std::isnan(found.scores[33 + 5]));
      CHECK(std::isnan(found.values[1]));
      CHECK(found.words[2] == 0x7fc0dead);
      CHECK(found.tokens[2] == 0x7fc0dead);
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("token_scores refuses logits that do not fit") {
    const SearchParams p{.batch = 3, .beams = 2, .capacity = 8, .vocab = 20, .candidates = 1};
    CHECK(check_token_scores({"logits", DType::kF32, {6, 20}}, p).ok());
    check_error(check_token_scores({"logits", DType::kF32, {6, 21}}, p), "token_scores", "(6, 21)");
    check_error(check_token_scores({"logits", DType::kU32, {6, 20}}, p), "token_scores", "F32");
  }

  TEST_CASE("rule lists are sorted by the token they are about") {
    const std::vector<TokenRule> rules = {{{7, 9}, 1.0f}, {{3}, 2.0f}, {{5, 6, 9}, 4.0f}};
    const std::vector<uint32_t> list = rule_list(rules);
    CHECK(list == std::vector<uint32_t>{2, 3, 7, 1, 9, 9, 2, 0x40000000u, 0, 0x3f800000u, 1, 7,
                                        0x40800000u, 2, 5, 6});
  }
}

}  // namespace vkformer::testing
