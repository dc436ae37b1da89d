#include "vkformer/attention.h"

#include "base/check.h"
#include "base/guarded.h"
#include "session/multi_head_attention_session.h"

namespace vkformer {

struct MultiHeadAttention::Impl {
  MultiHeadAttentionSession session;
};

Result<MultiHeadAttention> MultiHeadAttention::create(const Device& device,
                                                      const MultiHeadAttentionOptions& options,
                                                      const TensorMap& weights) {
  return guarded([&]() -> Result<MultiHeadAttention> {
    VKF_ASSIGN(MultiHeadAttentionSession session,
               MultiHeadAttentionSession::create(device.impl(), options, weights));
    return MultiHeadAttention(std::make_shared<const Impl>(Impl{std::move(session)}));
  });
}

Result<AttentionResult> MultiHeadAttention::run(const Tensor& x, const Tensor* key_mask) const {
  return guarded([&] { return impl_->session.run(x, key_mask); });
}

}  // namespace vkformer
