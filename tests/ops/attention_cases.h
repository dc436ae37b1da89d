// Random attention problems, run on the GPU and by the double-precision reference: what the tests
// of attention and attention_weights share.
#pragma once

#include <optional>
#include <string>

#include "ops/attention.h"
#include "reference/attention.h"
#include "support/operator_check.h"

namespace vkformer::testing {

struct AttentionCase {
  int64_t batch = 1;        // B
  int64_t heads = 1;        // H
  int64_t kv_heads = 1;     // Hkv
  int64_t queries = 1;      // T
  int64_t keys = 1;         // S
  int64_t head_width = 8;   // E
  int64_t value_width = 8;  // Ev
  float spread = 1.0f;      // of the elements of q and k
  float temperature = 1.0f;
  std::optional<float> scale = std::nullopt;
  reference::MaskOptions masks = {};  // causal and windows; the rest is made by the flags
  enum Terms : uint32_t { kNone = 0, kKeyMask = 1, kMask = 2, kBias = 4, kAlibi = 8 };
  uint32_t terms = kNone;

  std::string text() const {
    return "B" + std::to_string(batch) + " H" + std::to_string(heads) + "/" +
           std::to_string(kv_heads) + " T" + std::to_string(queries) + " S" + std::to_string(keys) +
           " E" + std::to_string(head_width) + "/" + std::to_string(value_width) + " terms " +
           std::to_string(terms);
  }
};

// Everything that both sides compute from.
struct AttentionProblem {
  Tensor q;                        // (B, H, T, E)
  Tensor k;                        // (B, Hkv, S, E)
  Tensor v;                        // (B, Hkv, S, Ev)
  std::optional<Tensor> key_mask;  // (B, S)
  std::optional<Tensor> mask;      // (B, 1, T, S)
  std::optional<Tensor> bias;      // (1, H, T, S)
  std::optional<Tensor> slopes;    // (H)
};

// Reproducible numbers in [-1, 1).
class Noise {
 public:
  float next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<float>(static_cast<int32_t>(state_ >> 32)) * (1.0f / 2147483648.0f);
  }
  Tensor tensor(Shape shape, float spread) {
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& value : values) value = spread * next();
    return Tensor::from_floats(std::move(shape), values);
  }
  // Bits, one in `one_in` of them zero.
  Tensor mask(Shape shape, float share_masked) {
    Tensor tensor = Tensor::zeros(DType::kU8, std::move(shape));
    for (std::byte& b : tensor.bytes) {
      b = static_cast<std::byte>(next() * 0.5f + 0.5f < share_masked ? 0 : 1);
    }
    return tensor;
  }

 private:
  uint64_t state_ = 12345;
};

inline AttentionProblem make_problem(const AttentionCase& c) {
  Noise noise;
  AttentionProblem p;
  p.q = noise.tensor({c.batch, c.heads, c.queries, c.head_width}, c.spread);
  p.k = noise.tensor({c.batch, c.kv_heads, c.keys, c.head_width}, c.spread);
  p.v = noise.tensor({c.batch, c.kv_heads, c.keys, c.value_width}, 1.0f);
  if (c.terms & AttentionCase::kKeyMask) p.key_mask = noise.mask({c.batch, c.keys}, 0.3f);
  if (c.terms & AttentionCase::kMask) {
    p.mask = noise.mask({c.batch, 1, c.queries, c.keys}, 0.4f);
    // One row that may look at nothing.
    for (int64_t j = 0; j < c.keys; ++j) p.mask->bytes[static_cast<size_t>(j)] = std::byte{0};
  }
  if (c.terms & AttentionCase::kBias) {
    p.bias = noise.tensor({1, c.heads, c.queries, c.keys}, 2.0f);
    for (size_t at = 3; at < p.bias->bytes.size() / 4; at += 7) {
      const float forbidden = -kInfinity;
      std::memcpy(p.bias->bytes.data() + 4 * at, &forbidden, 4);
    }
  }
  if (c.terms & AttentionCase::kAlibi) p.slopes = noise.tensor({c.heads}, 0.2f);
  return p;
}

inline ScoreTerms make_terms(const AttentionCase& c, const AttentionProblem& p) {
  ScoreTermsInput input{p.key_mask, p.mask, p.bias, {}};
  if (p.slopes) input.alibi_slopes = *p.slopes->to_floats();
  const int64_t dims[] = {c.batch, c.heads, c.queries, c.keys};
  Result<ScoreTerms> packed = pack_score_terms(input, dims);
  REQUIRE(packed);
  ScoreTermsParams& params = packed->params;
  if (c.masks.causal) params.flags |= VKF_TERM_CAUSAL;
  if (c.masks.window_left) params.flags |= VKF_TERM_WINDOW_LEFT;
  if (c.masks.window_right) params.flags |= VKF_TERM_WINDOW_RIGHT;
  params.causal_offset = static_cast<int32_t>(c.masks.causal_offset);
  params.window_left = static_cast<int32_t>(c.masks.window_left.value_or(0));
  params.window_right = static_cast<int32_t>(c.masks.window_right.value_or(0));
  return *packed;
}

// k, then v, in one tensor (elements).
inline Tensor join_kv(const Tensor& k, const Tensor& v) {
  Tensor kv = Tensor::zeros(DType::kF32, {k.count() + v.count()});
  std::memcpy(kv.bytes.data(), k.bytes.data(), k.bytes.size());
  std::memcpy(kv.bytes.data() + k.bytes.size(), v.bytes.data(), v.bytes.size());
  return kv;
}

// q, k, v contiguous (B, H, T, E), y likewise.
inline AttentionAttrs make_attrs(const AttentionCase& c, const ScoreTermsParams& terms) {
  const auto u = [](int64_t value) { return static_cast<uint32_t>(value); };
  AttentionAttrs a;
  a.batch = u(c.batch);
  a.heads = u(c.heads);
  a.kv_heads = u(c.kv_heads);
  a.queries = u(c.queries);
  a.keys = u(c.keys);
  a.head_width = u(c.head_width);
  a.value_width = u(c.value_width);
  a.q = separate_heads(a.heads, a.queries, a.head_width, 0);
  a.k = separate_heads(a.kv_heads, a.keys, a.head_width, 0);
  a.v = separate_heads(a.kv_heads, a.keys, a.value_width,
                       a.batch * a.kv_heads * a.keys * a.head_width);
  a.y = separate_heads(a.heads, a.queries, a.value_width, 0);
  a.y_shape = {c.batch, c.heads, c.queries, c.value_width};
  a.scale = c.scale;
  a.temperature = c.temperature;
  a.terms = terms;
  return a;
}

inline reference::AttentionOutputs reference_outputs(const AttentionCase& c,
                                                     const AttentionProblem& p) {
  const auto array = [](const std::optional<Tensor>& t) {
    return t ? *reference::from_tensor(*t) : reference::Array{};
  };
  const reference::Array key_mask = array(p.key_mask);
  const reference::Array mask = array(p.mask);
  const reference::Array bias = array(p.bias);
  const reference::Array slopes = array(p.slopes);
  reference::AttentionOptions options{c.scale, c.temperature, c.masks, nullptr, nullptr};
  if (p.key_mask) options.masks.key_mask = &key_mask;
  if (p.mask) options.masks.mask = &mask;
  if (p.bias) options.bias = &bias;
  if (p.slopes) options.alibi_slopes = &slopes;
  Result<reference::AttentionOutputs> out =
      reference::attention_weights(*reference::from_tensor(p.q), *reference::from_tensor(p.k),
                                   *reference::from_tensor(p.v), options);
  REQUIRE(out);
  return *out;
}

// check() of the case as it is, causal, causal at an offset with a window, and between two windows.
template <class Check>
void for_each_mask(AttentionCase c, const Check& check) {
  check(c);
  c.masks.causal = true;
  check(c);
  c.masks.causal_offset = 49;
  c.masks.window_left = 5;
  check(c);
  c.masks.causal = false;
  c.masks.window_right = 3;
  check(c);
}

inline void set_element(Tensor& tensor, size_t index, float value) {
  std::memcpy(tensor.bytes.data() + 4 * index, &value, 4);
}

// The operator with its inputs bound; `softcap` 0: none.
inline PreparedOperator prepare_attention(const AttentionCase& c, const AttentionProblem& p,
                                          float softcap = 0) {
  const ScoreTerms terms = make_terms(c, p);
  PreparedOperator op;
  AttentionInputs inputs;
  inputs.q = op.bind("q", p.q);
  inputs.kv = op.bind("kv", join_kv(p.k, p.v));
  if (c.terms != AttentionCase::kNone) inputs.terms = op.bind("terms", terms.words);
  AttentionAttrs attrs = make_attrs(c, terms.params);
  attrs.softcap = softcap;
  Result<TensorId> y = add_attention(op.graph, inputs, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

}  // namespace vkformer::testing
