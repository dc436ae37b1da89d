// The live device of the vulkan room: made or adopted, with its function table, queue, memory and
// pipelines. Shared by models and sessions; every method may be called from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "base/work_sharing.h"
#include "plan/plan.h"
#include "vkformer/device.h"
#include "vulkan/buffer.h"

namespace vkformer {

struct AdoptedDevice;
struct DeviceTweaks;
class DispatchProfiler;
class Recording;
enum class RecordingPart : uint8_t;
struct Submission;

class VulkanDevice : public std::enable_shared_from_this<VulkanDevice> {
 public:
  static Result<std::shared_ptr<VulkanDevice>> create(const DeviceOptions& options);
  static Result<std::shared_ptr<VulkanDevice>> adopt(const AdoptedDevice& adopted,
                                                     const DeviceOptions& options);
  static Result<std::vector<DeviceInfo>> list();
  // For tests: a device that behaves like a lesser one (tweaks.h).
  static Result<std::shared_ptr<VulkanDevice>> create_tweaked(const DeviceOptions& options,
                                                              const DeviceTweaks& tweaks);
  ~VulkanDevice();
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;

  const DeviceCaps& caps() const;
  DeviceInfo info() const;
  uint64_t memory_in_use() const;
  uint64_t memory_allocated() const;
  // Who works beside a caller that waits.
  Helpers helpers() const;
  // To the caller's logger, if there is one.
  void say(LogLevel level, const std::string& message) const;
  // What a buffer of that size adds to memory_in_use.
  uint64_t placed_bytes(uint64_t bytes) const;
  // What the host can do with buffers of that use.
  HostReach host_reach(MemoryUse use) const;
  // The buffer that host copies go through: 0 where the host sees device memory.
  uint64_t staging_bytes() const;

  // A buffer usable as storage, uniform, indirect, and transfer source and target, zero-filled.
  Result<Buffer> make_buffer(uint64_t bytes, MemoryUse use, const std::string& name);
  // A storage buffer of memory that the host has, which kernels read where it is: whole pages that
  // `owner` has and nobody writes. Nothing where the device or its driver cannot.
  std::optional<Buffer> import_pages(std::span<const std::byte> pages,
                                     std::shared_ptr<const void> owner, const std::string& name);
  // What addresses and sizes of such pages are multiples of, bytes; 0: they cannot be imported.
  uint64_t import_alignment() const;

  // Copies between host memory and a buffer; synchronous. A mapped buffer is written or read once
  // the last submit that uses it has run. Another one goes through staging and takes a submit and a
  // wait. For what is written once, such as weights, and for tests: passes write their inputs
  // through PassMemory. `offset` and sizes in bytes, multiples of 4.
  Status upload(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data);
  Status download(const Buffer& buffer, uint64_t offset, std::span<std::byte> data);
  Status fill(const Buffer& buffer, uint64_t offset, uint64_t bytes, uint32_t word);

  // Submits everything in order, as one batch, and returns the timeline value that its completion
  // signals.
  Result<uint64_t> submit(const Submission& submission);
  // Gets the time of every dispatch from now on, of what is recorded from now on; null: nobody.
  // Every recording is then its own submit that is waited for. Precondition: nobody else uses
  // the device meanwhile.
  void set_profiler(std::shared_ptr<DispatchProfiler> profiler);
  std::shared_ptr<DispatchProfiler> profiler() const;
  // Blocks until that value is reached. A lost device is an error here and from then on.
  Status wait(uint64_t value);
  bool lost() const;

  // Writes the pipeline cache file if pipelines were made since; the destructor does it too.
  void save_pipeline_cache();

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit VulkanDevice(std::unique_ptr<Impl> impl);
  Result<uint64_t> submit_now(const Submission& submission);
  Result<uint64_t> submit_profiled(const Submission& submission);
  Result<uint64_t> submit_watched(const Recording& recording, RecordingPart part);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vkformer
