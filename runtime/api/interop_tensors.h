// Tensors in buffers of the application, between vulkan_interop.h and the rooms.
#pragma once

#include "recording/recorded_graph.h"
#include "vkformer/vulkan_interop.h"

namespace vkformer {

OperatorTensor described(const TensorDesc& desc);
// The application's ranges as places of tensors.
Result<std::map<std::string, TensorPlace>> tensor_places(
    const std::map<std::string, BufferRange>& buffers);

}  // namespace vkformer
