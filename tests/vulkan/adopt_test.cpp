// Adopting a device that the test itself made, as an application would.
#include "vkformer/vulkan_interop.h"

#include "support/test_device.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"

using namespace vkformer;
using namespace vkformer::fill_plan;

namespace {

// An application's own instance and device, with nothing enabled but what is asked for.
struct HostDevice {
  std::optional<Loader> loader;
  VkInstance instance = VK_NULL_HANDLE;
  InstanceApi api;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  uint32_t family = 0;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t version;
  VkPhysicalDeviceVulkan12Features enabled12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 enabled{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};

  explicit HostDevice(uint32_t api_version) : version(api_version) {
    auto opened = Loader::open();
    REQUIRE(opened);
    loader.emplace(std::move(opened).value());
    auto get = loader->get_instance_proc_addr();
    auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = version;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    REQUIRE(create(&info, nullptr, &instance) == VK_SUCCESS);
    auto table = InstanceApi::load(get, instance);
    REQUIRE(table);
    api = *table;
    uint32_t count = 1;
    REQUIRE(api.EnumeratePhysicalDevices(instance, &count, &physical) >= 0);
    auto snapshot = take_snapshot(api, physical, version, 0);
    REQUIRE(snapshot);
    REQUIRE(snapshot->compute_family() >= 0);
    family = static_cast<uint32_t>(snapshot->compute_family());
    if (version >= VK_API_VERSION_1_2 && snapshot->version >= VK_API_VERSION_1_2) {
      enabled12.shaderFloat16 = snapshot->fp16;
      enabled12.timelineSemaphore = VK_TRUE;
      enabled.pNext = &enabled12;
    }
    const float priority = 1;
    VkDeviceQueueCreateInfo queues{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queues.queueFamilyIndex = family;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    VkDeviceCreateInfo made{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    made.pNext = &enabled;
    made.queueCreateInfoCount = 1;
    made.pQueueCreateInfos = &queues;
    REQUIRE(api.CreateDevice(physical, &made, nullptr, &device) == VK_SUCCESS);
    auto get_queue =
        reinterpret_cast<PFN_vkGetDeviceQueue>(api.GetDeviceProcAddr(device, "vkGetDeviceQueue"));
    get_queue(device, family, 0, &queue);
  }

  ~HostDevice() {
    if (device) {
      reinterpret_cast<PFN_vkDestroyDevice>(api.GetDeviceProcAddr(device, "vkDestroyDevice"))(
          device, nullptr);
    }
    if (instance && api.DestroyInstance) api.DestroyInstance(instance, nullptr);
  }

  AdoptedDevice adopted() const {
    AdoptedDevice a;
    a.get_instance_proc_addr = loader->get_instance_proc_addr();
    a.instance = instance;
    a.physical_device = physical;
    a.device = device;
    a.queue_family = family;
    a.queue = queue;
    a.api_version = version;
    a.enabled_features = &enabled;
    return a;
  }
};

DeviceOptions no_cache() {
  DeviceOptions options;
  options.cache_directory = "none";
  return options;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("an application's device is adopted, used under its lock, and left alive") {
    if (!have_test_device()) return;
    uint32_t version = VK_API_VERSION_1_1;
    SUBCASE("Vulkan 1.1 without any feature") {}
    SUBCASE("Vulkan 1.2 with timeline semaphores") {
      version = VK_API_VERSION_1_2;
    }
    const HostDevice host(version);
    int locked = 0, unlocked = 0;
    AdoptedDevice adopted = host.adopted();
    adopted.queue_lock = [&] { ++locked; };
    adopted.queue_unlock = [&] { ++unlocked; };
    {
      auto device = adopt_device(adopted, no_cache());
      REQUIRE(device);
      CHECK(device->tier() != (version == VK_API_VERSION_1_1 ? "fp16" : ""));
      const auto impl = device->impl();
      const Buffer buffer = make_words(*impl, 100, "words");
      Plan plan;
      add_buffer(plan, "words", 100);
      plan.dispatches = {fill(0, 100, 6)};
      RecordingInputs inputs;
      inputs.memory = {whole(buffer)};
      const Recording recording = record(impl, plan, inputs);
      const int before = locked;
      run(*impl, recording);
      CHECK(locked == before + 1);
      CHECK(mismatches(read_words(*impl, buffer, 100), 6) == 0);
    }
    CHECK(locked == unlocked);
    // Still the application's, and still working.
    auto again = adopt_device(adopted, no_cache());
    CHECK(again);
  }

  TEST_CASE("what cannot be adopted is refused by name") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_1);
    struct Case {
      void (*spoil)(AdoptedDevice&);
      const char* says;
    };
    const Case cases[] = {
        {[](AdoptedDevice& a) { a.instance = VK_NULL_HANDLE; }, "instance is null"},
        {[](AdoptedDevice& a) { a.device = VK_NULL_HANDLE; }, "device is null"},
        {[](AdoptedDevice& a) { a.physical_device = VK_NULL_HANDLE; }, "physical_device is null"},
        {[](AdoptedDevice& a) { a.queue = VK_NULL_HANDLE; }, "queue is null"},
        {[](AdoptedDevice& a) { a.get_instance_proc_addr = nullptr; }, "get_instance_proc_addr"},
        {[](AdoptedDevice& a) { a.api_version = VK_API_VERSION_1_0; }, "below Vulkan 1.1"},
        {[](AdoptedDevice& a) { a.queue_family = 99; }, "queue family 99"},
        {[](AdoptedDevice& a) { a.queue_lock = [] {}; }, "queue_unlock"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.says);
      AdoptedDevice adopted = host.adopted();
      c.spoil(adopted);
      const auto device = adopt_device(adopted, no_cache());
      REQUIRE_FALSE(device);
      CHECK(device.error().message.find(c.says) != std::string::npos);
    }
  }
}
