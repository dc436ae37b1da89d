#include "reference/attention.h"

#include "base/check.h"

namespace vkformer::reference {

Result<Array> attention(const Array& q, const Array& k, const Array& v,
                        const AttentionOptions& options) {
  VKF_ASSIGN(AttentionOutputs outputs, attention_weights(q, k, v, options));
  return std::move(outputs.output);
}

}  // namespace vkformer::reference
