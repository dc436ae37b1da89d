// Looks at what every dispatch wrote, of whatever runs on a device. By this means a NaN is traced
// to the operator that made it, and two devices are compared layer by layer.
#pragma once

#include <functional>
#include <memory>

#include "vkformer/export.h"
#include "vkformer/tensor.h"
#include "vulkan/device.h"

namespace vkformer {

// A tensor, or part of one, that a dispatch has just written.
struct WatchedTensor {
  const char* op = "";       // ops/op_list.def
  const std::string& label;  // where in the model
  std::string_view kernel;   // variant
  const std::string& name;
  const Shape& shape;  // empty for an operator's own scratch memory
  DType dtype = DType::kF32;
  std::span<const std::byte> bytes;
  bool finished = false;  // no later dispatch of the same operator writes it
};
// An error of it ends the run.
using DispatchWatcher = std::function<Status(const WatchedTensor& tensor)>;

// From here on every dispatch runs alone and is looked at; an empty watcher ends that. An error
// while a profile is being taken. Precondition: nobody else uses the device meanwhile.
VKFORMER_API Status watch_dispatches(const std::shared_ptr<VulkanDevice>& device,
                                     DispatchWatcher watcher);

}  // namespace vkformer
