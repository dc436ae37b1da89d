// Checks of attention in linear time, by landmarks, by hashes and over projected sequences.
#include <algorithm>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/content.h"
#include "ops/attention.h"
#include "ops/chunk_attention.h"
#include "ops/lsh_sort.h"
#include "ops/mix_rounds.h"
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
