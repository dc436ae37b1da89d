#include "ops/attention_step.h"

#include "ops/attention_cases.h"
#include "ops/step_run.h"
#include "support/packed_cache.h"

namespace vkformer::testing {
namespace {

using Source = AttentionStepAttrs::Source;

struct StepCase {
  int64_t rows = 6;          // R = items * beams
  int64_t beams = 1;         // rows of an item
  int64_t lines = 70;        // C or S
  int64_t heads = 4;         // H
  int64_t kv_heads = 2;      // Hkv
  int64_t head_width = 16;   // E
  int64_t value_width = 16;  // Ev
  uint32_t position = 66;
  std::vector<uint32_t> slot_rows = {4, 0, 5};
  Source source = Source::kSelf;
  uint32_t start = 0;                 // of every slot: how much shorter its prompt is
  uint32_t window = 0;                // keys that are seen; 0: all
  std::vector<float> slopes = {};     // (H)
  std::vector<float> distances = {};  // (H, 2 reach + 1)
  int64_t reach = 0;
  CacheFormat cache = CacheFormat::kF32;

  int64_t own_position() const { return position - start; }
  std::vector<uint32_t> entries() const {
    std::vector<uint32_t> list = slot_rows;
    for (uint32_t& entry : list) entry |= start << VKF_SLOT_ROW_BITS;
    return list;
  }
  int64_t line() const { return kv_heads * (head_width + value_width); }
};

struct StepProblem {
  Tensor q;                   // (R, H * E + 3): q starts at column 3
  Tensor kv;                  // (R, C, line) or (B, S, line)
  Tensor kept;                // kv as it is stored
  std::vector<uint32_t> aux;  // ancestry (R, C), or key mask (B, ceil(S/32))
};

constexpr int64_t kQueryColumn = 3;

// Into the first element of a line of a row's f32 cache.
void put_nan(StepProblem& p, const StepCase& c, int64_t row, int64_t line) {
  std::memcpy(p.kv.bytes.data() + 4 * (row * c.lines + line) * c.line(), &kNan, 4);
  p.kept = p.kv;
}

StepProblem make_step_problem(const StepCase& c) {
  Noise noise;
  StepProblem p;
  const int64_t items = c.rows / c.beams;
  p.q = noise.tensor({c.rows, kQueryColumn + c.heads * c.head_width}, 1.0f);
  const int64_t lines = c.source == Source::kSelf ? c.rows : items;
  p.kept = p.kv = noise.tensor({lines, c.lines, c.line()}, 1.0f);
  if (c.cache != CacheFormat::kF32) {
    p.kept = packed_cache(p.kv, c.cache);
    p.kv = unpacked_cache(p.kept, c.cache, c.line());
  }
  if (c.source == Source::kSelf) {
    for (int64_t at = 0; at < c.rows * c.lines; ++at) {
      const int64_t item = at / c.lines / c.beams;
      const int64_t beam = static_cast<int64_t>((noise.next() * 0.5f + 0.5f) * 1000) % c.beams;
      p.aux.push_back(static_cast<uint32_t>(item * c.beams + beam));
    }
  } else {
    const Tensor mask = noise.mask({items, c.lines}, 0.4f);
    const auto* bytes = reinterpret_cast<const uint8_t*>(mask.bytes.data());
    p.aux = pack_key_mask({bytes, mask.bytes.size()}, items, c.lines);
  }
  return p;
}

// The keys and values that a row sees, and its query, through the reference.
Array expected_row(const StepCase& c, const StepProblem& p, int64_t slot, int64_t row) {
  const std::vector<float> q = *p.q.to_floats();
  const std::vector<float> kv = *p.kv.to_floats();
  const bool self = c.source == Source::kSelf;
  const int64_t keys = self ? std::min<int64_t>(c.own_position() + 1, c.lines) : c.lines;
  Array query = reference::filled({1, c.heads, 1, c.head_width}, 0.0);
  Array k = reference::filled({1, c.kv_heads, keys, c.head_width}, 0.0);
  Array v = reference::filled({1, c.kv_heads, keys, c.value_width}, 0.0);
  Array mask = reference::filled({1, keys}, 1.0);
  const int64_t q_width = kQueryColumn + c.heads * c.head_width;
  for (int64_t i = 0; i < query.size(); ++i) {
    query[i] = q[static_cast<size_t>(slot * q_width + kQueryColumn + i)];
  }
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t item = row / c.beams;
    const int64_t owner = !self          ? item
                          : c.beams == 1 ? row
                                         : p.aux[static_cast<size_t>(row * c.lines + j)];
    if (!self) {
      const size_t word = static_cast<size_t>(item * ((c.lines + 31) / 32) + j / 32);
      mask[j] = p.aux[word] >> (j % 32) & 1u;
    }
    const int64_t base = (owner * c.lines + j) * c.line();
    for (int64_t h = 0; h < c.kv_heads; ++h) {
      for (int64_t e = 0; e < c.head_width; ++e) {
        k[(h * keys + j) * c.head_width + e] = kv[static_cast<size_t>(base + h * c.head_width + e)];
      }
      for (int64_t e = 0; e < c.value_width; ++e) {
        v[(h * keys + j) * c.value_width + e] =
            kv[static_cast<size_t>(base + c.kv_heads * c.head_width + h * c.value_width + e)];
      }
    }
  }
  Array bias = reference::filled({1, c.heads, 1, keys}, 0.0);
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t distance = j - c.own_position();
    if (self && c.window > 0 && -distance >= c.window) mask[j] = 0;
    for (int64_t h = 0; h < c.heads; ++h) {
      double& added = bias[h * keys + j];
      if (!c.slopes.empty())
        added = c.slopes[static_cast<size_t>(h)] * static_cast<double>(distance);
      if (c.distances.empty()) continue;
      const int64_t column = std::clamp(distance, -c.reach, c.reach) + c.reach;
      added += c.distances[static_cast<size_t>(h * (2 * c.reach + 1) + column)];
    }
  }
  reference::AttentionOptions options;
  options.masks.key_mask = &mask;
  options.bias = &bias;
  Result<Array> y = reference::attention(query, k, v, options);
  REQUIRE(y.ok());
  return *y;
}

struct StepGraph {
  Graph graph;
  TensorMap inputs;
};

StepGraph make_graph(const StepCase& c, const StepProblem& p, bool with_aux) {
  StepGraph step;
  step.graph.set_step(static_cast<uint32_t>(c.rows));
  AttentionStepInputs inputs;
  inputs.q = step.graph.add_external("q", DType::kF32, p.q.shape);
  inputs.kv = step.graph.add_external("kv", p.kept.dtype, p.kept.shape);
  inputs.state = step.graph.add_external("state", DType::kU32, {kStateWords});
  step.inputs = {{"q", p.q}, {"kv", p.kept}, {"state", make_state(c.entries(), c.position)}};
  if (with_aux) {
    Shape shape = {static_cast<int64_t>(p.aux.size() + c.slopes.size()) +
                   (c.reach > 0 ? 1 + static_cast<int64_t>(c.distances.size()) : 0)};
    if (c.source == Source::kCross) shape = {p.kv.shape[0], shape[0] / p.kv.shape[0]};
    std::vector<uint32_t> words = p.aux;
    const auto add_floats = [&](const std::vector<float>& values) {
      for (float value : values) {
        words.push_back(0);
        std::memcpy(&words.back(), &value, 4);
      }
    };
    add_floats(c.slopes);
    if (c.reach > 0) words.push_back(static_cast<uint32_t>(c.reach));
    add_floats(c.distances);
    inputs.aux = step.graph.add_external("aux", DType::kU32, shape);
    step.inputs.emplace("aux", word_tensor(words, shape));
  }
  AttentionStepAttrs attrs;
  attrs.window = c.window;
  const auto after_aux = static_cast<uint32_t>(p.aux.size());
  if (!c.slopes.empty()) attrs.slopes_offset = after_aux;
  if (c.reach > 0) attrs.distance_offset = after_aux + static_cast<uint32_t>(c.slopes.size());
  attrs.source = c.source;
  attrs.heads = static_cast<uint32_t>(c.heads);
  attrs.kv_heads = static_cast<uint32_t>(c.kv_heads);
  attrs.head_width = static_cast<uint32_t>(c.head_width);
  attrs.value_width = static_cast<uint32_t>(c.value_width);
  attrs.q_offset = kQueryColumn;
  attrs.beams = static_cast<uint32_t>(c.beams);
  const Result<TensorId> y = add_attention_step(step.graph, inputs, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  step.graph.tensor(*y).kind = TensorKind::kExternal;
  step.graph.tensor(*y).name = "y";
  return step;
}

// Runs and compares the live slots; the others must be untouched. Returns y of the last device.
Tensor check_step(const StepCase& c, const StepProblem& p, bool with_aux) {
  const StepGraph step = make_graph(c, p, with_aux);
  Tensor last;
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, " position ", c.position, " E ", c.head_width);
    const auto live = static_cast<uint32_t>(c.slot_rows.size());
    last = run_step(device, step.graph, step.inputs, live).at("y");
    const int64_t width = c.heads * c.value_width;
    const std::vector<float> y = *last.to_floats();
    for (int64_t slot = 0; slot < c.rows; ++slot) {
      const auto begin = y.begin() + slot * width;
      if (slot >= static_cast<int64_t>(live)) {
        CHECK(std::all_of(begin, begin + width, [](float f) { return std::isnan(f); }));
        continue;
      }
      const Array expected = expected_row(c, p, slot, c.slot_rows[static_cast<size_t>(slot)]);
      check_close(Tensor::from_floats(expected.shape, std::vector<float>(begin, begin + width)),
                  expected, tolerance_for(DType::kF32, c.lines + c.head_width));
    }
  }
  return last;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a step attends to the cache up to its position") {
    for (uint32_t position : {0u, 1u, 7u, 8u, 62u, 63u, 64u, 69u}) {
      StepCase c;
      c.position = position;
      check_step(c, make_step_problem(c), false);
    }
  }

  TEST_CASE("a step too long for one dispatch gives the same bits, and skips the same slots") {
    for (bool parts : {false, true}) {
      StepCase c;
      if (parts) {
        c.lines = 2500;
        c.heads = c.kv_heads = 1;
        c.position = 2490;
      }
      const StepGraph step = make_graph(c, make_step_problem(c), false);
      for (const TierDevice& device : tier_devices()) {
        CAPTURE(device.tier);
        const auto live = static_cast<uint32_t>(c.slot_rows.size());
        const Tensor whole = run_step(device, step.graph, step.inputs, live).at("y");
        CHECK(run_step(device, step.graph, step.inputs, live, 1e12).at("y").bytes == whole.bytes);
      }
    }
  }

  TEST_CASE("a step over head widths") {
    for (int64_t width : {1, 8, 40, 64, 80, 128, 256}) {
      StepCase c;
      c.head_width = width;
      c.value_width = width == 40 ? 24 : width;
      check_step(c, make_step_problem(c), false);
    }
  }

  TEST_CASE("a step over more keys than a software driver's loops have rounds for eight lanes") {
    for (int64_t keys : {4099, 15000}) {
      StepCase c;
      c.rows = 2;
      c.slot_rows = {1};
      c.lines = keys;
      c.heads = c.kv_heads = 1;
      c.head_width = c.value_width = keys == 4099 ? 128 : 64;
      c.position = static_cast<uint32_t>(keys - 2);
      check_step(c, make_step_problem(c), false);
    }
  }

  TEST_CASE("a step over packed caches, for every form of the kernel") {
    for (CacheFormat format : kPackedCaches) {
      for (int64_t width : {1, 6, 7, 12, 16, 40, 64, 80}) {
        StepCase c;
        c.cache = format;
        c.head_width = width;
        c.value_width = width == 40 ? 24 : width;
        c.kv_heads = width == 12 ? 4 : 2;
        check_step(c, make_step_problem(c), false);
      }
      StepCase beams;
      beams.cache = format;
      beams.beams = 3;
      check_step(beams, make_step_problem(beams), true);
      StepCase parts;
      parts.cache = format;
      parts.rows = 2;
      parts.slot_rows = {1};
      parts.lines = 2500;
      parts.heads = parts.kv_heads = 1;
      parts.position = 2490;
      check_step(parts, make_step_problem(parts), false);
    }
  }

  TEST_CASE("a step sees the last keys of a window") {
    for (uint32_t window : {1u, 3u, 64u, 66u, 67u, 68u, 1000u}) {
      StepCase c;
      c.window = window;
      check_step(c, make_step_problem(c), false);
    }
  }

  TEST_CASE("a step counts from where its row starts") {
    for (uint32_t start : {1u, 13u, 66u}) {
      StepCase c;
      c.start = start;
      c.window = 40;
      c.beams = 2;
      check_step(c, make_step_problem(c), true);
    }
  }

  TEST_CASE("a step adds ALiBi slopes and a bias by distance") {
    StepCase c;
    c.start = 3;
    c.slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
    check_step(c, make_step_problem(c), true);
    Noise noise;
    for (int64_t reach : {4, 500}) {
      c.reach = reach;
      c.distances = *noise.tensor({c.heads, 2 * reach + 1}, 2.0f).to_floats();
      check_step(c, make_step_problem(c), true);
    }
    c.slopes = {};
    check_step(c, make_step_problem(c), true);
  }

  TEST_CASE("a step of beams follows the ancestry") {
    StepCase c;
    c.beams = 3;
    check_step(c, make_step_problem(c), true);
  }

  TEST_CASE("a step of cross-attention, masked, unmasked and without any key") {
    StepCase c;
    c.source = Source::kCross;
    c.beams = 2;
    StepProblem p = make_step_problem(c);
    check_step(c, p, true);
    std::fill(p.aux.begin() + 3, p.aux.begin() + 6, 0u);
    check_step(c, p, true);
    std::fill(p.aux.begin(), p.aux.end(), ~0u);
    check_step(c, p, false);
  }

  TEST_CASE("a NaN in the cache reaches the rows that see it only") {
    StepCase c;
    StepProblem p = make_step_problem(c);
    put_nan(p, c, 5, 9);
    put_nan(p, c, 4, 69);
    check_step(c, p, false);
  }

  TEST_CASE("a step split over its keys sees the same, whatever the capacity, to the bit") {
    for (int64_t kv_heads : {1, 3}) {
      StepCase c;
      c.lines = 700;
      c.heads = 3;
      c.kv_heads = kv_heads;
      StepProblem p = make_step_problem(c);
      for (uint32_t position : {0u, 255u, 256u, 257u, 511u, 699u}) {
        c.position = position;
        check_step(c, p, false);
      }
      if (tier_devices().empty()) return;
      c.position = 199;
      const Tensor large = check_step(c, p, false);
      StepCase fewer = c;
      fewer.lines = 200;
      StepProblem cut = p;
      cut.kv =
          Tensor::from_floats({c.rows, fewer.lines, c.line()},
                              std::vector<float>(static_cast<size_t>(c.rows * 200 * c.line())));
      const auto row = static_cast<size_t>(4 * c.line());
      for (size_t r = 0; r < static_cast<size_t>(c.rows); ++r) {
        std::memcpy(cut.kv.bytes.data() + r * 200 * row, p.kv.bytes.data() + r * 700 * row,
                    200 * row);
      }
      const Tensor small = check_step(fewer, cut, false);
      const size_t live = c.slot_rows.size() * 4 * static_cast<size_t>(c.heads * c.value_width);
      CHECK(std::equal(large.bytes.begin(), large.bytes.begin() + static_cast<long>(live),
                       small.bytes.begin()));
    }
  }

  TEST_CASE("a NaN in one part of the keys reaches the merged result") {
    StepCase c;
    c.lines = 600;
    c.position = 599;
    c.heads = 2;
    c.kv_heads = 1;
    StepProblem p = make_step_problem(c);
    put_nan(p, c, 5, 300);
    check_step(c, p, false);
  }

  TEST_CASE("a row's result does not depend on how many slots are live") {
    StepCase many;
    many.slot_rows = {4, 0, 5, 1, 2, 3};
    StepCase one = many;
    one.slot_rows = {4};
    const StepProblem p = make_step_problem(many);
    if (tier_devices().empty()) return;
    const Tensor a = check_step(many, p, false);
    const Tensor b = check_step(one, p, false);
    const size_t bytes = 4 * 4 * 16;
    CHECK(std::equal(a.bytes.begin(), a.bytes.begin() + bytes, b.bytes.begin()));
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("attention_step says what is wrong with its inputs") {
    const TensorDesc q{"q", DType::kF32, {6, 32}};
    const TensorDesc kv{"kv", DType::kF32, {6, 70, 32}};
    const TensorDesc ancestry{"ancestry", DType::kU32, {6, 70}};
    const TensorDesc state{"state", DType::kU32, {kStateWords}};
    AttentionStepAttrs a;
    a.heads = a.kv_heads = 2;
    a.head_width = a.value_width = 8;
    CHECK(check_attention_step(q, kv, nullptr, state, a).ok());
    a.beams = 3;
    CHECK(check_attention_step(q, kv, &ancestry, state, a).ok());
    check_error(check_attention_step(q, kv, nullptr, state, a), "attention", "ancestry");
    a.q_offset = 17;
    check_error(check_attention_step(q, kv, &ancestry, state, a), "attention", "at least 33");
    a.q_offset = 0;
    a.value_width = 9;
    check_error(check_attention_step(q, kv, &ancestry, state, a), "attention", "34");
    a.value_width = 8;
    a.beams = 0;
    check_error(check_attention_step(q, kv, &ancestry, state, a), "attention", "beams");
    a.beams = 1;
    check_error(check_attention_step(q, kv, nullptr, ancestry, a), "attention", "state");
    a.source = Source::kCross;
    check_error(check_attention_step(q, kv, &ancestry, state, a), "attention", "(6, 3)");
    Graph graph;
    const TensorId x = graph.add_external("x", DType::kF32, {6, 32});
    check_error(add_attention_step(graph, {x, x, kNoTensor, x}, a), "attention", "decoding step");
  }

  TEST_CASE("a long attention_step is split over its keys and merged, on software devices too") {
    StepCase c;
    c.rows = 1;
    c.slot_rows = {0};
    c.lines = 40000;
    const StepGraph step = make_graph(c, make_step_problem(c), false);
    for (DeviceClass device_class : {DeviceClass::kSoftware, DeviceClass::kDiscrete}) {
      DeviceCaps caps;
      caps.device_class = device_class;
      const Result<Plan> plan = make_plan(step.graph, caps, Precision::kF32);
      REQUIRE(plan.ok());
      REQUIRE(plan->dispatches.size() == 2);
      CHECK(plan->dispatches[0].groups == std::array<uint32_t, 3>{1, 2, 40});
      CHECK(plan->dispatches[1].groups == std::array<uint32_t, 3>{1, 4, 1});
      CHECK(plan->dispatches[1].live_axis == 0);
    }
  }

  TEST_CASE("attention_step's plan takes the live slots on x") {
    const StepCase c;
    const StepGraph step = make_graph(c, make_step_problem(c), false);
    const Plan plan =
        plan_with_kernel(step.graph, Tier::kBaseline, "attention_decode__f32_f32_f32");
    REQUIRE(plan.dispatches.size() == 1);
    CHECK(plan.dispatches[0].groups == std::array<uint32_t, 3>{6, 2, 1});  // pairs of heads
    CHECK(plan.dispatches[0].live_axis == 0);
    CHECK(plan.dispatches[0].slots_per_group == 1);
    plan_with_kernel(step.graph, Tier::kSubgroup, "attention_decode__f32_f32_f32_subgroup");
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
