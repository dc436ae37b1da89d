#include "vkformer/attention.h"

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "session/multi_head_attention_session.h"

namespace vkformer {

Result<MultiHeadAttention> MultiHeadAttention::create(const Device& device,
                                                      const MultiHeadAttentionOptions& options,
                                                      const TensorMap& weights) {
  return guarded([&]() -> Result<MultiHeadAttention> {
    VKF_ASSIGN(MultiHeadAttentionSession session,
               MultiHeadAttentionSession::create(HandleAccess::impl(device), options, weights));
    return HandleAccess::make<MultiHeadAttention>(
        std::make_shared<const MultiHeadAttentionSession>(std::move(session)));
  });
}

Result<AttentionResult> MultiHeadAttention::run(const Tensor& x, const Tensor* key_mask) const {
  return guarded([&] { return impl_->run(x, key_mask); });
}

}  // namespace vkformer
