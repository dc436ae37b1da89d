#include "ops/token_sample.h"

#include <numeric>

#include "ops/choice_run.h"

namespace vkformer::testing {
namespace {

constexpr uint32_t kSampleRows = 2000;

// How often each token came in `runs` samples from one row of logits.
std::vector<uint64_t> draw(const TierDevice& device, const Array& logits, ChoiceRow settings,
                           uint32_t runs) {
  const int64_t vocab = logits.dim(-1);
  ChoiceCase c;
  c.logits = reference::filled({kSampleRows, vocab}, 0.0);
  for (int64_t i = 0; i < c.logits.size(); ++i) c.logits[i] = logits[i % vocab];
  std::vector<uint64_t> counts(static_cast<size_t>(vocab));
  for (uint32_t run = 0; run < runs; ++run) {
    settings.seed_low = run * 77 + 1;
    settings.seed_high = run;
    c.rows = {settings};
    for (uint32_t token : ChoiceRun(c).run(device).tokens) {
      REQUIRE(token < vocab);
      ++counts[token];
    }
  }
  return counts;
}

std::vector<double> expected_token_sample(const Array& logits, const ChoiceRow& c) {
  const reference::DrawSettings s{c.temperature, c.top_k, c.top_p, c.min_p, c.typical_p};
  return reference::draw_probabilities(logits.data, s);
}

// Pearson's statistic against its value at one in a million (Wilson and Hilferty 1931). Cells that
// expect fewer than five draws are taken together.
void check_distribution(const std::vector<uint64_t>& counts, const std::vector<double>& p) {
  const auto total =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
  double statistic = 0;
  double rest_expected = 0;
  double rest_found = 0;
  int cells = 0;
  for (size_t t = 0; t < p.size(); ++t) {
    const double wanted = p[t] * total;
    const auto found = static_cast<double>(counts[t]);
    if (p[t] == 0) {
      CHECK(counts[t] == 0);
    } else if (wanted < 5) {
      rest_expected += wanted;
      rest_found += found;
    } else {
      statistic += (found - wanted) * (found - wanted) / wanted;
      ++cells;
    }
  }
  if (rest_expected >= 5) {
    statistic += (rest_found - rest_expected) * (rest_found - rest_expected) / rest_expected;
    ++cells;
  }
  if (cells < 2) return;
  const double freedom = cells - 1;
  const double a = 2.0 / (9.0 * freedom);
  const double limit = freedom * std::pow(1 - a + 4.753 * std::sqrt(a), 3);
  CAPTURE(freedom);
  CHECK(statistic < limit);
}

ChoiceRow with(void (*change)(ChoiceRow&)) {
  ChoiceRow row = plain_choice();
  change(row);
  return row;
}

// Tokens that a row of logits can give, from many draws.
std::vector<bool> reachable(const TierDevice& device, const Array& logits, const ChoiceRow& row) {
  const std::vector<uint64_t> counts = draw(device, logits, row, 2);
  std::vector<bool> seen;
  for (uint64_t count : counts) seen.push_back(count > 0);
  return seen;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("token_sample: 25,000 draws have the exact probabilities") {
    const TierDevice& device = tier_devices().front();
    const Array logits = random_array({1, 40}, 11, 2);
    const ChoiceRow settings[] = {
        plain_choice(),
        with([](ChoiceRow& r) { r.temperature = 0.5f; }),
        with([](ChoiceRow& r) {
          r.temperature = 3;
          r.top_k = 7;
        }),
        with([](ChoiceRow& r) { r.top_p = 0.8f; }),
        with([](ChoiceRow& r) { r.min_p = 0.1f; }),
        with([](ChoiceRow& r) { r.typical_p = 0.6f; }),
        with([](ChoiceRow& r) {
          r.temperature = 1.5f, r.top_k = 20, r.top_p = 0.9f, r.min_p = 0.05f, r.typical_p = 0.9f;
        }),
    };
    for (const ChoiceRow& row : settings) {
      CAPTURE(row.temperature);
      check_distribution(draw(device, logits, row, 25000 / kSampleRows),
                         expected_token_sample(logits, row));
    }
  }

  TEST_CASE("token_sample: what settings leave over, for vocabularies of any size") {
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      for (int64_t vocab : {1, 2, 3, 31, 64, 127, 257}) {
        CAPTURE(vocab);
        const Array logits = random_array({1, vocab}, static_cast<uint32_t>(vocab), 1.5);
        for (const ChoiceRow& row : {plain_choice(), with([](ChoiceRow& r) { r.top_k = 3; }),
                                     with([](ChoiceRow& r) { r.top_p = 0.5f; }),
                                     with([](ChoiceRow& r) { r.typical_p = 0.5f; })}) {
          check_distribution(draw(device, logits, row, 1), expected_token_sample(logits, row));
        }
      }
    }
  }

  TEST_CASE("token_sample: ties, a temperature of 0, and shares that one token has alone") {
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      const Array flat = reference::filled({1, 10}, -3.25);
      const auto tokens = [&](const ChoiceRow& row) { return reachable(device, flat, row); };
      const auto first = [](size_t n) {
        std::vector<bool> list(10, false);
        std::fill_n(list.begin(), n, true);
        return list;
      };
      CHECK(tokens(with([](ChoiceRow& r) { r.temperature = 0; })) == first(1));
      CHECK(tokens(with([](ChoiceRow& r) { r.top_k = 3; })) == first(10));
      CHECK(tokens(with([](ChoiceRow& r) { r.top_p = 0.45f; })) == first(5));
      CHECK(tokens(with([](ChoiceRow& r) { r.top_p = 1e-6f; })) == first(1));
      CHECK(tokens(with([](ChoiceRow& r) { r.min_p = 1; })) == first(10));
      CHECK(tokens(with([](ChoiceRow& r) { r.top_p = 0.35f, r.typical_p = 0.1f; })) == first(4));
      Array sharp = flat;
      sharp[6] = 80;
      for (float temperature : {0.0f, 1e-3f, 1.0f}) {
        ChoiceRow row = plain_choice();
        row.temperature = temperature;
        const std::vector<bool> seen = reachable(device, sharp, row);
        CHECK(std::count(seen.begin(), seen.end(), true) == 1);
        CHECK(seen[6]);
      }
    }
  }

  TEST_CASE("token_sample: a seed and a stream give the same tokens wherever a row stands") {
    for (const TierDevice& device : tier_devices()) {
      ChoiceCase c;
      c.logits = random_array({50, 300}, 3, 2);
      for (uint32_t row = 0; row < 50; ++row) {
        c.rows.push_back(plain_choice());
        c.rows.back().seed_low = 7;
        c.rows.back().stream = row;
      }
      const ChoiceFound all = ChoiceRun(c).run(device);
      const ChoiceFound again = ChoiceRun(c).run(device);
      CHECK(all.tokens == again.tokens);
      CHECK(all.words == again.words);
      ChoiceCase one;
      one.rows.assign(2, c.rows[13]);
      one.logits = reference::filled({2, 300}, 0);
      for (int64_t v = 0; v < 600; ++v) one.logits[v] = c.logits[13 * 300 + v % 300];
      const ChoiceFound alone = ChoiceRun(one).run(device);
      CHECK(alone.tokens == std::vector<uint32_t>(2, all.tokens[13]));
      CHECK(alone.words == std::vector<uint32_t>(2, all.words[13]));
      for (ChoiceRow& row : c.rows) row.seed_high = 1;
      CHECK(ChoiceRun(c).run(device).tokens != all.tokens);
    }
  }

  TEST_CASE("token_sample: rows that say which token is next stand at places of their own") {
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      ChoiceCase together;
      together.logits = random_array({4, 37}, 17, 2);
      together.histories = {{3, 9, 9, 4, 1, 9}, {5, 5}, {8, 2, 2, 2}, {30}};
      together.prompt = 1000;  // of no meaning to them
      together.rows.assign(4, plain_choice());
      const uint32_t generated[] = {3, 0, 2, 1};
      for (uint32_t row = 0; row < 4; ++row) {
        ChoiceRow& settings = together.rows[row];
        settings.seed_low = 5 + row;
        settings.repetition = 1.5f;
        settings.presence = 0.5f;
        settings.frequency = 0.7f;
        settings.no_repeat = 2;
        settings.next = generated[row] + 1;
      }
      const ChoiceFound found = ChoiceRun(together).run(device);
      for (uint32_t row = 0; row < 4; ++row) {
        CAPTURE(row);
        ChoiceCase alone;
        const auto begin = together.logits.data.begin() + row * 37;
        alone.logits = Array{{1, 37}, {begin, begin + 37}};
        alone.histories = {together.histories[row]};
        alone.prompt = static_cast<uint32_t>(alone.histories[0].size()) - generated[row];
        alone.rows = {together.rows[row]};
        alone.rows[0].next = 0;
        const ChoiceFound expected_found = ChoiceRun(alone).run(device);
        CHECK(found.tokens[row] == expected_found.tokens[0]);
        CHECK(found.words[row] == expected_found.words[0]);
        for (int64_t v = 0; v < 37; ++v)
          CHECK(found.scores[row * 37 + v] == expected_found.scores[v]);
      }
    }
  }

  TEST_CASE("token_sample gives the log-probability by the logits; a NaN, and no token at all") {
    for (const TierDevice& device : tier_devices()) {
      ChoiceCase c;
      c.logits = random_array({4, 33}, 9, 3);
      for (int64_t v = 0; v < 33; ++v) c.logits[66 + v] = v == 4 ? kNan : c.logits[66 + v];
      c.rows.assign(4, plain_choice());
      c.rows[0].temperature = 0.7f;
      c.rows[3].masked = 1;
      c.allowed = {{}, {}, {}, {}};
      const ChoiceFound found = ChoiceRun(c).run(device);
      for (int64_t row = 0; row < 2; ++row) {
        const std::vector<double> p = expected_token_sample(
            Array{{33}, {c.logits.data.begin() + row * 33, c.logits.data.begin() + row * 33 + 33}},
            plain_choice());
        const auto at = static_cast<size_t>(row);
        CHECK(found.values[at] == doctest::Approx(std::log(p[found.tokens[at]])).epsilon(1e-5));
      }
      CHECK(std::isnan(found.values[2]));
      CHECK(found.values[3] == -kInfinity);
      CHECK(found.tokens[3] == VKF_NO_TOKEN);
    }
  }

  TEST_CASE("token_sample leaves the same tokens, however many parts a row has") {
    const ChoiceRow settings[] = {
        plain_choice(),
        with([](ChoiceRow& r) { r.temperature = 0; }),
        with([](ChoiceRow& r) { r.temperature = 0.5f, r.top_k = 7; }),
        with([](ChoiceRow& r) { r.top_k = 3000, r.min_p = 0.01f; }),
        with([](ChoiceRow& r) { r.top_p = 0.5f; }),
        with([](ChoiceRow& r) { r.temperature = 1.5f, r.typical_p = 0.4f; }),
        with([](ChoiceRow& r) {
          r.top_k = 900, r.top_p = 0.9f, r.min_p = 0.001f, r.typical_p = 0.8f;
        }),
    };
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      for (int64_t vocab : {4096, 4097, 8193}) {
        CAPTURE(vocab);
        ChoiceCase c;
        c.output = SampleOutput::kScores;
        c.logits = random_array({std::ssize(settings), vocab}, static_cast<uint32_t>(vocab), 3);
        c.rows.assign(std::begin(settings), std::end(settings));
        const ChoiceFound found = ChoiceRun(c).run(device);
        for (int64_t row = 0; row < std::ssize(settings); ++row) {
          CAPTURE(row);
          const auto begin = c.logits.data.begin() + row * vocab;
          const ChoiceRow& asked = c.rows[static_cast<size_t>(row)];
          const std::vector<double> p =
              expected_token_sample(Array{{vocab}, {begin, begin + vocab}}, asked);
          // At the edge of a mass one token more or less is left, by rounding.
          int64_t kept = 0;
          int64_t different = 0;
          int64_t inexact = 0;
          for (int64_t v = 0; v < vocab; ++v) {
            const double x = found.left[row * vocab + v];
            const bool left = x != -kInfinity;
            kept += left ? 1 : 0;
            different += left != (p[static_cast<size_t>(v)] > 0) ? 1 : 0;
            const double t = asked.temperature > 0 ? asked.temperature : 1;
            if (left && std::abs(x - begin[v] / t) > 1e-6 * (1 + std::abs(x))) ++inexact;
          }
          CHECK(kept > 0);
          CHECK(inexact == 0);
          const bool exact = asked.top_p == 1 && asked.typical_p == 1 && asked.min_p == 0;
          CHECK(different <= (exact ? 0 : 1 + kept / 1000));
        }
      }
    }
  }

  TEST_CASE("token_sample counts ties over the parts of a row") {
    constexpr int64_t kVocab = 3 * 4096 + 100;
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      ChoiceCase c;
      c.output = SampleOutput::kScores;
      c.logits = reference::filled({3, kVocab}, -3.25);
      c.rows.assign(3, plain_choice());
      c.rows[0].top_p = 0.5f;
      c.rows[1].top_p = 1e-9f;
      c.rows[2].temperature = 0;
      const ChoiceFound found = ChoiceRun(c).run(device);
      // How many of the first tokens are left, and no other; -1 where others are.
      const auto first_left = [&](int64_t row) {
        int64_t count = 0;
        for (int64_t v = 0; v < kVocab; ++v) {
          if (found.left[row * kVocab + v] == -kInfinity) continue;
          if (v != count++) return int64_t{-1};
        }
        return count;
      };
      CHECK(std::abs(first_left(0) - kVocab / 2) <= 1);  // the mass is rounded
      CHECK(first_left(1) == 1);
      CHECK(first_left(2) == 1);
    }
  }

  TEST_CASE("token_sample draws from rows of many parts by the exact probabilities") {
    // Mass on a few tokens of several parts, among as many others as the largest vocabularies have.
    constexpr int64_t kVocab = 262144;
    constexpr uint32_t kSampled = 8;
    const TierDevice& device = tier_devices().front();
    ChoiceCase c;
    c.logits = reference::filled({kSampled, kVocab}, -20);
    const int64_t likely[] = {0, 4095, 4096, 70000, 151936, 262143};
    for (int64_t row = 0; row < kSampled; ++row) {
      for (int64_t i = 0; i < std::ssize(likely); ++i) {
        c.logits[row * kVocab + likely[i]] = 0.4 * static_cast<double>(i);
      }
    }
    ChoiceRow settings = plain_choice();
    const auto begin = c.logits.data.begin();
    const std::vector<double> p =
        expected_token_sample(Array{{kVocab}, {begin, begin + kVocab}}, settings);
    std::vector<uint64_t> counts(kVocab);
    for (uint32_t run = 0; run < 15; ++run) {
      settings.seed_low = run + 1;
      c.rows = {settings};
      const ChoiceFound found = ChoiceRun(c).run(device);
      for (size_t row = 0; row < kSampled; ++row) {
        const uint32_t token = found.tokens[row];
        REQUIRE(token < kVocab);
        ++counts[token];
        CHECK(found.values[row] == doctest::Approx(std::log(p[token])).epsilon(1e-5));
      }
    }
    check_distribution(counts, p);
  }

  TEST_CASE("token_sample in parts: a NaN, no token at all, and a forbidden part") {
    constexpr int64_t kVocab = 9000;
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      ChoiceCase c;
      c.logits = random_array({4, kVocab}, 9, 3);
      c.logits[kVocab + 8999] = kNan;
      c.rows.assign(4, plain_choice());
      c.rows[2].masked = c.rows[3].masked = 1;
      c.allowed = {{}, {}, {}, {8500, 8501}};
      c.rows[3].top_p = 0.9f;
      const ChoiceFound found = ChoiceRun(c).run(device);
      CHECK(found.tokens[0] < kVocab);
      CHECK(std::isnan(found.values[1]));
      CHECK(found.values[2] == -kInfinity);
      CHECK(found.tokens[2] == VKF_NO_TOKEN);
      CHECK((found.tokens[3] == 8500 || found.tokens[3] == 8501));
    }
  }

  TEST_CASE("token_sample over a real vocabulary") {
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      ChoiceCase c;
      c.logits = random_array({3, 50257}, 21, 1);
      c.rows.assign(3, plain_choice());
      c.rows[0].top_p = 0.3f;
      c.rows[1].top_k = 40;
      c.rows[2].typical_p = 0.2f;
      const ChoiceFound found = ChoiceRun(c).run(device);
      for (int64_t row = 0; row < 3; ++row) {
        const auto begin = c.logits.data.begin() + row * 50257;
        const std::vector<double> p = expected_token_sample(Array{{50257}, {begin, begin + 50257}},
                                                            c.rows[static_cast<size_t>(row)]);
        REQUIRE(found.tokens[static_cast<size_t>(row)] < 50257);
        CHECK(p[found.tokens[static_cast<size_t>(row)]] > 0);
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("token_sample refuses scores that do not fit") {
    const SearchParams p{.batch = 3, .beams = 1, .capacity = 8, .vocab = 20, .candidates = 1};
    const TensorDesc fits{"scores", DType::kF32, {3, 20}};
    CHECK(check_token_sample(fits, fits, p).ok());
    check_error(check_token_sample(fits, {"logits", DType::kF32, {3, 19}}, p), "token_sample",
                "(3, 19)");
    check_error(check_token_sample({"scores", DType::kU32, {3, 20}}, fits, p), "token_sample",
                "F32");
  }
}

}  // namespace vkformer::testing
