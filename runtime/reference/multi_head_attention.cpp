#include "reference/multi_head_attention.h"

#include <string>

#include "base/check.h"
#include "base/message.h"
#include "reference/matmul.h"

namespace vkformer::reference {
namespace {

constexpr const char* kMultiHeadName = "multi_head_attention";

// Queries, keys and values, split into heads.
struct Heads {
  Array q;  // (B, H, T, E)
  Array k;  // (B, Hkv, S, E)
  Array v;  // (B, Hkv, S, E)
};

// x W^T + b. x (..., K) -> (..., N).
Result<Array> linear(const Array& x, const LinearWeights& weights, std::string_view role) {
  if (!weights.weight) {
    return invalid_argument(
        message({"[multi_head_attention] The ", role, " projection has no weight; give one."}));
  }
  MatmulOptions options;
  options.trans_b = true;
  options.bias = weights.bias;
  Result<Array> y = matmul(x, *weights.weight, options);
  if (!y) return y.error().with_context("[multi_head_attention] " + std::string(role));
  return y;
}

// Columns [first, first + count) of the last axis.
Array columns(const Array& x, int64_t first, int64_t count) {
  Shape shape = x.shape;
  shape.back() = count;
  Array y = filled(shape, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i / count * x.dim(-1) + first + i % count];
  return y;
}

// As split_heads, or an error when the width does not divide.
Result<Array> split(const Array& x, int64_t heads, std::string_view role) {
  if (x.dim(-1) % heads == 0) return split_heads(x, heads);
  return invalid_argument(
      message({"[multi_head_attention] The ", role, " are ", x.dim(-1),
               " wide, which does not divide into ", heads, " heads; change one of them."}));
}

Result<Heads> project_separate(const Array& x, const Array& memory,
                               const MultiHeadAttentionWeights& weights, int64_t heads,
                               int64_t key_heads) {
  VKF_ASSIGN(const Array q, linear(x, weights.query, "query"));
  VKF_ASSIGN(const Array k, linear(memory, weights.key, "key"));
  VKF_ASSIGN(const Array v, linear(memory, weights.value, "value"));
  Heads out;
  VKF_ASSIGN(out.q, split(q, heads, "queries"));
  VKF_ASSIGN(out.k, split(k, key_heads, "keys"));
  VKF_ASSIGN(out.v, split(v, key_heads, "values"));
  return out;
}

Result<Heads> project_merged(const Array& x, const Array& memory, const LinearWeights& weights,
                             int64_t heads, int64_t key_heads) {
  VKF_ASSIGN(const Array from_x, linear(x, weights, "merged"));
  VKF_ASSIGN(const Array from_memory, linear(memory, weights, "merged"));
  const int64_t rows = heads + 2 * key_heads;
  if (from_x.dim(-1) % rows != 0) {
    return invalid_argument(
        message({"[multi_head_attention] The merged projection has ", from_x.dim(-1),
                 " outputs; they must be a multiple of heads + 2 key/value heads, ", rows, "."}));
  }
  const int64_t width = from_x.dim(-1) / rows;
  const int64_t key_columns = key_heads * width;
  const int64_t key_first = heads * width;
  return Heads{
      split_heads(columns(from_x, 0, key_first), heads),
      split_heads(columns(from_memory, key_first, key_columns), key_heads),
      split_heads(columns(from_memory, key_first + key_columns, key_columns), key_heads),
  };
}

Result<Heads> project_shared(const Array& x, const Array& memory,
                             const MultiHeadAttentionWeights& weights, int64_t heads) {
  VKF_ASSIGN(const Array x_heads, split(x, heads, "hidden states"));
  VKF_ASSIGN(const Array memory_heads, split(memory, heads, "memory states"));
  Heads out;
  VKF_ASSIGN(out.q, linear(x_heads, weights.query, "query"));
  VKF_ASSIGN(out.k, linear(memory_heads, weights.key, "key"));
  VKF_ASSIGN(out.v, linear(memory_heads, weights.value, "value"));
  return out;
}

Status check_states(const Array& x, const Array& memory, int64_t heads, int64_t key_heads) {
  VKF_CHECK(check_array(x, kMultiHeadName, "x"));
  VKF_CHECK(check_array(memory, kMultiHeadName, "memory"));
  if (x.rank() != 3 || memory.rank() != 3 || x.dim(0) != memory.dim(0)) {
    return invalid_argument(
        message({"[multi_head_attention] x has shape ", shape_text(x.shape), " and the memory ",
                 shape_text(memory.shape),
                 "; both need three axes, batch, token, width, and equal batches."}));
  }
  if (heads < 1 || key_heads < 1 || heads % key_heads != 0) {
    return invalid_argument(message(
        {"[multi_head_attention] There are ", heads, " heads and ", key_heads,
         " key/value heads; both must be at least 1 and the first a multiple of the second."}));
  }
  return {};
}

}  // namespace

Array split_heads(const Array& x, int64_t heads) {
  const int64_t tokens = x.dim(1);
  const int64_t width = x.dim(2) / heads;
  Array y = filled({x.dim(0), heads, tokens, width}, 0.0);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t e = i % width;
    const int64_t h = i / width % heads;
    const int64_t t = i / (width * heads) % tokens;
    const int64_t b = i / (width * heads * tokens);
    y[((b * heads + h) * tokens + t) * width + e] = x[i];
  }
  return y;
}

Array merge_heads(const Array& x) {
  const int64_t heads = x.dim(1);
  const int64_t tokens = x.dim(2);
  const int64_t width = x.dim(3);
  Array y = filled({x.dim(0), tokens, heads * width}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t e = i % width;
    const int64_t h = i / width % heads;
    const int64_t t = i / (width * heads) % tokens;
    const int64_t b = i / (width * heads * tokens);
    y[i] = x[((b * heads + h) * tokens + t) * width + e];
  }
  return y;
}

Result<MultiHeadAttentionOutputs> multi_head_attention(const Array& x,
                                                       const MultiHeadAttentionWeights& weights,
                                                       const MultiHeadAttentionOptions& options) {
  const Array& memory = options.memory ? *options.memory : x;
  const int64_t heads = options.heads;
  const int64_t key_heads = options.key_heads == 0 ? heads : options.key_heads;
  VKF_CHECK(check_states(x, memory, heads, key_heads));
  Heads projected;
  switch (weights.layout) {
    case ProjectionLayout::kSeparate: {
      VKF_ASSIGN(projected, project_separate(x, memory, weights, heads, key_heads));
      break;
    }
    case ProjectionLayout::kMerged: {
      VKF_ASSIGN(projected, project_merged(x, memory, weights.merged, heads, key_heads));
      break;
    }
    case ProjectionLayout::kSharedByHeads: {
      if (key_heads != heads) {
        return invalid_argument(
            message({"[multi_head_attention] A projection shared by all heads needs ", heads,
                     " key/value heads, not ", key_heads, "."}));
      }
      VKF_ASSIGN(projected, project_shared(x, memory, weights, heads));
      break;
    }
  }
  VKF_ASSIGN(AttentionOutputs attended,
             attention_weights(projected.q, projected.k, projected.v, options.attention));
  MultiHeadAttentionOutputs out;
  out.output = merge_heads(attended.output);
  if (weights.output.weight) {
    VKF_ASSIGN(out.output, linear(out.output, weights.output, "output"));
  }
  out.weights = std::move(attended.weights);
  out.entropy = std::move(attended.entropy);
  return out;
}

}  // namespace vkformer::reference
