// Device: the Vulkan device that models run on, made by vkformer or adopted from the application
// (see vulkan_interop.h).
//
// Threading: a Device may be used from several threads at once; queue submission is locked inside.
// Lifetime: a Device is a shared handle: copies are the same device, which everything made from it
// keeps alive. The last owner destroys it, whatever the order. Of an adopted device the
// application owns the Vulkan objects, which must outlive that last owner. Nothing is global.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/export.h"
#include "vkformer/result.h"

// Vulkan's own struct of host allocation functions; vulkan_core.h defines it.
struct VkAllocationCallbacks;

namespace vkformer {

class VulkanDevice;

// How much a message of LogFunction matters.
enum class LogLevel : uint8_t { kInfo, kWarning, kError };
// Takes one message, a full sentence. Called from whichever thread has something to say, perhaps
// from several at once; it must neither throw nor call vkformer.
using LogFunction = std::function<void(LogLevel level, const std::string& message)>;

// The job system of the application: runs `job` once, on any thread, now or later, and does not
// wait for it. A job that never runs is harmless. Whoever waits for its work does it. A job that
// runs after its session is gone does nothing. May be called from any thread.
using JobRunner = std::function<void(std::function<void()> job)>;

// Which device to make, and how far to clamp it.
struct DeviceOptions {
  // "best" (discrete, then integrated, then software), or an index as `vkformer devices` prints it.
  // Or a UUID as DeviceInfo has it, or a part of the device's or driver's name, case-insensitive.
  std::string device = "best";
  // Highest tier to use; a device that does not support it uses its own best one.
  Tier tier = Tier::kMatrix;
  // A profile to clamp limits and features to.
  LimitProfile limits = LimitProfile::kNone;
  // Directory of the pipeline cache; "" uses the user's cache directory, "none" keeps no cache.
  std::string cache_directory;
  // A file of pipelines that a game ships: cache files ("*.pipelines" of cache directories), of any
  // drivers and devices, one after the other. Those that match this device, driver and build of
  // vkformer are added to what the cache has. Others are passed over. So is a file that is damaged
  // or not there. The log says so.
  std::string pipeline_pack;
  // Enable the Khronos validation layer when it is installed; its messages go to `log`, or to
  // stderr without one.
  bool validation = false;
  // Gets what is worth knowing beside results and errors: the chosen device, workarounds, a cache
  // file that cannot be written, a lost device, validation messages. Empty: nothing is said.
  // Messages about pipelines may come from threads of vkformer's own.
  LogFunction log = nullptr;
  // Threads besides the calling one that pack weights and make pipelines while a model loads and
  // passes are recorded. At most the machine's number of cores less one; none with 0, or where
  // there is an allocator.
  uint32_t compile_threads = 3;
  // Who plans passes and makes their pipelines while frames go on (Session::start, warm_up), and
  // who loads models in the background. Empty: threads of vkformer's own; with compile_threads 0
  // Session::advance does it in portions, each as long as the budget of its frame.
  JobRunner run_job = nullptr;
  // Host memory of the Vulkan objects that vkformer makes; null: the driver's own. Copied; what
  // its pUserData points to must outlive the device.
  const VkAllocationCallbacks* allocator = nullptr;
  // Bytes of device memory that vkformer may allocate on this device, for everything together. What
  // would exceed it fails with kOutOfMemory, names both numbers, and leaves the rest as it was.
  uint64_t memory_budget = UINT64_MAX;
  // How vkformer's work stands against that of others: low, so that it does not starve graphics.
  // vkformer's queue has low priority if the driver has VK_KHR_global_priority or
  // VK_EXT_global_priority, and so have dispatches on any queue with
  // VK_NV_compute_occupancy_priority.
  enum class QueuePriority : uint8_t { kLow, kNormal } queue_priority = QueuePriority::kLow;
  // Choose kernels as tune_device (tuning.h) found them fastest on this device, where a file in the
  // cache directory says so. Sums may then be taken in another order than without it.
  bool tuning = false;
  // Have pipelines keep what the driver's compiler says of them, for kernel_statistics
  // (benchmark.h), where it has VK_KHR_pipeline_executable_properties. Not of an adopted device.
  bool statistics = false;
};

// What is known of a device without making it.
struct DeviceInfo {
  int index = 0;       // among the devices of this machine
  std::string name;    // as the driver gives it
  std::string driver;  // driver name and version
  DeviceClass kind = DeviceClass::kOther;
  std::string api_version;         // "1.3.230"
  std::string uuid;                // 32 hexadecimal digits
  std::optional<Tier> best_tier;   // the highest that the device runs; absent: it runs none
  std::vector<std::string> notes;  // features that are missing, workarounds in force
  uint32_t subgroup_size = 0;      // invocations
  uint64_t memory_bytes = 0;       // the largest device-local heap
  uint64_t max_storage_range = 0;  // bytes one binding can cover
  uint32_t max_shared_bytes = 0;   // per workgroup
  uint32_t max_invocations = 0;    // per workgroup
};

// Every Vulkan device of this machine, software ones included.
VKFORMER_API Result<std::vector<DeviceInfo>> list_devices();

class VKFORMER_API Device {
 public:
  // Makes a Vulkan instance and device of vkformer's own.
  static Result<Device> create(const DeviceOptions& options = {});

  // The device as chosen, with its clamped limits.
  DeviceInfo info() const;
  // The tier in use.
  Tier tier() const;
  // Bytes of device memory held by vkformer objects on this device.
  uint64_t memory_in_use() const;
  // Bytes of device memory allocated for them, in blocks: what DeviceOptions::memory_budget limits.
  uint64_t memory_allocated() const;

 private:
  friend struct HandleAccess;
  explicit Device(std::shared_ptr<VulkanDevice> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<VulkanDevice> impl_;
};

}  // namespace vkformer
