// Tensors in buffers of the application: vulkan_interop.h, as recordings take them.
#pragma once

#include "recording/recorded_graph.h"
#include "vkformer/vulkan_interop.h"

namespace vkformer {

// Shape and bytes of a tensor; 4 bytes an element where desc.bytes is 0.
OperatorTensor described(const TensorDesc& desc);
// The places of `buffers`, by name. An error names one without a buffer.
Result<std::map<std::string, TensorPlace>> tensor_places(
    const std::map<std::string, BufferRange>& buffers);

}  // namespace vkformer
