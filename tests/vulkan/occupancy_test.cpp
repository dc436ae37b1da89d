// VK_NV_compute_occupancy_priority, which no driver here has: the entry points below add it to the
// device's own.
#include "driver/occupancy.h"

#include <cstring>
#include <vector>

#include "driver/loader.h"
#include "support/test_device.h"
#include "vulkan/command_buffers.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"

using namespace vkformer;
using namespace vkformer::fill_plan;

namespace {

// Entry points carry no pointer, so there is one of it a process.
struct Pretender {
  PFN_vkGetInstanceProcAddr get = nullptr;  // the loader's
  PFN_vkEnumerateDeviceExtensionProperties extensions = nullptr;
  PFN_vkGetPhysicalDeviceFeatures2 features = nullptr;
  PFN_vkCreateDevice create = nullptr;
  PFN_vkGetDeviceProcAddr get_device = nullptr;
  bool enabled = false;           // by the newest device
  std::vector<float> priorities;  // set in command buffers
};

Pretender& pretender() {
  static Pretender one;
  return one;
}

VKAPI_ATTR void VKAPI_CALL set_priority(VkCommandBuffer, const OccupancyParameters* parameters) {
  pretender().priorities.push_back(parameters->occupancyPriority);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkCmdSetComputeOccupancyPriorityNV") == 0) {
    return pretender().enabled ? reinterpret_cast<PFN_vkVoidFunction>(set_priority) : nullptr;
  }
  return pretender().get_device(device, name);
}

VKAPI_ATTR VkResult VKAPI_CALL list_extensions(VkPhysicalDevice device, const char* layer,
                                               uint32_t* count, VkExtensionProperties* list) {
  const uint32_t room = *count;
  if (list != nullptr && room > 0) *count = room - 1;
  const VkResult result = pretender().extensions(device, layer, count, list);
  if (list == nullptr) {
    ++*count;
  } else if (result == VK_SUCCESS && *count < room) {
    std::strcpy(list[*count].extensionName, kOccupancyExtension);
    list[(*count)++].specVersion = 1;
  }
  return result;
}

VKAPI_ATTR void VKAPI_CALL ask_features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* head) {
  pretender().features(device, head);
  for (auto* next = static_cast<VkBaseOutStructure*>(head->pNext); next != nullptr;
       next = next->pNext) {
    if (next->sType != OccupancyFeatures::kType) continue;
    reinterpret_cast<OccupancyFeatures*>(next)->computeOccupancyPriority = VK_TRUE;
  }
}

// The driver gets neither the extension nor the struct.
VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* device) {
  VkDeviceCreateInfo plain = *info;
  std::vector<const char*> names;
  bool named = false, chained = false;
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    const char* name = info->ppEnabledExtensionNames[i];
    if (std::strcmp(name, kOccupancyExtension) == 0)
      named = true;
    else
      names.push_back(name);
  }
  plain.enabledExtensionCount = static_cast<uint32_t>(names.size());
  plain.ppEnabledExtensionNames = names.data();
  auto* before = reinterpret_cast<VkBaseOutStructure*>(&plain);
  VkBaseOutStructure* ours = nullptr;
  while (before->pNext != nullptr && before->pNext->sType != OccupancyFeatures::kType) {
    before = before->pNext;
  }
  if (before->pNext != nullptr) {
    ours = before->pNext;
    chained = reinterpret_cast<OccupancyFeatures*>(ours)->computeOccupancyPriority == VK_TRUE;
    before->pNext = ours->pNext;
  }
  CHECK(named == chained);
  pretender().enabled = chained;
  const VkResult result = pretender().create(physical, &plain, allocator, device);
  if (ours != nullptr) before->pNext = ours;
  return result;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_function(VkInstance instance, const char* name) {
  Pretender& p = pretender();
  const PFN_vkVoidFunction found = p.get(instance, name);
  const auto replace = [&](auto& next, auto own) {
    next = reinterpret_cast<std::remove_reference_t<decltype(next)>>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(own);
  };
  if (found == nullptr) return nullptr;
  if (std::strcmp(name, "vkEnumerateDeviceExtensionProperties") == 0) {
    return replace(p.extensions, list_extensions);
  }
  if (std::strcmp(name, "vkGetPhysicalDeviceFeatures2") == 0) {
    return replace(p.features, ask_features);
  }
  if (std::strcmp(name, "vkCreateDevice") == 0) return replace(p.create, create_device);
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return replace(p.get_device, get_device_function);
  }
  return found;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("dispatches leave the GPU to graphics, but where the application says otherwise") {
    if (!have_test_device()) return;
    DeviceTweaks tweaks;
    const Result<Loader> loader = Loader::open();
    REQUIRE(loader);
    pretender().get = loader->get_instance_proc_addr();
    tweaks.get_instance_proc_addr = get_function;
    DeviceOptions options = test_device_options();
    for (const auto priority :
         {DeviceOptions::QueuePriority::kLow, DeviceOptions::QueuePriority::kNormal}) {
      const bool low = priority == DeviceOptions::QueuePriority::kLow;
      CAPTURE(low);
      options.queue_priority = priority;
      const auto made = make_test_device(options, tweaks);
      REQUIRE_MESSAGE(made.ok(), made.error().message);
      CHECK(pretender().enabled == low);
      const auto device = vulkan_of(*made);
      Plan plan;
      const uint32_t words = add_buffer(plan, "words", 1000);
      const uint32_t addend = add_buffer(plan, "addend", 4);
      plan.dispatches = {add(words, addend, 1000, 1)};
      const Buffer buffer = make_words(*device, 1000, "words");
      const Buffer step = make_words(*device, 4, "addend");
      RecordingInputs inputs;
      inputs.memory = {whole(buffer), whole(step)};
      pretender().priorities.clear();
      Recording recording = record(device, plan, inputs);
      const RecordingRange one[] = {{&recording}};
      const auto value = device->submit({.ranges = one});
      REQUIRE(value);
      REQUIRE(device->wait(*value));
      for (const float set : pretender().priorities) CHECK(set == kLowOccupancy);
      CHECK(pretender().priorities.empty() != low);
      // In a command buffer of the application the usual one follows.
      Context& context = device->impl().context;
      auto frame = make_transient_commands(context, "test");
      REQUIRE(frame);
      REQUIRE(begin_commands(context, frame->commands, 0, "test"));
      pretender().priorities.clear();
      REQUIRE(recording.append(frame->commands));
      CHECK(pretender().priorities ==
            (low ? std::vector<float>{kLowOccupancy, kNormalOccupancy} : std::vector<float>{}));
      CHECK(context.api.EndCommandBuffer(frame->commands) == VK_SUCCESS);
      destroy_command_pool(context, frame->pool);
    }
  }
}
