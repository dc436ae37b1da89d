#include "c_api/enums.h"
#include "c_api/interop.h"

struct vkf_devices {
  std::vector<vkformer::DeviceInfo> infos;
  std::vector<std::vector<const char*>> notes;
};

struct vkf_feature_chain {
  vkformer::FeatureChain chain;
  uint32_t queue_family;
  std::string low_priority;
};

namespace vkformer {
namespace {

void write_info(vkf_device_info* out, const DeviceInfo& info,
                const std::vector<const char*>& notes) {
  vkf_device_info c{};
  c.index = info.index;
  c.name = info.name.c_str();
  c.driver = info.driver.c_str();
  c.kind = choice_name(info.kind);
  c.api_version = info.api_version.c_str();
  c.uuid = info.uuid.c_str();
  c.best_tier = info.best_tier ? choice_name(*info.best_tier) : "";
  c.notes = notes.data();
  c.note_count = notes.size();
  c.memory_bytes = info.memory_bytes;
  c.max_storage_range = info.max_storage_range;
  c.subgroup_size = info.subgroup_size;
  c.max_shared_bytes = info.max_shared_bytes;
  c.max_invocations = info.max_invocations;
  return write_struct(out, c, "device info");
}

// A job of ours as the application's job system calls it.
void run_held_job(void* job) {
  const std::unique_ptr<std::function<void()>> held(static_cast<std::function<void()>*>(job));
  (*held)();
}

DeviceOptions device_options(const vkf_device_options* options) {
  const vkf_device_options given = read_struct(options, "device options");
  DeviceOptions made;
  made.device = text_or(given.device, "best");
  const std::string tier = text_or(given.tier, "best");
  if (tier != "best") made.tier = take(choice_from_name<Tier>(tier));
  made.limits = choice_or(given.limits, LimitProfile::kNone);
  made.cache_directory = text_or(given.cache_directory, "");
  made.pipeline_pack = text_or(given.pipeline_pack, "");
  made.validation = given.validation != 0;
  if (given.log != nullptr) {
    made.log = [log = given.log, data = given.log_data](LogLevel level, const std::string& text) {
      log(data, number_of(level), text.c_str());
    };
  }
  made.allocator = static_cast<const VkAllocationCallbacks*>(given.allocator);
  if (given.memory_budget != 0) made.memory_budget = given.memory_budget;
  made.queue_priority =
      value_of<DeviceOptions::QueuePriority>(given.queue_priority, "queue_priority");
  made.tuning = given.tuning != 0;
  if (given.compile_threads == VKF_NO_COMPILE_THREADS) {
    made.compile_threads = 0;
  } else if (given.compile_threads != 0) {
    made.compile_threads = given.compile_threads;
  }
  if (given.run_job != nullptr) {
    made.run_job = [run = given.run_job, data = given.run_job_data](std::function<void()> job) {
      auto held = std::make_unique<std::function<void()>>(std::move(job));
      run(data, run_held_job, held.release());
    };
  }
  return made;
}

std::unique_ptr<vkf_device> device_handle(Result<Device> made) {
  Device device = take(std::move(made));
  auto self = std::make_unique<vkf_device>(vkf_device{device, device.info(), {}});
  self->notes = pointers_to(self->info.notes);
  return self;
}

AdoptedDevice adopted_device(const vkf_adopted_device* adopted) {
  const vkf_adopted_device given = read_needed(adopted, "adopted device");
  AdoptedDevice made;
  made.get_instance_proc_addr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(given.get_instance_proc_addr);
  made.instance = static_cast<VkInstance>(given.instance);
  made.physical_device = static_cast<VkPhysicalDevice>(given.physical_device);
  made.device = static_cast<VkDevice>(given.device);
  made.queue = static_cast<VkQueue>(given.queue);
  made.queue_family = given.queue_family;
  if (given.api_version != 0) made.api_version = given.api_version;
  made.enabled_features = static_cast<const VkPhysicalDeviceFeatures2*>(given.enabled_features);
  made.enabled_extensions =
      read_texts(given.enabled_extensions, given.enabled_extension_count, "enabled_extensions");
  made.pipeline_cache = handle_from<VkPipelineCache>(given.pipeline_cache);
  void* data = given.queue_lock_data;
  if (given.queue_lock != nullptr) made.queue_lock = [f = given.queue_lock, data] { f(data); };
  if (given.queue_unlock != nullptr) {
    made.queue_unlock = [f = given.queue_unlock, data] { f(data); };
  }
  return made;
}

std::vector<Device> copies_of(const vkf_device* const* devices, size_t count) {
  if (count != 0) need(devices, "devices");
  std::vector<Device> copies;
  for (size_t i = 0; i < count; ++i) {
    need(devices[i], "devices");
    copies.push_back(devices[i]->device);
  }
  return copies;
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_feature_chain_create(vkf_adopted_device* host, void* own, vkf_feature_chain** chain,
                                    vkf_error* error) {
  return make_handle(chain, error, [&] {
    vkf_adopted_device filled = read_needed(host, "adopted device");
    const AdoptedDevice given = adopted_device(host);
    DeviceRequirements wanted = take(device_requirements(
        given.get_instance_proc_addr, given.instance, given.physical_device, given.api_version));
    auto self = std::make_unique<vkf_feature_chain>(vkf_feature_chain{
        take(FeatureChain::create(wanted, static_cast<VkPhysicalDeviceFeatures2*>(own),
                                  given.enabled_extensions)),
        wanted.queue_family, std::move(wanted.low_priority_extension)});
    const std::vector<const char*>& names = self->chain.extension_names();
    filled.enabled_features = self->chain.features();
    filled.enabled_extensions = names.data();
    filled.enabled_extension_count = static_cast<uint32_t>(names.size());
    write_struct(host, filled, "adopted device");
    return self;
  });
}

uint32_t vkf_feature_chain_queue_family(const vkf_feature_chain* chain) {
  return chain != nullptr ? chain->queue_family : 0;
}

const char* vkf_feature_chain_low_priority(const vkf_feature_chain* chain) {
  return chain != nullptr && !chain->low_priority.empty() ? chain->low_priority.c_str() : nullptr;
}

void vkf_feature_chain_free(vkf_feature_chain* chain) {
  delete chain;
}

vkf_status vkf_devices_list(vkf_devices** devices, vkf_error* error) {
  return make_handle(devices, error, [] {
    auto self = std::make_unique<vkf_devices>();
    self->infos = take(list_devices());
    for (const DeviceInfo& info : self->infos) self->notes.push_back(pointers_to(info.notes));
    return self;
  });
}

size_t vkf_devices_count(const vkf_devices* devices) {
  return devices != nullptr ? devices->infos.size() : 0;
}

vkf_status vkf_devices_get(const vkf_devices* devices, size_t index, vkf_device_info* info,
                           vkf_error* error) {
  return guard(error, [&] {
    need(devices, "devices");
    check_index(index, devices->infos.size(), "device");
    return write_info(info, devices->infos[index], devices->notes[index]);
  });
}

void vkf_devices_free(vkf_devices* devices) {
  delete devices;
}

vkf_status vkf_device_create(const vkf_device_options* options, vkf_device** device,
                             vkf_error* error) {
  return make_handle(device, error, [&] {
    const DeviceOptions read = device_options(options);
    return device_handle(Device::create(read));
  });
}

vkf_status vkf_device_adopt(const vkf_adopted_device* adopted, const vkf_device_options* options,
                            vkf_device** device, vkf_error* error) {
  return make_handle(device, error, [&] {
    const DeviceOptions read = device_options(options);
    const AdoptedDevice given = adopted_device(adopted);
    return device_handle(adopt_device(given, read));
  });
}

void vkf_device_free(vkf_device* device) {
  delete device;
}

namespace {
vkf_status create_group(const vkf_device* const* devices, size_t count, const double* shares,
                        int32_t lanes, GroupSplit split, vkf_device_group** group,
                        vkf_error* error) {
  return make_handle(group, error, [&] {
    DeviceGroupOptions options{.lanes = lanes, .split = split};
    if (shares != nullptr) options.shares.assign(shares, shares + count);
    return handle(vkf_device_group{take(DeviceGroup::create(copies_of(devices, count), options))});
  });
}
}  // namespace

vkf_status vkf_device_group_create(const vkf_device* const* devices, size_t count,
                                   const double* shares, int32_t lanes, vkf_device_group** group,
                                   vkf_error* error) {
  return create_group(devices, count, shares, lanes, GroupSplit::kLayers, group, error);
}

vkf_status vkf_device_group_create_divided(const vkf_device* const* devices, size_t count,
                                           int32_t lanes, vkf_device_group** group,
                                           vkf_error* error) {
  return create_group(devices, count, nullptr, lanes, GroupSplit::kTensors, group, error);
}

vkf_status vkf_device_group_create_fastest(const vkf_device* const* devices, size_t count,
                                           int32_t lanes, vkf_device_group** group,
                                           vkf_error* error) {
  return create_group(devices, count, nullptr, lanes, GroupSplit::kFastest, group, error);
}

void vkf_device_group_free(vkf_device_group* group) {
  delete group;
}

vkf_status vkf_device_get_info(const vkf_device* device, vkf_device_info* info, vkf_error* error) {
  return guard(error, [&] {
    need(device, "device");
    return write_info(info, device->info, device->notes);
  });
}

const char* vkf_device_tier(const vkf_device* device) {
  return device != nullptr ? choice_name(device->device.tier()) : "";
}

uint64_t vkf_device_memory_in_use(const vkf_device* device) {
  return device != nullptr ? device->device.memory_in_use() : 0;
}

uint64_t vkf_device_memory_allocated(const vkf_device* device) {
  return device != nullptr ? device->device.memory_allocated() : 0;
}
