#include "api/c_enums.h"
#include "api/c_interop.h"
#include "vulkan/matrix_units.h"

struct vkf_devices {
  std::vector<vkformer::DeviceInfo> infos;
  std::vector<std::vector<const char*>> notes;
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

DeviceOptions device_options(const vkf_device_options* options) {
  const vkf_device_options given = read_struct(options, "device options");
  DeviceOptions made;
  made.device = text_or(given.device, "best");
  const std::string tier = text_or(given.tier, "best");
  if (tier != "best") made.tier = take(choice_from_name<Tier>(tier));
  made.limits = choice_or(given.limits, LimitProfile::kNone);
  made.cache_directory = text_or(given.cache_directory, "");
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

// The name as a text that never goes away, or null; what device_requirements may name.
const char* lasting_name(const std::string& name) {
  for (const char* known :
       {VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME,
        VK_KHR_GLOBAL_PRIORITY_EXTENSION_NAME, VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME,
        kMatrixExtension, kMatrix2Extension, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
        VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME}) {
    if (name == known) return known;
  }
  return nullptr;
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_device_require(const vkf_adopted_device* host, vkf_device_requirements* requirements,
                              vkf_error* error) {
  return guard(error, [&] {
    need(requirements, "requirements");
    const AdoptedDevice given = adopted_device(host);
    const DeviceRequirements found = take(device_requirements(
        given.get_instance_proc_addr, given.instance, given.physical_device, given.api_version));
    vkf_device_requirements c{};
    c.queue_family = found.queue_family;
    c.shader_float16 = found.shader_float16;
    c.timeline_semaphore = found.timeline_semaphore;
    c.shader_int64 = found.shader_int64;
    c.cooperative_matrix = found.cooperative_matrix;
    c.subgroup_size_control = found.subgroup_size_control;
    c.cooperative_matrix2 = found.cooperative_matrix2;
    c.descriptor_indexing = found.descriptor_indexing;
    for (const std::string& name : found.extensions) {
      c.extensions[c.extension_count++] = lasting_name(name);
    }
    c.low_priority_extension = lasting_name(found.low_priority_extension);
    write_struct(requirements, c, "requirements");
  });
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
