// What every object of the vulkan room needs of its device. It is the function table, the handles,
// the clamped capabilities, the queue lock and the latch of a lost device.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/job_threads.h"
#include "base/work_sharing.h"
#include "driver/api_table.h"
#include "driver/vk_error.h"
#include "plan/device_caps.h"
#include "reproducible/pin_arithmetic.h"
#include "vkformer/device.h"
#include "vulkan/executables.h"

namespace vkformer {

using PlantedKernels = std::map<KernelId, std::vector<uint32_t>>;

struct Context {
  DeviceApi api;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t queue_family = 0;
  DeviceCaps caps;
  bool sizes_subgroups = false;  // pipelines of matrix units ask for full subgroups of caps' size
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  PFN_vkGetPhysicalDeviceMemoryProperties2 heap_budgets = nullptr;  // Snapshot::memory_budget
  uint64_t import_alignment = 0;                                    // as in Snapshot
  uint32_t timestamp_bits = 0;  // valid bits of the queue family; 0 = no timestamps
  double timestamp_period = 1;  // nanoseconds per tick

  LogFunction log;  // the caller's; may be empty
  // Null, or the copy of the caller's functions beside it.
  const VkAllocationCallbacks* allocator = nullptr;
  VkAllocationCallbacks own_allocator{};
  uint64_t memory_budget = UINT64_MAX;             // bytes that may be allocated
  VkPipelineCache adopted_cache = VK_NULL_HANDLE;  // the adopter's; may be null

  JobRunner run_job;  // the caller's; may be empty
  JobRunner jobs;     // the same, or the threads below; empty: nobody works beside the caller
  uint32_t compile_jobs = 0;  // at once, beside a caller that waits
  // Of reproducible kernels: what the device offers, until a proof has shown what it needs
  // (recording/arithmetic_proof.h).
  ArithmeticModes arithmetic;
  std::mutex proof_mutex;  // guards the next two
  bool arithmetic_is_proven = false;
  bool dots_are_proven = false;
  uint32_t scatter_seed = 0;  // for tests: DeviceTweaks
  PlantedKernels planted;     // for tests: SPIR-V in place of the catalogue's
  PlantedKernels planted_reproducible;
  Capture capture = Capture::kNone;  // what pipelines keep of their compilation
  std::string why_no_capture;        // a sentence, where it is kNone

  std::mutex queue_mutex;
  std::function<void()> queue_lock, queue_unlock;  // the adopter's; may be empty
  std::atomic<bool> lost{false};
  std::unique_ptr<JobThreads> threads;  // null where the host has jobs, or allows no thread

  // Who works beside a caller that waits.
  Helpers helpers() const { return {jobs, jobs ? compile_jobs : 0}; }

  // Takes over what the options say about messages and memory; before any Vulkan object.
  Status take(const DeviceOptions& options);
  // Hands a message to the caller's logger, if there is one.
  void say(LogLevel level, const std::string& message) const;

  // Success, or the error of a failed call; a lost device is latched. `what` names the call and
  // the object, in brackets.
  Status check(VkResult result, std::string_view what);
  // The same of a call that makes an object: when it fails, the driver may leave anything in
  // `made`.
  template <class Handle>
  Status check_made(VkResult result, Handle& made, std::string_view what) {
    if (result != VK_SUCCESS) made = VK_NULL_HANDLE;
    return check(result, what);
  }
  // Records a barrier over all memory.
  void memory_barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags wrote,
                      VkPipelineStageFlags to, VkAccessFlags reads) const;
  // An error once the device was lost.
  Status check_alive() const;
  void set_name(VkObjectType type, uint64_t handle, const std::string& name) const;
};

// Handles are pointers on 64-bit machines and integers elsewhere.
template <class Handle>
uint64_t handle_bits(Handle handle) {
  return (uint64_t)handle;
}

}  // namespace vkformer
