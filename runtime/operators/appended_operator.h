// One operator made ready for the application's command buffers (RecordedOperator).
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "operators/operator_arguments.h"
#include "recording/recorded_graph.h"

namespace vkformer {

class AppendedOperator {
 public:
  static Result<AppendedOperator> create(std::shared_ptr<VulkanDevice> device,
                                         const OperatorCall& call);

  // External tensors of the graph that the call gives values for, and the others.
  std::map<std::string, TensorDesc> tensors(bool outputs) const;
  // Memory of tensors by name.
  Status bind(const std::map<std::string, TensorPlace>& places);
  Status append(VkCommandBuffer_T* commands);

 private:
  explicit AppendedOperator(std::shared_ptr<VulkanDevice> device)
      : memory_(std::make_unique<PassMemory>(std::move(device))) {}
  // Inputs that the application gave no buffer for, into our own.
  Status write_inputs();

  std::unique_ptr<PassMemory> memory_;  // does not move: the recording points at it
  PreparedOperator op_;
  std::optional<RecordedGraph> graph_;
};

}  // namespace vkformer
