#include "vulkan/device.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/message.h"
#include "device_files/costs_file.h"
#include "device_files/demotion_file.h"
#include "device_files/tuning_file.h"
#include "driver/feature_chain.h"
#include "driver/missing_driver.h"
#include "vulkan/device_impl.h"
#include "vulkan/memory_left.h"
#include "vulkan/recording.h"

namespace vkformer {
namespace {

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

int rank(DeviceClass device_class) {
  switch (device_class) {
    case DeviceClass::kDiscrete:
      return 0;
    case DeviceClass::kIntegrated:
      return 1;
    case DeviceClass::kOther:
      return 2;
    case DeviceClass::kSoftware:
      return 3;
  }
  return 4;
}

Result<std::vector<Snapshot>> snapshots(const Instance& instance) {
  VKF_ASSIGN(const std::vector<VkPhysicalDevice> devices, instance.physical_devices());
  std::vector<Snapshot> list;
  for (VkPhysicalDevice physical : devices) {
    VKF_ASSIGN(Snapshot s, take_snapshot(instance.api(), physical, instance.version(),
                                         static_cast<int>(list.size())));
    if (instance.validation_missing()) {
      s.info.notes.push_back("validation was asked for, but its layer is not installed");
    }
    list.push_back(std::move(s));
  }
  return list;
}

// Index among `list` of the device that `wanted` names, or -1.
int find_device(const std::vector<Snapshot>& list, const std::string& wanted) {
  if (wanted.empty() || wanted == "best") {
    int best = -1;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].unusable.empty()) continue;
      const bool better = best < 0 || rank(list[i].caps.device_class) <
                                          rank(list[static_cast<size_t>(best)].caps.device_class);
      if (better) best = static_cast<int>(i);
    }
    return best;
  }
  size_t number = 0;
  const char* end = wanted.data() + wanted.size();
  const auto parsed = std::from_chars(wanted.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number < list.size()) {
    return static_cast<int>(number);
  }
  const std::string part = lower(wanted);
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].info.uuid == part) return static_cast<int>(i);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string text = lower(list[i].caps.name + "\n" + list[i].caps.driver);
    if (text.find(part) != std::string::npos) return static_cast<int>(i);
  }
  return -1;
}

Result<Snapshot> choose_device(const Instance& instance, const std::string& wanted) {
  VKF_ASSIGN(std::vector<Snapshot> list, snapshots(instance));
  if (list.empty()) return missing_driver("the loader works, but shows no device");
  const int found = find_device(list, wanted);
  if (found < 0) {
    std::string known;
    for (const Snapshot& s : list) {
      known +=
          (known.empty() ? "" : ", ") + std::to_string(s.info.index) + " '" + s.caps.name + "'";
    }
    return not_found(
        message({"[device] no usable Vulkan device matches '", wanted, "'; present are ", known}));
  }
  Snapshot chosen = std::move(list[static_cast<size_t>(found)]);
  if (!chosen.unusable.empty()) {
    return unsupported(message({"[device] '", chosen.caps.name,
                                "' cannot be used: ", chosen.unusable, "; choose another device"}));
  }
  return chosen;
}

// What the tier, the timeline and what pipelines keep of their compilation use.
Features used_features(const Snapshot& s, const DeviceOptions& options, Capture capture) {
  Features used = 0;
  if (s.caps.int64()) used |= feature::kInt64;
  if (s.caps.fp16()) used |= feature::kFp16;
  if (s.timeline) used |= feature::kTimeline;
  if (s.caps.matrix()) used |= feature::kUnits;
  if (s.caps.matrix2()) used |= feature::kUnits2;
  if (s.caps.matrix() && s.sizes_subgroups) used |= feature::kSubgroupSizes;
  if (s.caps.tables()) used |= feature::kTables;
  if (s.caps.dot8()) used |= feature::kDot8;
  if (lowers_occupancy(s, options)) used |= feature::kOccupancy;
  if (capture != Capture::kNone) used |= feature::kExecutables;
  return used;
}

// Creates the VkDevice. Enables only what the tier, the timeline, the queue, imports of host memory
// and captures of compilations use.
Result<VkDevice> create_device(const InstanceApi& api, Snapshot& s, const DeviceOptions& options,
                               Capture capture, const VkAllocationCallbacks* allocator) {
  const Features used = used_features(s, options, capture);
  std::vector<const char*> extensions = extensions_of(used, s.version);
  if (s.import_alignment > 0) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (s.offers("VK_KHR_portability_subset")) extensions.push_back("VK_KHR_portability_subset");
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  FeatureStructs structs;
  VKF_CHECK(structs.enable(used, features));
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = static_cast<uint32_t>(s.compute_family());
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceQueueGlobalPriorityCreateInfoKHR low{
      VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO_KHR};
  low.globalPriority = VK_QUEUE_GLOBAL_PRIORITY_LOW_KHR;
  const bool lowers = options.queue_priority != DeviceOptions::QueuePriority::kNormal;
  if (const char* name = lowers ? s.priority_extension() : nullptr) {
    queue.pNext = &low;
    extensions.push_back(name);
  }
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice device = VK_NULL_HANDLE;
  VkResult result = api.CreateDevice(s.physical, &info, allocator, &device);
  if (result != VK_SUCCESS && queue.pNext) {
    // Not every system grants every priority; without one the queue is as any other.
    queue.pNext = nullptr;
    result = api.CreateDevice(s.physical, &info, allocator, &device);
    if (result == VK_SUCCESS) s.info.notes.push_back("grants no queue of low priority");
  }
  if (result != VK_SUCCESS) return vk_error(result, "[" + s.caps.name + "] vkCreateDevice");
  return device;
}

// What pipelines of that device can keep of what is asked for; else says why not.
Capture possible_capture(const Snapshot& s, const DeviceOptions& options,
                         const DeviceTweaks& tweaks, std::string& why_not) {
  const Capture wanted =
      std::max(tweaks.capture, options.statistics ? Capture::kStatistics : Capture::kNone);
  if (wanted == Capture::kNone) {
    why_not =
        "[statistics] The device was made without DeviceOptions::statistics, so its pipelines keep "
        "none. Set it when you make the device.";
  } else if (!s.offers(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) {
    why_not = "[statistics] '" + s.caps.name + "' (" + s.caps.driver +
              ") has no VK_KHR_pipeline_executable_properties, so what its compiler makes of a "
              "kernel cannot be read. Choose another device or driver.";
  } else {
    return wanted;
  }
  return Capture::kNone;
}

void say_what_was_chosen(const Context& context, const DeviceInfo& info) {
  if (!context.log) return;
  context.say(LogLevel::kInfo, "[device] '" + info.name + "' (" + info.driver + ", Vulkan " +
                                   info.api_version + ") runs at tier " +
                                   choice_name(context.caps.tier) + ".");
  for (const std::string& note : info.notes) {
    context.say(LogLevel::kInfo, "[device] '" + info.name + "': " + note + ".");
  }
}

// Offsets and sizes of host copies.
Status check_range(const Buffer& buffer, uint64_t offset, uint64_t bytes, const char* what) {
  if (!buffer.valid()) return invalid_argument(message({"[", what, "] the buffer is empty"}));
  const bool aligned = offset % 4 == 0 && bytes % 4 == 0;
  // Nothing is put together for the answer that nearly every copy gets.
  if (aligned && offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return {};
  const std::string who = "[" + buffer.impl()->name + "] " + what + " of " + std::to_string(bytes) +
                          " bytes at offset " + std::to_string(offset);
  if (!aligned) {
    return invalid_argument(who + " is not aligned to 4 bytes; round both to multiples of 4");
  }
  return invalid_argument(
      message({who, " exceeds the buffer's ", buffer.bytes(), " bytes; copy less"}));
}

}  // namespace

VulkanDevice::VulkanDevice(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VulkanDevice::~VulkanDevice() = default;

Result<std::vector<DeviceInfo>> VulkanDevice::list() {
  VKF_ASSIGN(auto instance, Instance::create({}));
  VKF_ASSIGN(const std::vector<Snapshot> found, snapshots(*instance));
  std::vector<DeviceInfo> infos;
  for (const Snapshot& s : found) infos.push_back(s.info);
  return infos;
}

Result<std::shared_ptr<VulkanDevice>> VulkanDevice::create(const DeviceOptions& options) {
  return create_tweaked(options, {});
}

Result<std::shared_ptr<VulkanDevice>> VulkanDevice::create_tweaked(const DeviceOptions& options,
                                                                   const DeviceTweaks& tweaks) {
  auto impl = std::make_unique<Impl>();
  VKF_ASSIGN(impl->instance, Instance::create(options, tweaks.get_instance_proc_addr));
  const InstanceApi& instance = impl->instance->api();
  VKF_ASSIGN(Snapshot s, choose_device(*impl->instance, options.device));
  VKF_CHECK(clamp_snapshot(s, options, tweaks.quirks));
  if (tweaks.timeline == DeviceTweaks::Timeline::kFences) s.timeline = false;
  if (tweaks.compute_units == DeviceTweaks::ComputeUnits::kUnknown) s.caps.compute_units = 0;

  Context& context = impl->context;
  VKF_CHECK(context.take(options));
  context.capture = possible_capture(s, options, tweaks, context.why_no_capture);
  VKF_ASSIGN(context.device,
             create_device(instance, s, options, context.capture, context.allocator));
  impl->owns_device = true;
  // Needed by ~Impl even when the rest of the table is incomplete.
  context.api.DestroyDevice = reinterpret_cast<PFN_vkDestroyDevice>(
      instance.GetDeviceProcAddr(context.device, "vkDestroyDevice"));
  DeviceApiOptions wanted;
  if (s.timeline) {
    wanted.timeline = s.version >= VK_API_VERSION_1_2 ? DeviceApiOptions::Timeline::kCore
                                                      : DeviceApiOptions::Timeline::kExtension;
  }
  if (impl->instance->debug_utils()) wanted.labels = DeviceApiOptions::Labels::kOn;
  if (context.capture != Capture::kNone) wanted.statistics = DeviceApiOptions::Statistics::kOn;
  if (s.import_alignment > 0) wanted.imports = DeviceApiOptions::Imports::kOn;
  if (lowers_occupancy(s, options)) wanted.occupancy = DeviceApiOptions::Occupancy::kOn;
  VKF_ASSIGN(context.api, DeviceApi::load(instance.GetDeviceProcAddr, context.device, wanted));
  context.queue_family = static_cast<uint32_t>(s.compute_family());
  context.api.GetDeviceQueue(context.device, context.queue_family, 0, &context.queue);
  VKF_CHECK(impl->start(s, options, tweaks));
  return std::shared_ptr<VulkanDevice>(new VulkanDevice(std::move(impl)));
}

Status VulkanDevice::Impl::start(const Snapshot& s, const DeviceOptions& options,
                                 const DeviceTweaks& tweaks) {
  context.physical = s.physical;
  context.caps = s.caps;
  context.arithmetic = s.arithmetic;
  context.sizes_subgroups = s.caps.matrix() && s.sizes_subgroups;
  context.properties = s.properties;
  context.memory = s.memory;
  context.heap_budgets = s.memory_budget;
  context.import_alignment = s.import_alignment;
  context.timestamp_bits = s.families[context.queue_family].timestampValidBits;
  context.timestamp_period = static_cast<double>(s.properties.limits.timestampPeriod);
  info = s.info;
  say_what_was_chosen(context, info);
  VKF_ASSIGN(timeline, Timeline::create(context, s.timeline ? Timeline::Kind::kSemaphore
                                                            : Timeline::Kind::kFences));
  const bool staged = tweaks.device_memory == DeviceTweaks::DeviceMemory::kStaged;
  VKF_ASSIGN(memory, MemoryPool::create(context, staged ? MemoryPool::Mapping::kNeverMapDeviceMemory
                                                        : MemoryPool::Mapping::kMapWherePossible));
  cache_key.vendor = s.properties.vendorID;
  cache_key.device = s.properties.deviceID;
  cache_key.driver_version = s.properties.driverVersion;
  std::copy_n(s.properties.pipelineCacheUUID, cache_key.uuid.size(), cache_key.uuid.begin());
  std::vector<std::byte> cached;
  const auto directory = pipeline_cache_directory(options.cache_directory);
  if (directory || !options.pipeline_pack.empty()) cache_key.kernels = kernel_list_hash();
  if (directory) tuning_file = tuning_path(*directory, {cache_key, context.caps.tier});
  if (directory) demotion_file = demotion_path(*directory, cache_key);
  if (directory) costs_file = costs_path(*directory, cache_key);
  if (auto known = read_costs(costs_file, cache_key)) costs.set(std::move(*known));
  context.planted = tweaks.planted;
  context.planted_reproducible = tweaks.planted_reproducible;
  context.scatter_seed = tweaks.scatter_seed;
  read_demotions();
  if (options.tuning) read_tuned_choices();
  if (directory && !context.adopted_cache) {
    cache_stats.path = pipeline_cache_path(*directory, cache_key);
    if (auto data = read_pipeline_cache(cache_stats.path, cache_key)) {
      cached = std::move(*data);
      cache_stats.hit = true;
    }
  }
  VKF_ASSIGN(pipelines, PipelineStore::create(context, cached));
  if (!options.pipeline_pack.empty()) read_pipeline_pack(options.pipeline_pack);
  copies = std::make_unique<CopyCommands>(context, *timeline);
  VKF_ASSIGN(transfer, Transfer::create(context, *memory, *timeline));
  return {};
}

void VulkanDevice::Impl::read_pipeline_pack(const std::string& path) {
  const auto caches = vkformer::read_pipeline_pack(path, cache_key);
  if (!caches) {
    return context.say(LogLevel::kWarning,
                       message({"[pipeline_pack] The file ", path,
                                " is not there or damaged, and is ignored; join whole cache files "
                                "(\"*.pipelines\")."}));
  }
  size_t added = 0;
  for (const std::vector<std::byte>& data : *caches) added += pipelines->add_cache(data) ? 1 : 0;
  context.say(LogLevel::kInfo, message({"[pipeline_pack] ", added, " caches of ", path,
                                        " are of this device and driver."}));
}

void VulkanDevice::Impl::read_tuned_choices() {
  auto tuned = read_tuning(tuning_file, {cache_key, context.caps.tier});
  if (!tuned)
    return context.say(LogLevel::kWarning, tuned.error().message + " [" + tuning_file + "]");
  context.caps.tuned_matmul = std::move(*tuned);
}

void VulkanDevice::Impl::read_demotions() {
  if (demotion_file.empty()) return;
  auto demoted = read_demoted_kernels(demotion_file, cache_key);
  if (!demoted) {
    return context.say(LogLevel::kWarning, demoted.error().message + " [" + demotion_file + "]");
  }
  for (const KernelId id : *demoted) {
    context.caps.demoted.push_back(id);
    info.notes.push_back("the kernel " + std::string(kernel_info(id).name) +
                         " gave wrong results on this device and driver; others take its place (" +
                         demotion_file + ")");
    context.say(LogLevel::kWarning, "[device] '" + info.name + "': " + info.notes.back() + ".");
  }
}

void VulkanDevice::Impl::save_pipeline_cache() {
  if (!pipelines || cache_stats.path.empty() || context.lost.load()) return;
  const size_t made = pipelines->made();
  if (made == saved_pipelines) return;
  saved_pipelines = made;
  const auto data = pipelines->cache_data();
  if (!data || !write_pipeline_cache(cache_stats.path, cache_key, *data)) {
    ++cache_stats.write_failures;
    context.say(LogLevel::kWarning, "The pipeline cache [" + cache_stats.path +
                                        "] could not be written; give another cache directory "
                                        "(--cache-dir in the program), or \"none\".");
  }
}

// Best effort, as the cache is: what is lost is learned again.
void VulkanDevice::Impl::save_costs() {
  if (costs_file.empty() || context.lost.load() || !costs.changed()) return;
  KernelCosts::Table table = costs.table();
  if (write_costs(costs_file, cache_key, table)) costs.set(std::move(table));
}

VulkanDevice::Impl::~Impl() {
  if (timeline) timeline->wait_idle();
  save_pipeline_cache();
  save_costs();
  copies.reset();
  transfer.reset();
  pipelines.reset();
  memory.reset();
  timeline.reset();
  if (owns_device && context.device && context.api.DestroyDevice) {
    context.api.DestroyDevice(context.device, context.allocator);
  }
}

const DeviceCaps& VulkanDevice::caps() const {
  return impl_->context.caps;
}
DeviceInfo VulkanDevice::info() const {
  return impl_->info;
}
uint64_t VulkanDevice::memory_in_use() const {
  return impl_->memory->bytes_in_use();
}
uint64_t VulkanDevice::memory_allocated() const {
  return impl_->memory->bytes_reserved();
}
uint64_t VulkanDevice::placed_bytes(uint64_t bytes) const {
  return impl_->memory->placed_bytes(bytes);
}
uint64_t memory_left(const VulkanDevice& device) {
  const Context& context = device.impl().context;
  uint64_t largest = 0;
  for (uint32_t i = 0; i < context.memory.memoryHeapCount; ++i) {
    largest = std::max<uint64_t>(largest, context.memory.memoryHeaps[i].size);
  }
  const uint64_t most = std::min(largest, context.memory_budget);
  return most - std::min(most, device.memory_allocated());
}
bool shares_host_memory(const VulkanDevice& device) {
  const MemoryPool& memory = *device.impl().memory;
  return memory.heap_of(MemoryUse::kDevice) == memory.heap_of(MemoryUse::kHost);
}
uint64_t weight_room(const VulkanDevice& device) {
  const VulkanDevice::Impl& impl = device.impl();
  const Context& context = impl.context;
  const std::optional<uint32_t> heap = impl.memory->heap_of(MemoryUse::kDevice);
  if (!heap || shares_host_memory(device)) return UINT64_MAX;
  const uint64_t size = context.memory.memoryHeaps[*heap].size;
  uint64_t left = size - std::min(size, device.memory_allocated());
  if (context.heap_budgets != nullptr) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    asked.pNext = &budget;
    context.heap_budgets(context.physical, &asked);
    const uint64_t most = budget.heapBudget[*heap];
    left = std::min(left, most - std::min(most, uint64_t{budget.heapUsage[*heap]}));
  }
  return left / 10 * 9;
}
Helpers VulkanDevice::helpers() const {
  return impl_->context.helpers();
}
void VulkanDevice::say(LogLevel level, const std::string& message) const {
  impl_->context.say(level, message);
}
HostReach VulkanDevice::host_reach(MemoryUse use) const {
  return impl_->memory->host_reach(use);
}
uint64_t VulkanDevice::staging_bytes() const {
  if (host_reach(MemoryUse::kDevice).mapped) return 0;
  return impl_->memory->placed_bytes(impl_->transfer->staging_bytes());
}
bool VulkanDevice::lost() const {
  return impl_->context.lost.load();
}
Status VulkanDevice::wait(uint64_t value) {
  return impl_->timeline->wait(value);
}
void VulkanDevice::save_pipeline_cache() {
  impl_->save_pipeline_cache();
  impl_->save_costs();
}

Result<Buffer> VulkanDevice::make_buffer(uint64_t bytes, MemoryUse use, const std::string& name) {
  auto made = std::make_shared<Buffer::Impl>();
  VKF_ASSIGN(made->placed, impl_->memory->make(bytes, use, name));
  made->device = shared_from_this();
  made->bytes = bytes;
  made->name = name;
  // The memory may be a returned range; nothing in flight uses it, so the host may write at once.
  if (made->placed.mapped) {
    std::memset(made->placed.mapped, 0, made->placed.bytes);
  } else {
    VKF_CHECK(impl_->transfer->fill(made->placed.handle, 0, VK_WHOLE_SIZE, 0));
  }
  return Buffer(std::move(made));
}

std::optional<Buffer> VulkanDevice::import_pages(std::span<const std::byte> pages,
                                                 std::shared_ptr<const void> owner,
                                                 const std::string& name) {
  const std::optional<PlacedBuffer> placed = impl_->memory->import(pages, name);
  if (!placed) return std::nullopt;
  auto made = std::make_shared<Buffer::Impl>();
  made->placed = *placed;
  made->pages = std::move(owner);
  made->device = shared_from_this();
  made->bytes = pages.size();
  made->name = name;
  return Buffer(std::move(made));
}
uint64_t VulkanDevice::import_alignment() const {
  return impl_->context.import_alignment;
}

Status VulkanDevice::upload(const Buffer& buffer, uint64_t offset,
                            std::span<const std::byte> data) {
  VKF_CHECK(check_range(buffer, offset, data.size(), "upload"));
  if (data.empty()) return {};
  if (!buffer.mapped()) return impl_->transfer->upload(buffer.impl()->placed.handle, offset, data);
  VKF_CHECK(impl_->timeline->wait(buffer.impl()->last_use.load()));
  std::memcpy(buffer.mapped() + offset, data.data(), data.size());
  return {};
}

Status VulkanDevice::download(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) {
  VKF_CHECK(check_range(buffer, offset, data.size(), "download"));
  if (data.empty()) return {};
  if (!buffer.mapped()) {
    return impl_->transfer->download(buffer.impl()->placed.handle, offset, data);
  }
  VKF_CHECK(impl_->timeline->wait(buffer.impl()->last_use.load()));
  std::memcpy(data.data(), buffer.mapped() + offset, data.size());
  return {};
}

Status VulkanDevice::fill(const Buffer& buffer, uint64_t offset, uint64_t bytes, uint32_t word) {
  VKF_CHECK(check_range(buffer, offset, bytes, "fill"));
  if (bytes == 0) return {};
  if (!buffer.mapped()) {
    return impl_->transfer->fill(buffer.impl()->placed.handle, offset, bytes, word);
  }
  VKF_CHECK(impl_->timeline->wait(buffer.impl()->last_use.load()));
  for (uint64_t at = 0; at < bytes; at += 4) {
    std::memcpy(buffer.mapped() + offset + at, &word, 4);
  }
  return {};
}

}  // namespace vkformer
