// The parts of a live device, for the files of the vulkan room and its tests.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device_files/pipeline_cache_file.h"
#include "driver/instance.h"
#include "driver/snapshot.h"
#include "plan/kernel_costs.h"
#include "vulkan/context.h"
#include "vulkan/copy_commands.h"
#include "vulkan/device.h"
#include "vulkan/last_value.h"
#include "vulkan/memory.h"
#include "vulkan/pipelines.h"
#include "vulkan/timeline.h"
#include "vulkan/transfer.h"
#include "vulkan/tweaks.h"

namespace vkformer {

// How the pipeline cache file fared.
struct PipelineCacheStats {
  bool hit = false;             // the file was there and matched
  std::string path;             // empty: no cache is kept
  uint32_t write_failures = 0;  // writes are best effort; this is their only trace
};

struct VulkanDevice::Impl {
  // Destroyed in reverse order: whatever uses the context goes first, the instance last.
  std::unique_ptr<Instance> instance;  // null for an adopted device
  bool owns_device = false;
  Context context;
  DeviceInfo info;
  PipelineCacheKey cache_key;
  PipelineCacheStats cache_stats;
  std::string tuning_file;    // of the tuner's file; empty: no cache is kept
  std::string demotion_file;  // of kernels that failed here; empty likewise
  std::string costs_file;     // of what slices have learned; empty likewise
  size_t saved_pipelines = 0;
  std::unique_ptr<Timeline> timeline;
  std::unique_ptr<MemoryPool> memory;
  std::unique_ptr<PipelineStore> pipelines;
  std::unique_ptr<Transfer> transfer;
  std::unique_ptr<CopyCommands> copies;
  std::shared_ptr<DispatchProfiler> profiler;  // or null
  KernelCosts costs;                           // of slices

  // From a clamped snapshot and a context whose handles and function table are set.
  Status start(const Snapshot& snapshot, const DeviceOptions& options, const DeviceTweaks& tweaks);
  // Puts the choices of the tuner's file, where it holds for this device, into the capabilities.
  void read_tuned_choices();
  // Omits the kernels that failed on this device and driver.
  void read_demotions();
  // Adds what the application ships for this device (DeviceOptions::pipeline_pack). Best effort.
  void read_pipeline_pack(const std::string& path);
  // Writes the cache file if pipelines were made since it was last written, and what slices have
  // learned since.
  void save_pipeline_cache();
  void save_costs();
  ~Impl();
};

// Makes a buffer without an owner object; `Buffer` adds one.
struct Buffer::Impl {
  std::shared_ptr<VulkanDevice> device;
  std::shared_ptr<const void> pages;  // what owns imported memory; null: nothing is imported
  PlacedBuffer placed;
  uint64_t bytes = 0;
  std::string name;
  // Timeline value of the last submit that reads or writes the buffer. Host copies and the
  // destructor wait for this value only, so that no session waits for another's work.
  LastValue last_use;

  // Waits for the last use, then gives the memory back.
  ~Impl();
};

}  // namespace vkformer
