// Checks of attention in linear time, by landmarks, by hashes and over projected sequences.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/content.h"
#include "ops/attention.h"
#include "ops/chunk_attention.h"
#include "ops/linear_attention.h"
#include "ops/lsh_sort.h"
#include "ops/mix_rounds.h"
#include "params/decode_state.h"
#include "reference/attention.h"
#include "reference/chunk_attention.h"
#include "reference/inverse_start.h"
#include "reference/linear_attention.h"
#include "reference/lsh_hash.h"
#include "reference/lsh_sort.h"
#include "reference/mix_rounds.h"
#include "reference/sequence_projection.h"

namespace vkformer::conformance {
namespace {

// (B, H, S, E) and the width of values.
struct Sizes {
  Shape q;
  int64_t value_width;
};
const Sizes kSizes[] = {{{1, 1, 1, 1}, 1},     {{2, 3, 7, 8}, 9},     {{1, 2, 31, 16}, 16},
                        {{2, 2, 33, 33}, 20},  {{1, 2, 129, 64}, 64}, {{1, 1, 257, 64}, 32},
                        {{1, 1, 1500, 16}, 17}};

bool is_quick(const Sizes& s) {
  return s.q[2] == 1 || s.q[2] == 33;
}

struct Heads {
  Array q, k, v;
  TensorMap inputs() const { return {{"Q", floats(q)}, {"K", floats(k)}, {"V", floats(v)}}; }
};

Heads make_heads(const Sizes& s, double scale) {
  const Shape values{s.q[0], s.q[1], s.q[2], s.value_width};
  return {scaled(random_array(s.q, 1), scale), scaled(random_array(s.q, 2), scale),
          random_array(values, 3)};
}

Result<CheckCase> linear_case(const Sizes& s, bool favor, bool causal) {
  const Heads h = make_heads(s, 0.7);
  const Array omega = random_array({21, s.q[3]}, 4);
  const Array key_mask = random_mask({s.q[0], s.q[2]}, 5, 0.8);
  reference::LinearAttentionOptions options;
  options.causal = causal;
  options.epsilon = favor ? 0 : reference::round_to_f32({{}, {1e-6}})[0];
  options.kernel_eps = favor ? reference::round_to_f32({{}, {1e-4}})[0] : 0;
  TensorMap inputs = h.inputs();
  if (favor) {
    options.omega = &omega;
    inputs.emplace("omega", floats(omega));
  }
  if (!causal) {
    options.key_mask = &key_mask;
    inputs.emplace("key_mask", mask_bytes(key_mask));
  }
  VKF_ASSIGN(reference::LinearAttentionOutputs y,
             reference::linear_attention(h.q, h.k, h.v, options));
  const int64_t features = favor ? 21 : s.q[3];
  return call_case({favor ? "performer_attention" : "linear_attention",
                    causal ? R"({"causal": true})" : "{}", std::move(inputs)},
                   {{"output", {std::move(y.output), terms(s.q[2] * features), 4}}});
}

// The weights of all heads, as the maps of a model ask for them.
Result<CheckCase> linear_weights_case(const Sizes& s, bool causal) {
  const Heads h = make_heads(s, 0.7);
  reference::LinearAttentionOptions options;
  options.causal = causal;
  VKF_ASSIGN(reference::LinearAttentionOutputs expected,
             reference::linear_attention(h.q, h.k, h.v, options));
  Array x = reference::filled({h.q.size() + h.k.size() + h.v.size()}, 0.0);
  auto to = x.data.begin();
  for (const Array* part : {&h.q, &h.k, &h.v})
    to = std::copy_n(part->data.begin(), part->size(), to);
  const int64_t heads = s.q[1], tokens = s.q[2];
  const auto layout = [&](int64_t width, int64_t offset) {
    return separate_heads(u32(heads), u32(tokens), u32(width), u32(offset));
  };
  LinearAttentionAttrs attrs;
  attrs.causal = causal ? LinearAttentionAttrs::Causal::kYes : LinearAttentionAttrs::Causal::kNo;
  attrs.maps = LinearAttentionAttrs::Maps::kChosen;
  attrs.batch = u32(s.q[0]);
  attrs.heads = u32(heads);
  attrs.queries = attrs.keys = u32(tokens);
  attrs.head_width = u32(s.q[3]);
  attrs.value_width = u32(s.value_width);
  attrs.q = layout(s.q[3], 0);
  attrs.k = layout(s.q[3], h.q.size());
  attrs.v = layout(s.value_width, h.q.size() + h.k.size());
  attrs.y = layout(s.value_width, 0);
  attrs.y_shape = h.v.shape;
  CheckCase made;
  LinearAttentionInputs in;
  in.x = made.op.bind("x", floats(x));
  VKF_ASSIGN(const LinearAttentionOutputs out, add_linear_attention(made.op.graph, in, attrs));
  made.op.name_output(out.y, "y");
  made.op.name_output(out.weights, "weights");
  const Tolerance bound = terms(tokens * s.q[3]);
  made.expected.emplace("y", Expected{std::move(expected.output), bound, 4});
  made.expected.emplace("weights", Expected{std::move(expected.weights), bound, 4});
  return made;
}

// Two steps of three live slots: the first from nothing, the second after the token of its parent.
constexpr int64_t kStepSlots = 4;
const std::vector<uint32_t> kStepRows = {3, 0, 2}, kParents = {2, 0, 0, 3};  // parents by row

Tensor step_state(uint32_t position) {
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[0] = list[1] = u32(static_cast<int64_t>(kStepRows.size()));
  list[2] = position;
  std::copy(kStepRows.begin(), kStepRows.end(), list.begin() + VKF_STATE_WORDS);
  return words(list);
}

// What the second step gives slot `slot`: its query over the parent's token and its own.
Result<Array> second_step(const Sizes& s, const Array& first, const Array& second, size_t slot) {
  const int64_t heads = s.q[1], e = s.q[3], ev = s.value_width, line = heads * (2 * e + ev);
  const auto found = std::find(kStepRows.begin(), kStepRows.end(), kParents[kStepRows[slot]]);
  const Array* from[] = {&first, &second};
  const int64_t slots[] = {found - kStepRows.begin(), static_cast<int64_t>(slot)};
  Array q = reference::filled({1, heads, 1, e}, 0.0), k = reference::filled({1, heads, 2, e}, 0.0);
  Array v = reference::filled({1, heads, 2, ev}, 0.0);
  for (int64_t h = 0; h < heads; ++h) {
    std::copy_n(second.data.begin() + slots[1] * line + h * e, e, q.data.begin() + h * e);
    for (int64_t j = 0; j < 2; ++j) {
      const auto row = from[j]->data.begin() + slots[j] * line + heads * e;
      std::copy_n(row + h * e, e, k.data.begin() + (2 * h + j) * e);
      std::copy_n(row + heads * e + h * ev, ev, v.data.begin() + (2 * h + j) * ev);
    }
  }
  reference::LinearAttentionOptions options;
  options.epsilon = reference::round_to_f32({{}, {1e-6}})[0];
  VKF_ASSIGN(reference::LinearAttentionOutputs out, reference::linear_attention(q, k, v, options));
  return std::move(out.output);
}

Result<CheckCase> linear_step_case(const Sizes& s) {
  const int64_t heads = s.q[1], e = s.q[3], ev = s.value_width, line = heads * (2 * e + ev);
  const Array x[] = {scaled(random_array({kStepSlots, line}, 1), 0.7),
                     scaled(random_array({kStepSlots, line}, 2), 0.7)};
  CheckCase made;
  made.op.graph.set_step(u32(kStepSlots));
  made.live_slots = u32(static_cast<int64_t>(kStepRows.size()));
  LinearStepAttrs attrs;
  attrs.features.epsilon = 1e-6f;
  attrs.heads = u32(heads);
  attrs.head_width = u32(e);
  attrs.value_width = u32(ev);
  attrs.k_offset = u32(heads * e);
  attrs.v_offset = u32(2 * heads * e);
  attrs.beams = u32(kStepSlots);
  attrs.capacity = 2;
  std::vector<uint32_t> parents(kStepSlots * 2, 0u);
  for (size_t row = 0; row < kStepSlots; ++row) parents[2 * row] = kParents[row];
  Tensor ancestry = words(parents);
  ancestry.shape = {kStepSlots, 2};
  LinearStepInputs in;
  in.ancestry = made.op.bind("ancestry", std::move(ancestry));
  const int64_t width = linear_state_width(attrs.features, 0, e, ev);
  in.states = made.op.graph.add_external("states", DType::kF32, {kStepSlots, 2, heads * width});
  for (uint32_t step = 0; step < 2; ++step) {
    in.x = made.op.bind("x" + std::to_string(step), floats(x[step]));
    in.state = made.op.bind("state" + std::to_string(step), step_state(step));
    VKF_ASSIGN(const TensorId y, add_linear_attention_step(made.op.graph, in, attrs));
    made.op.name_output(y, "y" + std::to_string(step));
  }
  Array expected =
      reference::filled({kStepSlots, heads * ev}, std::numeric_limits<double>::quiet_NaN());
  for (size_t slot = 0; slot < kStepRows.size(); ++slot) {
    VKF_ASSIGN(const Array one, second_step(s, x[0], x[1], slot));
    std::copy_n(one.data.begin(), one.size(),
                expected.data.begin() + static_cast<int64_t>(slot) * one.size());
  }
  made.expected.emplace("y1", Expected{std::move(expected), terms(16 * e), 4});
  return made;
}

Result<CheckCase> linformer_case(const Sizes& s) {
  const Heads h = make_heads(s, 1);
  const Array e = scaled(random_array({5, s.q[2] + 3}, 4), 0.2);
  const Array f = scaled(random_array({5, s.q[2] + 3}, 5), 0.2);
  VKF_ASSIGN(const Array keys, reference::sequence_projection(h.k, e, nullptr));
  VKF_ASSIGN(const Array values, reference::sequence_projection(h.v, f, nullptr));
  VKF_ASSIGN(Array y, reference::attention(h.q, keys, values));
  TensorMap inputs = h.inputs();
  inputs.emplace("E", floats(e));
  inputs.emplace("F", floats(f));
  return call_case({"linformer_attention", "{}", std::move(inputs)},
                   {{"output", {std::move(y), terms(16 * s.q[2]), 4}}});
}

// Six steps of an iteration follow its start, so errors of the softmax before it grow.
Result<CheckCase> nystrom_case(const Sizes& s, int64_t landmarks, bool exact) {
  const Heads h = make_heads(s, 1);
  VKF_ASSIGN(reference::NystromReference y,
             reference::nystrom_attention(
                 {h.q, h.k, h.v}, landmarks,
                 exact ? reference::InverseMaximum::kOwn : reference::InverseMaximum::kShared));
  const std::string attributes = R"({"num_landmarks": )" + std::to_string(landmarks) +
                                 R"(, "init": ")" + (exact ? "exact" : "original") + "\"}";
  const Tolerance bound = terms(INT64_MAX);
  const double magnitude = magnitude_of(y.pseudo_inverse);
  return call_case({"nystrom_attention", attributes, h.inputs()},
                   {{"output", {std::move(y.output), bound, magnitude}},
                    {"pseudo_inverse", {std::move(y.pseudo_inverse), bound, magnitude}}});
}

// Whole numbers, so that every sum is exact and no bucket depends on rounding.
Result<CheckCase> hash_case(const Shape& shape, int64_t rounds, int64_t half) {
  Array x = random_ids(shape, 1, 9),
        rotations = random_ids({shape[1], shape[3], rounds, half}, 2, 9);
  for (double& value : x.data) value -= 4;
  for (double& value : rotations.data) value -= 4;
  VKF_ASSIGN(Array y, reference::lsh_hash(x, rotations, {.factors = {2 * half}, .offsets = false}));
  return call_case({"lsh_hash", "{}", {{"X", floats(x)}, {"rotations", floats(rotations)}}},
                   {{"buckets", {std::move(y)}}});
}

Result<CheckCase> sort_case(const Shape& shape, int64_t buckets) {
  Array x = random_ids(shape, 3, buckets);
  for (int64_t i = 0; i < x.size(); ++i) {
    x[i] += static_cast<double>(i / shape[3] % shape[2] * buckets);
  }
  VKF_ASSIGN(Array order, reference::lsh_sort(x));
  CheckCase made;
  Tensor words = Tensor::zeros(DType::kU32, shape);
  auto* at = reinterpret_cast<uint32_t*>(words.bytes.data());
  for (const double value : x.data) *at++ = static_cast<uint32_t>(value);
  const TensorId id = made.op.bind("buckets", std::move(words));
  VKF_ASSIGN(const TensorId y, add_lsh_sort(made.op.graph, id, {.buckets = u32(buckets)}));
  made.op.name_output(y, "order");
  made.expected.emplace("order", Expected{std::move(order)});
  return made;
}

// Tokens in the order of a permutation; keys are the queries.
Result<CheckCase> chunk_case(const Sizes& s, int64_t rounds, int64_t chunk, bool causal) {
  const int64_t heads = s.q[1], tokens = s.q[2], width = s.q[3];
  const Array q = random_array({1, heads, tokens, width}, 1);
  const Array v = random_array({1, heads, tokens, s.value_width}, 2);
  Array order = reference::filled({1, heads, rounds, tokens}, 0.0);
  for (int64_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<double>((i % tokens * 7 + i / tokens) % tokens);
  }
  reference::ChunkAttentionOptions options;
  options.chunk = chunk;
  options.before = 1;
  options.causal = causal;
  options.shared = true;
  options.order = &order;
  VKF_ASSIGN(Array y, reference::chunk_attention(q, q, v, options));
  ChunkAttentionAttrs attrs;
  attrs.heads = u32(heads);
  attrs.tokens = u32(tokens);
  attrs.head_width = u32(width);
  attrs.value_width = u32(s.value_width);
  attrs.rounds = u32(rounds);
  attrs.chunk = u32(chunk);
  attrs.before = 1;
  attrs.causal = causal ? ChunkAttentionAttrs::Causal::kYes : ChunkAttentionAttrs::Causal::kNo;
  attrs.keys = ChunkAttentionAttrs::Keys::kQueries;
  attrs.q = attrs.k = separate_heads(attrs.heads, attrs.tokens, attrs.head_width, 0);
  attrs.v = separate_heads(attrs.heads, attrs.tokens, attrs.value_width, u32(q.size()));
  CheckCase made;
  Array both{{q.size() + v.size()}, q.data};
  both.data.insert(both.data.end(), v.data.begin(), v.data.end());
  const TensorId x = made.op.bind("x", floats(both));
  Tensor list = Tensor::zeros(DType::kU32, order.shape);
  auto* at = reinterpret_cast<uint32_t*>(list.bytes.data());
  for (const double value : order.data) *at++ = static_cast<uint32_t>(value);
  const TensorId by = made.op.bind("order", std::move(list));
  VKF_ASSIGN(const TensorId id, add_chunk_attention(made.op.graph, {.x = x, .order = by}, attrs));
  made.op.name_output(id, "y");
  y.shape = made.op.graph.tensor(id).shape;
  made.expected.emplace("y", Expected{std::move(y), terms(std::max(2 * chunk, 65 + width)), 4});
  return made;
}

Result<CheckCase> mix_case(const Shape& shape) {
  Array x = random_array(shape, 5);
  for (int64_t i = shape[4] - 1; i < x.size(); i += shape[4]) x[i] = 1 + x[i] * x[i];
  x = reference::round_to_f32(std::move(x));
  VKF_ASSIGN(Array y, reference::mix_rounds(x));
  CheckCase made;
  const TensorId from = made.op.bind("x", floats(x));
  VKF_ASSIGN(const TensorId to, add_mix_rounds(made.op.graph, from));
  made.op.name_output(to, "y");
  y.shape = made.op.graph.tensor(to).shape;
  made.expected.emplace("y", Expected{std::move(y), terms(4 * shape[2]), 4});
  return made;
}

}  // namespace

void add_linear_attention_checks(CheckList& list) {
  for (const Sizes& s : kSizes) {
    const std::string at = size_text(s.q) + "-" + std::to_string(s.value_width);
    for (const bool causal : {false, true}) {
      const std::string how = causal ? "-causal/" : "/";
      list.add("linear_attention", "elu" + how + at, is_quick(s),
               [=] { return linear_case(s, false, causal); });
      list.add("linear_attention", "favor" + how + at, is_quick(s),
               [=] { return linear_case(s, true, causal); });
    }
    if (s.q[2] < 1500) {
      for (const bool causal : {false, true}) {
        list.add("linear_attention", std::string(causal ? "weights-causal/" : "weights/") + at,
                 is_quick(s), [=] { return linear_weights_case(s, causal); });
      }
      list.add("linear_attention", "step/" + at, is_quick(s), [=] { return linear_step_case(s); });
    }
    list.add("sequence_projection", "linformer/" + at, is_quick(s),
             [=] { return linformer_case(s); });
  }
}

void add_landmark_checks(CheckList& list) {
  for (const auto& [s, landmarks] :
       {std::pair{Sizes{{1, 1, 4, 4}, 4}, 2}, std::pair{Sizes{{2, 2, 33, 16}, 16}, 11},
        std::pair{Sizes{{1, 2, 128, 32}, 24}, 64}}) {
    for (const bool exact : {false, true}) {
      const std::string at = size_text(s.q) + "-" + std::to_string(landmarks);
      list.add("inverse_start", (exact ? "exact/" : "original/") + at, landmarks == 11,
               [s = s, m = landmarks, exact] { return nystrom_case(s, m, exact); });
    }
  }
  for (const Shape& shape :
       {Shape{1, 1, 1, 1}, Shape{2, 2, 33, 16}, Shape{1, 2, 257, 64}, Shape{1, 1, 1500, 7}}) {
    const bool quick = shape[2] == 33;
    list.add("lsh_hash", "whole/" + size_text(shape), quick,
             [=] { return hash_case(shape, 2, 3); });
    list.add("lsh_hash", "many/" + size_text(shape), quick,
             [=] { return hash_case(shape, 1, 33); });
    const Shape units{shape[0], shape[1], 2, shape[2]};
    list.add("lsh_sort", "few/" + size_text(units), quick, [=] { return sort_case(units, 5); });
    list.add("lsh_sort", "many/" + size_text(units), quick, [=] { return sort_case(units, 300); });
    list.add("mix_rounds", "plain/" + size_text(units) + "x" + std::to_string(shape[3] + 2), quick,
             [=] {
               return mix_case({units[0], units[1], 3, units[3], shape[3] + 2});
             });
  }
  for (const auto& [s, chunk] :
       {std::pair{Sizes{{1, 1, 4, 4}, 4}, 2}, std::pair{Sizes{{1, 2, 33, 16}, 16}, 11},
        std::pair{Sizes{{1, 2, 256, 64}, 40}, 64}}) {
    for (const bool causal : {false, true}) {
      list.add("chunk_attention",
               (causal ? "causal/" : "plain/") + size_text(s.q) + "-" + std::to_string(chunk),
               chunk == 11, [s = s, c = chunk, causal] { return chunk_case(s, 2, c, causal); });
    }
  }
}

}  // namespace vkformer::conformance
