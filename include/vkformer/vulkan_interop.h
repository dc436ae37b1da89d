// Adopting the application's own Vulkan device. The one public header that includes Vulkan.
//
// Threading: see queue_lock below. Lifetime: the application owns its objects: instance, device,
// queue, buffers, images, semaphores. They must outlive every Device, Model and Session made from
// them; vkformer destroys none of them. Structs and feature chains are read during the call only.
#pragma once

#include <vulkan/vulkan_core.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/operators.h"
#include "vkformer/picture.h"
#include "vkformer/session.h"

namespace vkformer {

class FeatureChainState;
class RecordedOperatorState;

// What is worth enabling on a physical device before the application makes its VkDevice. Nothing
// is required beyond Vulkan 1.1; all that is named here is offered by the device. FeatureChain
// enables it; set to VK_FALSE what shall stay off.
struct DeviceRequirements {
  std::vector<std::string> extensions;     // device extensions
  VkBool32 shader_float16 = VK_FALSE;      // faster `precision f16`
  VkBool32 timeline_semaphore = VK_FALSE;  // lighter synchronization; SemaphoreUse::value
  VkBool32 shader_int64 = VK_FALSE;        // wider loads on software devices
  // cooperativeMatrix with vulkanMemoryModel and vulkanMemoryModelDeviceScope: `precision f16` on
  // matrix units.
  VkBool32 cooperative_matrix = VK_FALSE;
  // cooperativeMatrixReductions, cooperativeMatrixConversions and
  // cooperativeMatrixPerElementOperations with maintenance4: attention's scores stay in those
  // units.
  VkBool32 cooperative_matrix2 = VK_FALSE;
  // subgroupSizeControl with computeFullSubgroups: without both, matrix units stay off on devices
  // whose subgroups may have several sizes.
  VkBool32 subgroup_size_control = VK_FALSE;
  // shaderStorageBufferArrayDynamicIndexing, runtimeDescriptorArray,
  // descriptorBindingVariableDescriptorCount and descriptorBindingStorageBufferUpdateAfterBind,
  // without robustBufferAccess: several times faster products and attention on one software device.
  VkBool32 descriptor_indexing = VK_FALSE;
  VkBool32 integer_dot_product = VK_FALSE;  // shaderIntegerDotProduct: faster `precision int8`
  // computeOccupancyPriority: dispatches leave most of the GPU to graphics that runs beside them,
  // unless DeviceOptions::queue_priority is kNormal.
  VkBool32 compute_occupancy_priority = VK_FALSE;
  // A family for vkformer's own queue: computing beside the graphics queue where there is one.
  uint32_t queue_family = 0;
  // The extension with which that queue can be made of VK_QUEUE_GLOBAL_PRIORITY_LOW_KHR, so that it
  // does not starve graphics (VkDeviceQueueGlobalPriorityCreateInfoKHR); empty: there is none.
  std::string low_priority_extension;
};

// `api_version` as in AdoptedDevice.
VKFORMER_API Result<DeviceRequirements> device_requirements(PFN_vkGetInstanceProcAddr get,
                                                            VkInstance instance,
                                                            VkPhysicalDevice physical_device,
                                                            uint32_t api_version);

// The features and extensions of DeviceRequirements as vkCreateDevice and adopt_device take them,
// beside the application's own.
//
// Threading: one thread at a time. Lifetime: move-only. It owns the structs that it adds to a chain
// and the names of extensions, so it must stay until both calls have returned.
class VKFORMER_API FeatureChain {
 public:
  // `own` are the features that the application enables for itself: their chain gets what it lacks.
  // A feature is set in a struct that the chain holds, or in one that is added at its end.
  // VkPhysicalDeviceVulkan12Features and VkPhysicalDeviceVulkan13Features come before those of
  // extensions. Null: there are none. Where `own` enables robustBufferAccess, descriptor indexing
  // stays off. `own_extensions` are the device extensions that the application enables.
  static Result<FeatureChain> create(const DeviceRequirements& wanted,
                                     VkPhysicalDeviceFeatures2* own = nullptr,
                                     std::span<const std::string> own_extensions = {});
  FeatureChain(FeatureChain&&) noexcept;
  FeatureChain& operator=(FeatureChain&&) noexcept;
  ~FeatureChain();

  // `own`, or a chain of this object: VkDeviceCreateInfo::pNext, AdoptedDevice::enabled_features.
  const VkPhysicalDeviceFeatures2* features() const;
  // Both lists of extensions, each name once: AdoptedDevice::enabled_extensions.
  const std::vector<std::string>& extensions() const;
  // The same for VkDeviceCreateInfo::ppEnabledExtensionNames.
  const std::vector<const char*>& extension_names() const;

 private:
  friend struct HandleAccess;
  explicit FeatureChain(std::unique_ptr<FeatureChainState> impl);
  std::unique_ptr<FeatureChainState> impl_;
};

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
  // VkPhysicalDeviceVulkan11Features, Vulkan12Features, Vulkan13Features, ShaderFloat16Int8,
  // TimelineSemaphore, DescriptorIndexing, VulkanMemoryModel, SubgroupSizeControl, Maintenance4,
  // CooperativeMatrixFeaturesKHR and CooperativeMatrix2FeaturesNV. FeatureChain makes such a chain.
  // Null: none are assumed.
  const VkPhysicalDeviceFeatures2* enabled_features = nullptr;
  // The device extensions that were enabled.
  std::vector<std::string> enabled_extensions;
  // Called around every vkQueueSubmit when the application submits to the same queue elsewhere:
  // queue_lock() before, queue_unlock() after. Empty: vkformer is the queue's only user.
  std::function<void()> queue_lock;
  std::function<void()> queue_unlock;
  // The application's own pipeline cache, into which pipelines go that vkformer makes, from any
  // thread (so it must not be VK_PIPELINE_CACHE_CREATE_EXTERNALLY_SYNCHRONIZED_BIT). The library
  // then reads and writes no cache file. Null: a cache of vkformer's.
  VkPipelineCache pipeline_cache = VK_NULL_HANDLE;
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
// Threading: one thread at a time per object. Lifetime: move-only; keeps its Device alive. It must
// outlive the execution of every command buffer that it was recorded into, as must the buffers,
// which the application owns.
class VKFORMER_API RecordedOperator {
 public:
  // `call` is as for run_operator (operators.h). Only dtype and shape are used of inputs that
  // bind() will name; the others are uploaded from it, here.
  static Result<RecordedOperator> create(const Device& device, const OperatorCall& call);
  RecordedOperator(RecordedOperator&&) noexcept;
  RecordedOperator& operator=(RecordedOperator&&) noexcept;
  ~RecordedOperator();

  // What can be bound, by name: what the operator reads on the device, and its outputs. Attention
  // joins K and V to KV: all of K, then all of V.
  const std::map<std::string, OperatorTensor>& inputs() const;
  const std::map<std::string, OperatorTensor>& outputs() const;
  // Says where tensors lie; every output must have a place, inputs without one are uploaded from
  // the call. Makes pipelines and temporaries. Call it once, before record().
  Status bind(const std::map<std::string, BufferRange>& buffers);

  // Appends the dispatches and the barriers between them to a command buffer that is being
  // recorded, outside a render pass. Before it, the inputs must have been made visible to shader
  // reads of the compute stage. After it, the outputs are shader writes of that stage, for the
  // application's own barrier. The bound compute pipeline, descriptor sets and push constants are
  // changed.
  Status record(VkCommandBuffer commands);

 private:
  friend struct HandleAccess;
  explicit RecordedOperator(std::unique_ptr<RecordedOperatorState> impl);
  std::unique_ptr<RecordedOperatorState> impl_;
};

// A tensor of a pass that was started, and where it is: where the application placed it, or in
// memory of vkformer. That memory belongs to the device's queue family and stays until the session
// starts or runs another pass.
struct PassBuffer {
  OperatorTensor tensor;
  BufferRange range;
};

// Session::start with some tensors in the application's own buffers, bound without copies: inputs
// that its shaders wrote, outputs that they will read. `inputs` holds these inputs too, for their
// shapes; their values are not used. Names are those of pass_buffers(). Every placed tensor takes 4
// bytes an element, and none may overlap another. The device's queue family must own them, or they
// are VK_SHARING_MODE_CONCURRENT. finish() leaves placed outputs out. The session keeps its
// recording on these buffers for the next start: they must outlive it, or forget_buffers().
VKFORMER_API Status start_on_buffers(Session& session, const TensorMap& inputs,
                                     const std::map<std::string, BufferRange>& buffers,
                                     const RunOptions& options = {});
// Drops recordings on buffers of the application, before it destroys such a buffer. They must not
// be running.
VKFORMER_API Status forget_buffers(Session& session);
// Inputs and outputs of the pass that was started, by name.
VKFORMER_API Result<std::map<std::string, PassBuffer>> pass_buffers(const Session& session);

// A picture in one of the application's images: one layer of one mip level of a color image of two
// dimensions and one sample. The image is made with VK_IMAGE_USAGE_TRANSFER_SRC_BIT. The device's
// queue family owns it, or it has VK_SHARING_MODE_CONCURRENT.
struct ImageInput {
  VkImage image = VK_NULL_HANDLE;
  // VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_B8G8R8A8_UNORM or the _SRGB of these. Bytes count as they
  // are stored, as those of a picture file do; alpha is dropped.
  VkFormat format = VK_FORMAT_R8G8B8A8_UNORM;
  // The layout in which it is when it is read, and in which it is left.
  VkImageLayout layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL;
  uint32_t width = 0;   // pixels, of that level
  uint32_t height = 0;  // pixels, of that level
  uint32_t mip_level = 0;
  uint32_t array_layer = 0;
};

// start_on_buffers of a vision model whose `pixel_values` are the application's images, one for
// each picture of the batch. The GPU resizes, crops and scales them as `processor` does it, to the
// same bits. `inputs` holds what the model reads besides. The images are copied at the start of the
// first slice, after all earlier commands of its queue, and must stay until that has run. The rest
// of the pass does not touch them. All images together have at most 67,108,864 pixels and fit into
// one storage binding at 4 bytes a pixel.
VKFORMER_API Status start_on_images(Session& session, const TensorMap& inputs,
                                    const std::vector<ImageInput>& images,
                                    const PictureProcessor& processor,
                                    const std::map<std::string, BufferRange>& buffers = {},
                                    const RunOptions& options = {});

// A semaphore that a submit waits for or signals; `value` is that of a timeline semaphore, 0 for a
// binary one.
struct SemaphoreUse {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t value = 0;
};

// Session::advance whose submit first waits for semaphores of the application, at the start of all
// commands, and then signals others. With nothing left to submit, an empty submit does so.
VKFORMER_API Result<Advance> advance_between(Session& session, double microseconds,
                                             const std::vector<SemaphoreUse>& wait,
                                             const std::vector<SemaphoreUse>& signal);

}  // namespace vkformer
