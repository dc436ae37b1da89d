// What MultiHeadAttention (vkformer/attention.h) does: stacks the projections once, then makes and
// runs a graph of the block for each call.
#pragma once

#include <memory>
#include <optional>

#include "vkformer/attention.h"

namespace vkformer {

class VulkanDevice;

class MultiHeadAttentionSession {
 public:
  static Result<MultiHeadAttentionSession> create(std::shared_ptr<VulkanDevice> device,
                                                  const MultiHeadAttentionOptions& options,
                                                  const TensorMap& weights);

  // x F32 (B, T, D), key_mask (B, T) or null.
  Result<AttentionResult> run(const Tensor& x, const Tensor* key_mask) const;

 private:
  MultiHeadAttentionSession(std::shared_ptr<VulkanDevice> device,
                            const MultiHeadAttentionOptions& options)
      : device_(std::move(device)), options_(options) {}

  std::shared_ptr<VulkanDevice> device_;
  const MultiHeadAttentionOptions options_;
  TensorMap weights_;  // qkv (3 D, D) or (3 E, E), qkv_bias, output (D, D), output_bias
};

}  // namespace vkformer
