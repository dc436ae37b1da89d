// One operator made ready for the application's command buffers (RecordedOperator).
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "operators/operator_arguments.h"
#include "vulkan/recording.h"

namespace vkformer {

class AppendedOperator {
 public:
  static Result<AppendedOperator> create(std::shared_ptr<VulkanDevice> device,
                                         const OperatorCall& call);

  // External tensors of the graph that the call gives values for, and the others.
  std::map<std::string, TensorDesc> tensors(bool outputs) const;
  // Memory of tensors by name; the views must outlive this object.
  Status bind(const std::map<std::string, BufferSpan>& places);
  Status append(VkCommandBuffer_T* commands);

 private:
  Result<BufferSpan> own_input(const TensorDesc& desc, uint64_t bytes);

  std::shared_ptr<VulkanDevice> device_;
  PreparedOperator op_;
  std::vector<std::unique_ptr<Buffer>> own_;  // inputs that nobody else holds
  std::optional<Recording> recording_;
};

}  // namespace vkformer
