// Multi-head attention (Vaswani et al. 2017) as one object, without any model: for experiments, and
// for engines that bring their own weights.
//
// Threading: run may be called from several threads at once; nothing is shared between calls.
// Lifetime: a shared handle. It keeps its Device alive, and copies share the weights, which are
// never written.
#pragma once

#include <cstdint>
#include <memory>

#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/tensor.h"

namespace vkformer {

class MultiHeadAttentionSession;

struct MultiHeadAttentionOptions {
  // D, the width of a token, in elements.
  int64_t d_model = 0;
  // H, a divisor of D; a head is E = D / H wide, at most 256.
  int64_t heads = 1;
  // How the query, key and value projections are stored.
  enum class Projection : uint8_t {
    kSeparate,       // query.weight, key.weight, value.weight (D, D)
    kMerged,         // qkv.weight (3 D, D), rows [q | k | v]
    kSharedByHeads,  // query.weight, key.weight, value.weight (E, E), applied to every head
  } projection = Projection::kSeparate;
  // Whether a token attends to itself and earlier tokens only.
  bool causal = false;
  // Whether run also returns the attention weights, which costs a separate pass.
  bool keep_weights = true;
};

struct AttentionResult {
  // F32 (B, T, D)
  Tensor output;
  // F32 (B, H, T, T): how much query token t looks at key token s; a query without an allowed key
  // has zeros. Empty without keep_weights.
  Tensor weights;
};

class MultiHeadAttention {
 public:
  // `weights` holds the tensors that the projection kind names, each as (out, in), optionally with
  // a bias ("query.bias", ...) (out). "output.weight" (D, D) and "output.bias" (D) are optional,
  // too. Any float type is taken. Without output.weight the merged heads are the output.
  static VKFORMER_API Result<MultiHeadAttention> create(const Device& device,
                                                        const MultiHeadAttentionOptions& options,
                                                        const TensorMap& weights);

  // Attends. x F32 (B, T, D); key_mask (B, T), nonzero = may be looked at, or null.
  VKFORMER_API Result<AttentionResult> run(const Tensor& x, const Tensor* key_mask) const;

 private:
  friend struct HandleAccess;
  explicit MultiHeadAttention(std::shared_ptr<const MultiHeadAttentionSession> impl)
      : impl_(std::move(impl)) {}
  std::shared_ptr<const MultiHeadAttentionSession> impl_;
};

}  // namespace vkformer
