// c/device.h: Vulkan devices: those of this machine, vkformer's own and the application's.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_DEVICE_H
#define VKFORMER_C_DEVICE_H

#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vkf_device vkf_device;
typedef struct vkf_devices vkf_devices;

typedef int32_t vkf_log_level;
enum { VKF_LOG_INFO = 0, VKF_LOG_WARNING = 1, VKF_LOG_ERROR = 2 };
// Called from whichever thread has something to say, perhaps from several at once; it must not call
// vkformer. `message` is valid during the call.
typedef void (*vkf_log_function)(void* data, vkf_log_level level, const char* message);
// Any function; cast it back to its own type before calling it.
typedef void (*vkf_any_function)(void);

// The job system of the application: calls job(job_data) once, on any thread, now or later, and
// does not wait for it. A job that never runs is harmless but for a few bytes: whoever waits for
// its work does it. May be called from any thread.
typedef void (*vkf_job)(void* job_data);
typedef void (*vkf_job_runner)(void* data, vkf_job job, void* job_data);

typedef int32_t vkf_queue_priority;
// Low where the driver has an extension for it, so that it does not starve graphics.
enum { VKF_PRIORITY_LOW = 0, VKF_PRIORITY_NORMAL = 1 };
#define VKF_NO_COMPILE_THREADS UINT32_MAX

typedef struct vkf_device_options {
  uint32_t struct_size;
  // 1: enable the Khronos validation layer when it is installed; its messages go to `log`.
  uint32_t validation;
  // "best" (the default), an index as `vkformer devices` prints it, or a part of a name.
  const char* device;
  // Highest tier to use: "best" (the default), "baseline", "subgroup", "fp16" or "matrix".
  const char* tier;
  // Limits to clamp to: "" (the default), "android-2022" or "vulkan-minimum".
  const char* limits;
  // Directory of the pipeline cache; "" (the default) is the user's cache directory, "none" none.
  const char* cache_directory;
  // Gets what is worth knowing beside results and errors; null: validation messages go to stderr.
  vkf_log_function log;
  void* log_data;
  // const VkAllocationCallbacks*, for the host memory of Vulkan objects; copied. Null: the
  // driver's.
  const void* allocator;
  // Bytes of device memory that vkformer may allocate on this device; 0: as many as there are.
  uint64_t memory_budget;
  // How a queue of vkformer's own stands against others.
  vkf_queue_priority queue_priority;
  // 1: choose kernels as vkf_device_tune found them fastest on this device.
  uint32_t tuning;
  // Threads beside the calling one that make pipelines; 0: 3, VKF_NO_COMPILE_THREADS: none.
  uint32_t compile_threads;
  uint32_t reserved;
  // Who prepares what sessions start, and loads models, while frames go on; null: threads of
  // vkformer's own, or with VKF_NO_COMPILE_THREADS vkf_session_advance in portions.
  vkf_job_runner run_job;
  void* run_job_data;
  // A file of pipelines to begin with: cache files of any drivers, one after the other; null: none.
  const char* pipeline_pack;
} vkf_device_options;

typedef struct vkf_device_info {
  uint32_t struct_size;
  int32_t index;             // among the devices of this machine
  const char* name;          // as the driver gives it
  const char* driver;        // driver name and version
  const char* kind;          // "discrete", "integrated", "software" or "other"
  const char* api_version;   // "1.3.230"
  const char* uuid;          // 32 hexadecimal digits
  const char* best_tier;     // the highest tier the device can run
  const char* const* notes;  // features that are missing, workarounds in force
  size_t note_count;
  uint64_t memory_bytes;       // the largest device-local heap
  uint64_t max_storage_range;  // bytes one binding can cover
  uint32_t subgroup_size;      // invocations
  uint32_t max_shared_bytes;   // per workgroup
  uint32_t max_invocations;    // per workgroup
  uint32_t reserved;
} vkf_device_info;

// An application's own Vulkan device, handed over as it is; Vulkan's types are void* here, so that
// this header needs none of its headers. Its objects must outlive everything made from them.
typedef struct vkf_adopted_device {
  uint32_t struct_size;
  uint32_t queue_family;  // must support compute
  uint32_t api_version;   // as in VkApplicationInfo::apiVersion; 0: Vulkan 1.1
  uint32_t enabled_extension_count;
  const char* const* enabled_extensions;    // device extensions
  vkf_any_function get_instance_proc_addr;  // PFN_vkGetInstanceProcAddr
  void* instance;                           // VkInstance
  void* physical_device;                    // VkPhysicalDevice
  void* device;                             // VkDevice
  void* queue;                              // VkQueue
  // const VkPhysicalDeviceFeatures2*, as passed to vkCreateDevice; null: none is assumed.
  const void* enabled_features;
  // Called around every submission, when the application submits to this queue too.
  void (*queue_lock)(void* data);
  void (*queue_unlock)(void* data);
  void* queue_lock_data;
  // VkPipelineCache of the application's, in place of a cache file of vkformer's; 0: none.
  uint64_t pipeline_cache;
} vkf_adopted_device;

// Every Vulkan device of this machine, software ones included. [any]
VKFORMER_API vkf_status vkf_devices_list(vkf_devices** devices, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_devices_count(const vkf_devices* devices);
// [any]
VKFORMER_API vkf_status vkf_devices_get(const vkf_devices* devices, size_t index,
                                        vkf_device_info* info, vkf_error* error);
VKFORMER_API void vkf_devices_free(vkf_devices* devices);
// Makes a Vulkan instance and device of vkformer's own. [any]
VKFORMER_API vkf_status vkf_device_create(const vkf_device_options* options, vkf_device** device,
                                          vkf_error* error);
// What is worth enabling before the application makes its VkDevice; nothing is required.
typedef struct vkf_feature_chain vkf_feature_chain;
// Adds it to a chain of features and to a list of extensions, and writes both to `host`. Of `host`,
// get_instance_proc_addr, instance, physical_device and api_version are read, and as the
// application's own device extensions enabled_extensions. `own` is the application's own
// VkPhysicalDeviceFeatures2, whose chain gets what it lacks, or null. Then enabled_features is for
// VkDeviceCreateInfo::pNext, enabled_extensions for its ppEnabledExtensionNames, and `host` for
// vkf_device_adopt; keep the chain until both calls have returned. [any]
VKFORMER_API vkf_status vkf_feature_chain_create(vkf_adopted_device* host, void* own,
                                                 vkf_feature_chain** chain, vkf_error* error);
// A queue family for our own queue: one that computes beside graphics where there is one. [any]
VKFORMER_API uint32_t vkf_feature_chain_queue_family(const vkf_feature_chain* chain);
// The extension, one of those enabled, with which that queue can be made of low priority; or null.
// [any]
VKFORMER_API const char* vkf_feature_chain_low_priority(const vkf_feature_chain* chain);
VKFORMER_API void vkf_feature_chain_free(vkf_feature_chain* chain);
// Wraps the application's device; options->device does not count. [any]
VKFORMER_API vkf_status vkf_device_adopt(const vkf_adopted_device* adopted,
                                         const vkf_device_options* options, vkf_device** device,
                                         vkf_error* error);
// Models and sessions keep the Vulkan device alive while this handle lives.
VKFORMER_API void vkf_device_free(vkf_device* device);

// Several devices that hold one model together, each some of its layers: vkf_model_options.group.
// See device_group.h.
typedef struct vkf_device_group vkf_device_group;
// Of 2 to 64 devices in the order of the layers, which may be one device several times; the group
// keeps them. `shares`: `count` positive numbers, how the work is shared out; null: by measured
// speed. `lanes`: parts of a batch under way at once, up to 64; 0: as many as devices. [any]
VKFORMER_API vkf_status vkf_device_group_create(const vkf_device* const* devices, size_t count,
                                                const double* shares, int32_t lanes,
                                                vkf_device_group** group, vkf_error* error);
// Of 2 to 64 devices alike, which divide the heads and feed-forward columns of every layer evenly
// (DeviceGroupOptions::split, kTensors). `lanes` as above; 0: 1. [any]
VKFORMER_API vkf_status vkf_device_group_create_divided(const vkf_device* const* devices,
                                                        size_t count, int32_t lanes,
                                                        vkf_device_group** group, vkf_error* error);
// Of 2 to 64 devices. When a model is loaded, an estimate chooses one of these two splits, the one
// that takes less time a token (DeviceGroupOptions::split, kFastest). `lanes`; 0: as suits. [any]
VKFORMER_API vkf_status vkf_device_group_create_fastest(const vkf_device* const* devices,
                                                        size_t count, int32_t lanes,
                                                        vkf_device_group** group, vkf_error* error);
VKFORMER_API void vkf_device_group_free(vkf_device_group* group);

// The device as chosen, with its clamped limits. [any]
VKFORMER_API vkf_status vkf_device_get_info(const vkf_device* device, vkf_device_info* info,
                                            vkf_error* error);
// The tier in use: "baseline", "subgroup", "fp16" or "matrix". [any]
VKFORMER_API const char* vkf_device_tier(const vkf_device* device);
// Bytes of device memory held by vkformer's objects on this device. [any]
VKFORMER_API uint64_t vkf_device_memory_in_use(const vkf_device* device);
// Bytes of device memory allocated for them, in blocks: what memory_budget limits. [any]
VKFORMER_API uint64_t vkf_device_memory_allocated(const vkf_device* device);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_DEVICE_H
