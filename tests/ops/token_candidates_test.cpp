#include "ops/token_candidates.h"

#include "ops/search_expected.h"

namespace vkformer::testing {
namespace {

struct Candidate {
  float value;
  uint32_t token;
};

// Candidates (slots, K) of logits (R, V) at the first new position, with `live` slots.
std::vector<std::vector<Candidate>> run(const TierDevice& device, const SearchCase& c, uint32_t k,
                                        const Array& logits, uint32_t live, uint32_t position = 0) {
  const auto rows = static_cast<uint32_t>(logits.dim(0));
  SearchParams p = c.params();
  p.batch = rows;
  p.candidates = k;
  Graph graph;
  graph.set_step(rows);
  const TensorId in = graph.add_external("logits", DType::kF32, logits.shape);
  SearchTensors t{.params = p};
  t.state = graph.add_external("decode_state", DType::kU32, {kStateWords});
  t.settings = graph.add_external("settings", DType::kU32, {sizeof(SearchSettings) / 4});
  t.suppress = graph.add_external("suppress", DType::kU32, {2, (p.vocab + 31) / 32});
  const auto out = add_token_candidates(graph, in, t);
  REQUIRE_MESSAGE(out.ok(), out.error().message);
  graph.tensor(*out).kind = TensorKind::kExternal;
  graph.tensor(*out).name = "candidates";
  std::vector<uint32_t> slots(rows);
  for (uint32_t i = 0; i < rows; ++i) slots[i] = i;
  Tensor state = make_state(slots, position);
  std::memcpy(state.bytes.data() + 4, &live, 4);
  const std::vector<uint32_t> suppress = suppress_words(c);
  const TensorMap all =
      run_step(device, graph,
               {{"logits", reference::to_tensor(logits)},
                {"decode_state", state},
                {"settings", word_tensor(settings_words(c), {sizeof(SearchSettings) / 4})},
                {"suppress", word_tensor(suppress, {2, (p.vocab + 31) / 32})}},
               live);
  const std::vector<uint32_t> words = words_of(all.at("candidates"));
  std::vector<std::vector<Candidate>> found(rows);
  for (size_t i = 0; i < words.size(); i += 2) {
    found[i / 2 / k].push_back({std::bit_cast<float>(words[i]), words[i + 1]});
  }
  return found;
}

// The K best of every row, ties to the smaller token.
void check(const TierDevice& device, const SearchCase& c, uint32_t k, const Array& logits,
           uint32_t position = 0) {
  CAPTURE(device.tier);
  CAPTURE(c.vocab);
  CAPTURE(k);
  const auto rows = static_cast<uint32_t>(logits.dim(0));
  const auto found = run(device, c, k, logits, rows, position);
  SearchCase one = c;
  for (uint32_t row = 0; row < rows; ++row) {
    one.model = [&](int64_t, const std::vector<int64_t>&) {
      const auto begin = logits.data.begin() + static_cast<ptrdiff_t>(row * c.vocab);
      return std::vector<float>(begin, begin + c.vocab);
    };
    std::vector<int64_t> prefix = c.prompt;
    prefix.resize(position + 1, 0);
    const std::vector<double> scores = processed_scores(one, 0, prefix);
    const std::vector<int64_t> best = reference::top_k_row(scores, k);
    REQUIRE(found[row].size() == k);
    for (size_t i = 0; i < k; ++i) {
      const double score = scores[static_cast<size_t>(best[i])];
      CHECK(found[row][i].token == best[i]);
      const double value = found[row][i].value;
      CHECK((value == score || std::abs(value - score) <= 2e-6 + 4e-6 * std::abs(score)));
    }
  }
}

SearchCase case_of(uint32_t vocab) {
  SearchCase c;
  c.vocab = vocab;
  return c;
}

TensorDesc logits_desc(Shape shape) {
  return {"logits", DType::kF32, std::move(shape)};
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("token_candidates agrees with the reference over vocabularies and K") {
    for (const TierDevice& device : tier_devices()) {
      for (uint32_t vocab : {1u, 2u, 31u, 32u, 33u, 127u, 128u, 129u, 1009u}) {
        for (uint32_t k : {1u, 2u, 8u, 64u}) {
          if (k > vocab) continue;
          check(device, case_of(vocab), k, random_array({3, vocab}, vocab + k, 3));
        }
      }
      // Rows of one part, of a little more, and of many.
      for (uint32_t vocab : {4096u, 4097u, 8200u}) {
        for (uint32_t k : {1u, 64u}) {
          check(device, case_of(vocab), k, random_array({2, vocab}, vocab + k, 3));
        }
      }
      check(device, case_of(50257), 40, random_array({2, 50257}, 8, 3));
      check(device, case_of(262144), 32, random_array({1, 262144}, 9, 3));
    }
  }

  TEST_CASE("token_candidates keeps its accuracy far out and breaks ties by the smaller token") {
    for (const TierDevice& device : tier_devices()) {
      check(device, case_of(40), 5, random_array({2, 40}, 3, 10, 500));
      check(device, case_of(9000), 5, random_array({2, 9000}, 3, 10, 500));
      check(device, case_of(9000), 64, reference::filled({1, 9000}, 0.125));
      Array flat = reference::filled({2, 70}, -2.5);
      flat[69] = flat[70] = -1;
      check(device, case_of(70), 64, flat);
    }
  }

  TEST_CASE("token_candidates ranks impossible tokens last, whatever their number") {
    for (const TierDevice& device : tier_devices()) {
      Array logits = random_array({2, 50}, 5);
      for (int64_t i = 0; i < 50; ++i) {
        if (i % 7 != 3) logits[i] = -kInfinity;
      }
      check(device, case_of(50), 12, logits);
    }
  }

  TEST_CASE("token_candidates beyond the vocabulary are impossible") {
    for (const TierDevice& device : tier_devices()) {
      const auto found = run(device, case_of(3), 8, random_array({2, 3}, 6), 2);
      for (const std::vector<Candidate>& row : found) {
        CHECK(std::isfinite(row[2].value));
        for (size_t k = 3; k < 8; ++k) CHECK(row[k].value == -kInfinity);
      }
    }
  }

  TEST_CASE("token_candidates processes scores: suppressed, premature and forced tokens") {
    for (const TierDevice& device : tier_devices()) {
      const Array logits = random_array({3, 45}, 7);
      SearchCase c = case_of(45);
      c.eos = {4, 31, 32};
      c.suppress = {0, 33, 44};
      c.begin_suppress = {5, 32};
      c.min_new_tokens = 2;
      for (uint32_t position : {0u, 1u, 2u, 6u, 7u}) check(device, c, 45, logits, position);
      c.forced_first = 33;
      c.forced_last = 5;
      for (uint32_t position : {0u, 1u, 7u}) check(device, c, 45, logits, position);
      c.max_new_tokens = 1;  // the first position is the last: the end token wins
      check(device, c, 3, logits);
    }
  }

  TEST_CASE("token_candidates reports a NaN anywhere as the score, and leaves idle slots alone") {
    for (const TierDevice& device : tier_devices()) {
      for (int64_t at : {0, 1, 31, 32}) {
        Array logits = random_array({4, 33}, 9);
        logits[33 + at] = kNan;
        logits[66 + at] = kInfinity;
        const auto found = run(device, case_of(33), 2, logits, 3);
        CHECK(std::isfinite(found[0][0].value));
        CHECK(std::isnan(found[1][0].value));
        CHECK(std::isnan(found[2][0].value));
        CHECK(std::bit_cast<uint32_t>(found[3][0].value) == 0x7fc0dead);
        CHECK(found[3][1].token == 0x7fc0dead);
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("token_candidates refuses logits and K that do not fit") {
    SearchParams p{.batch = 3, .beams = 2, .capacity = 8, .vocab = 20, .candidates = 4};
    CHECK(check_token_candidates(logits_desc({6, 20}), p).ok());
    check_error(check_token_candidates(logits_desc({6, 21}), p), "token_candidates", "(6, 21)");
    check_error(check_token_candidates(logits_desc({3, 20}), p), "token_candidates", "(6, 20)");
    TensorDesc integers = logits_desc({6, 20});
    integers.dtype = DType::kU32;
    check_error(check_token_candidates(integers, p), "token_candidates", "F32");
    p.candidates = 21;  // more than there are tokens: the rest are impossible
    CHECK(check_token_candidates(logits_desc({6, 20}), p).ok());
    for (uint32_t k : {0u, VKF_MAX_CANDIDATES + 1u}) {
      p.candidates = k;
      check_error(check_token_candidates(logits_desc({6, 20}), p), "token_candidates",
                  "K " + std::to_string(k));
    }
    p.candidates = 1;
    p.vocab = 0;
    check_error(check_token_candidates(logits_desc({6, 0}), p), "token_candidates", "V is 0");
  }

  TEST_CASE("token_candidates plans the tier's kernel, one workgroup a slot") {
    for (Tier tier : {Tier::kBaseline, Tier::kSubgroup}) {
      const SearchGraph g =
          search_graph({.batch = 5, .beams = 1, .capacity = 8, .vocab = 9, .candidates = 1});
      const Plan plan =
          plan_with_kernel(g.graph, tier,
                           tier == Tier::kBaseline ? "token_candidates_row__f32_u32_f32"
                                                   : "token_candidates_row__f32_u32_f32_subgroup");
      CHECK(plan.dispatches[0].live_axis == 0);
      CHECK(plan.dispatches[0].slots_per_group == 1);
      CHECK(plan.dispatches[0].groups[0] == 5);
      check_no_aliasing(plan);
    }
  }
}

}  // namespace vkformer::testing
