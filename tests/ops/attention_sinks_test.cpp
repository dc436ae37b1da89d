// attention_step over caches that roll: windows, and contexts with sinks (Xiao et al. 2023).
#include <cmath>

#include "ops/attention_cases.h"
#include "ops/attention_step.h"
#include "ops/step_run.h"

namespace vkformer::testing {
namespace {

constexpr int64_t kSinkRows = 4;  // R, two items of two beams
constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kWidth = 12;      // E
constexpr int64_t kPositions = 90;  // C
constexpr int64_t kLine = 2 * kKvHeads * kWidth;

struct RollCase {
  uint32_t position = 80;
  uint32_t window = 0;
  uint32_t context = 0;
  uint32_t sinks = 0;
  uint32_t start = 0;
  bool second_query = false;
  bool slopes = false;

  int64_t own() const { return position - start; }
  bool rolled() const { return context > 0 && own() >= context; }
};

struct RollProblem {
  std::vector<float> q;            // (R, 2, H, E): the query, and the one for sinks
  std::vector<float> kv;           // (R, C, line)
  std::vector<uint32_t> ancestry;  // (R, C)
  std::vector<float> slopes;       // (H)
};

RollProblem make_attention_sinks_problem() {
  Noise noise;
  RollProblem p;
  p.q = *noise.tensor({kSinkRows, 2, kHeads, kWidth}, 1.0f).to_floats();
  p.kv = *noise.tensor({kSinkRows, kPositions, kLine}, 1.0f).to_floats();
  for (int64_t row = 0; row < kSinkRows; ++row) {
    for (int64_t j = 0; j < kPositions; ++j) {
      p.ancestry.push_back(static_cast<uint32_t>(row / 2 * 2 + (noise.next() > 0 ? 1 : 0)));
    }
  }
  p.slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  return p;
}

// By the definition: keys of an untouched cache, counted within what is kept of it.
std::vector<double> expected_row(const RollCase& c, const RollProblem& p, int64_t row,
                                 int64_t head) {
  std::vector<double> sum(kWidth, 0.0);
  double total = 0;
  std::vector<int64_t> kept;
  for (int64_t j = 0; j <= c.own(); ++j) {
    const bool gone = c.rolled() && j >= c.sinks && j <= c.own() - (c.context - c.sinks);
    if (!gone) kept.push_back(j);
  }
  for (size_t n = 0; n < kept.size(); ++n) {
    const int64_t back = static_cast<int64_t>(kept.size() - 1 - n);  // to the query, in the cache
    if (c.window > 0 && back >= c.window) continue;
    const bool sink = c.rolled() && kept[n] < c.sinks;
    const int64_t owner = p.ancestry[static_cast<size_t>(row * kPositions + kept[n])];
    const float* key = &p.kv[static_cast<size_t>((owner * kPositions + kept[n]) * kLine)];
    const int64_t second = sink && c.second_query ? 1 : 0;
    const float* query = &p.q[static_cast<size_t>(((row * 2 + second) * kHeads + head) * kWidth)];
    double score = 0;
    for (int64_t e = 0; e < kWidth; ++e) {
      score += static_cast<double>(query[e]) * static_cast<double>(key[head / 2 * kWidth + e]);
    }
    score /= std::sqrt(static_cast<double>(kWidth));
    if (c.slopes) {
      score -= static_cast<double>(p.slopes[static_cast<size_t>(head)]) * static_cast<double>(back);
    }
    const double weight = std::exp(score);
    total += weight;
    for (int64_t e = 0; e < kWidth; ++e) {
      const int64_t at = (kKvHeads + head / 2) * kWidth + e;
      sum[static_cast<size_t>(e)] += weight * static_cast<double>(key[at]);
    }
  }
  for (double& value : sum) value /= total;
  return sum;
}

// The same keys in a cache of fewer lines; lines that nothing fell to stay NaN.
std::vector<float> rolled_cache(const RollCase& c, const RollProblem& p, int64_t lines,
                                int64_t sinks) {
  std::vector<float> kv(static_cast<size_t>(kSinkRows * lines * kLine), kNan);
  for (int64_t row = 0; row < kSinkRows; ++row) {
    for (int64_t j = 0; j <= c.own(); ++j) {
      const int64_t line = j < sinks ? j : sinks + (j - sinks) % (lines - sinks);
      const auto from = p.kv.begin() + (row * kPositions + j) * kLine;
      std::copy(from, from + kLine, kv.begin() + (row * lines + line) * kLine);
    }
  }
  return kv;
}

Tensor run_case(const TierDevice& device, const RollCase& c, const RollProblem& p, int64_t lines,
                int64_t sinks) {
  Graph graph;
  graph.set_step(kSinkRows);
  std::vector<uint32_t> words = p.ancestry;
  for (float slope : p.slopes) words.push_back(std::bit_cast<uint32_t>(slope));
  const Shape q_shape = {kSinkRows, 2 * kHeads * kWidth};
  const Shape kv_shape = {kSinkRows, lines, kLine};
  AttentionStepInputs inputs;
  inputs.q = graph.add_external("q", DType::kF32, q_shape);
  inputs.kv = graph.add_external("kv", DType::kF32, kv_shape);
  inputs.aux = graph.add_external("aux", DType::kU32, {static_cast<int64_t>(words.size())});
  inputs.state = graph.add_external("state", DType::kU32, {kStateWords});
  AttentionStepAttrs attrs;
  attrs.heads = kHeads;
  attrs.kv_heads = kKvHeads;
  attrs.head_width = attrs.value_width = kWidth;
  attrs.beams = 2;
  attrs.window = c.window;
  attrs.positions = kPositions;
  attrs.context = c.context;
  attrs.sinks = static_cast<uint32_t>(sinks);
  if (c.second_query) attrs.sink_q_offset = kHeads * kWidth;
  if (c.slopes) attrs.slopes_offset = static_cast<uint32_t>(p.ancestry.size());
  const Result<TensorId> y = add_attention_step(graph, inputs, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  graph.tensor(*y).kind = TensorKind::kExternal;
  graph.tensor(*y).name = "y";
  std::vector<uint32_t> entries;
  for (uint32_t row : {2u, 0u, 3u, 1u}) entries.push_back(row | c.start << VKF_SLOT_ROW_BITS);
  std::vector<float> q(p.q.size());
  for (size_t slot = 0; slot < 4; ++slot) {
    const size_t row = entries[slot] & 4095u;
    const size_t width = 2 * kHeads * kWidth;
    std::copy_n(p.q.begin() + static_cast<ptrdiff_t>(row * width), width,
                q.begin() + static_cast<ptrdiff_t>(slot * width));
  }
  const TensorMap given = {{"q", Tensor::from_floats(q_shape, q)},
                           {"kv", Tensor::from_floats(kv_shape, rolled_cache(c, p, lines, sinks))},
                           {"aux", word_tensor(words, {static_cast<int64_t>(words.size())})},
                           {"state", make_state(entries, c.position)}};
  return run_step(device, graph, given, 4).at("y");
}

// Agrees with the definition, and has the same bits with `lines` as with a line for every position.
void check_roll(const RollCase& c, int64_t lines, int64_t sinks) {
  INFO("position ", c.position, " window ", c.window, " context ", c.context, " sinks ", c.sinks);
  const RollProblem p = make_attention_sinks_problem();
  Array expected{{kSinkRows, kHeads * kWidth}, {}};
  for (int64_t row : {2, 0, 3, 1}) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const std::vector<double> part = expected_row(c, p, row, head);
      expected.data.insert(expected.data.end(), part.begin(), part.end());
    }
  }
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const Tensor y = run_case(device, c, p, lines, sinks);
    check_close(y, expected, tolerance_for(DType::kF32, kPositions));
    CHECK(y.bytes == run_case(device, c, p, kPositions, sinks).bytes);
    CHECK(y.bytes == run_case(device, c, p, lines, sinks).bytes);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a window needs no more lines than it is wide, to the bit") {
    for (uint32_t window : {1u, 2u, 13u, 64u, 65u}) {
      for (uint32_t position : {0u, 12u, 63u, 64u, 65u, 89u}) {
        check_roll({.position = position, .window = window}, window, 0);
      }
    }
  }

  TEST_CASE("a context keeps its sinks and the last keys, counted within it") {
    for (uint32_t context : {2u, 7u, 32u, 33u, 67u}) {
      for (uint32_t sinks : {0u, 1u, 4u, context - 1}) {
        if (sinks >= context) continue;
        for (uint32_t position : {context - 1, context, context + 1, 89u}) {
          check_roll({.position = position,
                      .context = context,
                      .sinks = sinks,
                      .second_query = sinks % 2 == 0,
                      .slopes = context % 2 == 1},
                     context, sinks);
        }
      }
    }
  }

  TEST_CASE("a context counts from where its row starts") {
    for (uint32_t start : {1u, 40u, 70u}) {
      check_roll({.position = 85,
                  .context = 20,
                  .sinks = 3,
                  .start = start,
                  .second_query = true,
                  .slopes = true},
                 20, 3);
    }
  }

  TEST_CASE("a window within a context reaches its sinks as far as it is wide") {
    for (uint32_t window : {1u, 15u, 16u, 17u, 19u, 20u, 50u}) {
      for (uint32_t position : {10u, 19u, 20u, 80u}) {
        const RollCase c{
            .position = position, .window = window, .context = 20, .sinks = 4, .slopes = true};
        check_roll(c, 20, 4);
      }
    }
    // A window of at most the keys that roll never sees a sink, and needs no line for one.
    check_roll({.position = 80, .window = 16, .context = 20, .sinks = 0}, 16, 0);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("attention_step says which lines are too few, and which sinks too many") {
    const TensorDesc q{"q", DType::kF32, {6, 16}};
    const TensorDesc kv{"kv", DType::kF32, {6, 20, 32}};
    const TensorDesc state{"state", DType::kU32, {kStateWords}};
    AttentionStepAttrs a;
    a.heads = a.kv_heads = 2;
    a.head_width = a.value_width = 8;
    a.positions = 64;
    const auto check = [&] { return check_attention_step(q, kv, nullptr, state, a); };
    check_error(check(), "attention", "20 lines, but a query sees 64");
    a.window = 21;
    check_error(check(), "attention", "20 lines, but a query sees 21");
    a.window = 20;
    CHECK(check().ok());
    a.window = 0;
    a.context = 20;
    a.sinks = 20;
    check_error(check(), "attention", "20 sinks");
    a.sinks = 19;
    CHECK(check().ok());
    a.sink_q_offset = 1;
    check_error(check(), "attention", "at least 17");
    a.sink_q_offset = 0;
    a.source = AttentionStepAttrs::Source::kCross;
    check_error(check(), "attention", "cross-attention");
  }
}

}  // namespace vkformer::testing
