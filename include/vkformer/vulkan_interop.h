// Adopting the application's own Vulkan device. The one public header that includes Vulkan.
//
// Threading: see queue_lock below. Lifetime: the application's objects must outlive every Device,
// Model and Session made from them; vkformer destroys none of them.
#pragma once

#include <vulkan/vulkan_core.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/operators.h"

namespace vkformer {

// An application's device, handed over as it is. Nothing beyond Vulkan 1.1 is required of it;
// what the application enabled is stated here because Vulkan cannot be asked.
struct AdoptedDevice {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;  // the application's loader
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  uint32_t queue_family = 0;  // must support compute
  VkQueue queue = VK_NULL_HANDLE;
  // Version the application gave in VkApplicationInfo::apiVersion; at least 1.1.
  uint32_t api_version = VK_API_VERSION_1_1;
  // The features that were enabled, as passed to vkCreateDevice: the chain may hold
  // VkPhysicalDeviceVulkan11Features, Vulkan12Features, ShaderFloat16Int8, TimelineSemaphore.
  // Null: none are assumed.
  const VkPhysicalDeviceFeatures2* enabled_features = nullptr;
  // The device extensions that were enabled.
  std::vector<std::string> enabled_extensions;
  // Called around every vkQueueSubmit when the application submits to the same queue elsewhere:
  // queue_lock() before, queue_unlock() after. Empty: vkformer is the queue's only user.
  std::function<void()> queue_lock;
  std::function<void()> queue_unlock;
};

// Wraps the application's device. `options.device` is ignored; tier and limits clamp as usual.
VKFORMER_API Result<Device> adopt_device(const AdoptedDevice& adopted,
                                         const DeviceOptions& options = {});

// A part of one of the application's buffers, made with VK_BUFFER_USAGE_STORAGE_BUFFER_BIT.
struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;  // bytes; a multiple of minStorageBufferOffsetAlignment
  VkDeviceSize bytes = 0;
};

// A tensor that an operator reads or writes, as it lies in memory: contiguous, 4 bytes an element.
struct OperatorTensor {
  DType dtype = DType::kF32;
  Shape shape;
  VkDeviceSize bytes = 0;  // that its buffer must have at least
};

// One operator, an attention for instance, for fixed shapes, appended to the application's own
// command buffers without any model.
//
// Threading: one thread at a time per object. Lifetime: must outlive the execution of every command
// buffer that it was recorded into, as must the buffers.
class VKFORMER_API RecordedOperator {
 public:
  // `call` is as for run_operator (operators.h). Only dtype and shape are used of inputs that
  // bind() will name; the others are uploaded from it, here.
  static Result<RecordedOperator> create(const Device& device, const OperatorCall& call);
  RecordedOperator(RecordedOperator&&) noexcept;
  RecordedOperator& operator=(RecordedOperator&&) noexcept;
  ~RecordedOperator();

  // What can be bound, by name: what the operator reads on the device (attention joins K and V to
  // KV: all of K, then all of V) and its outputs.
  const std::map<std::string, OperatorTensor>& inputs() const;
  const std::map<std::string, OperatorTensor>& outputs() const;
  // Says where tensors lie; every output must have a place, inputs without one are uploaded from
  // the call. Makes pipelines and temporaries. Call it once, before record().
  Status bind(const std::map<std::string, BufferRange>& buffers);

  // Appends the dispatches and the barriers between them to a command buffer that is being
  // recorded, outside a render pass. Before it, the inputs must have been made visible to shader
  // reads of the compute stage; after it, the outputs are shader writes of that stage, for the
  // application's own barrier. The bound compute pipeline, descriptor sets and push constants are
  // changed.
  Status record(VkCommandBuffer commands);

  struct Impl;

 private:
  explicit RecordedOperator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vkformer
