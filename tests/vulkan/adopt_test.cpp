// Adopting a device that the test itself made, as an application would.
#include "vkformer/vulkan_interop.h"

#include "driver/feature_chain.h"
#include "driver/matrix_units.h"
#include "support/test_device.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"
#include "vulkan/host_device.h"

using namespace vkformer;
using namespace vkformer::fill_plan;

namespace {

// What an application is told is worth enabling, and what the device itself says.
struct Offer {
  DeviceRequirements found;
  Snapshot snapshot;
};
Offer offer_of(const HostDevice& host, uint32_t version) {
  const auto get = host.loader->get_instance_proc_addr();
  auto found = device_requirements(get, host.instance, host.physical, version);
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  auto snapshot = take_snapshot(host.api, host.physical, version, 0);
  REQUIRE(snapshot.ok());
  return {*std::move(found), *std::move(snapshot)};
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
      CHECK((version != VK_API_VERSION_1_1 || device->tier() < Tier::kFp16));
      const auto impl = vulkan_of(*device);
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

  TEST_CASE("what is worth enabling is offered, and can be enabled") {
    if (!have_test_device()) return;
    for (uint32_t version : {VK_API_VERSION_1_1, VK_API_VERSION_1_2}) {
      const HostDevice host(version);
      const auto [found, snapshot] = offer_of(host, version);
      for (const std::string& name : found.extensions) CHECK(snapshot.offers(name.c_str()));
      const bool prioritised = !found.low_priority_extension.empty();
      CHECK(prioritised == (snapshot.offers("VK_KHR_global_priority") ||
                            snapshot.offers("VK_EXT_global_priority")));
      REQUIRE(found.queue_family < snapshot.families.size());
      CHECK((snapshot.families[found.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0);
      CHECK((found.timeline_semaphore == VK_TRUE) == snapshot.timeline);
    }
    CHECK_FALSE(device_requirements(nullptr, nullptr, nullptr, VK_API_VERSION_1_1).ok());
  }

  TEST_CASE("an adopted device has tables if all that they need was enabled, without robustness") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_2);
    const auto [found, snapshot] = offer_of(host, VK_API_VERSION_1_2);
    const bool offered = snapshot.caps.compiler.max_table_parts > 0;
    CHECK((found.descriptor_indexing == VK_TRUE) == offered);
    // What is stated is believed: no pipeline is made here.
    AdoptedDevice adopted = host.adopted();
    const auto parts = [&] {
      const auto device = VulkanDevice::adopt(adopted, no_cache());
      REQUIRE_MESSAGE(device.ok(), device.error().message);
      return (*device)->caps().compiler.max_table_parts;
    };
    CHECK(parts() == 0);
    VkPhysicalDeviceFeatures2 stated{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    FeatureStructs structs;
    REQUIRE(structs.enable(feature::kTables, stated));
    adopted.enabled_features = &stated;
    CHECK((parts() > 0) == offered);
    stated.features.robustBufferAccess = VK_TRUE;
    CHECK(parts() == 0);
    stated.features.robustBufferAccess = VK_FALSE;
    stated.features.shaderStorageBufferArrayDynamicIndexing = VK_FALSE;
    CHECK(parts() == 0);
    stated.features.shaderStorageBufferArrayDynamicIndexing = VK_TRUE;
    stated.pNext = nullptr;
    CHECK(parts() == 0);
    VkPhysicalDeviceVulkan12Features core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    core.runtimeDescriptorArray = core.descriptorBindingVariableDescriptorCount =
        core.descriptorBindingStorageBufferUpdateAfterBind = VK_TRUE;
    stated.pNext = &core;
    CHECK((parts() > 0) == offered);
    core.descriptorBindingVariableDescriptorCount = VK_FALSE;
    CHECK(parts() == 0);
  }

  TEST_CASE("a device made with the feature chain is used as one of our own") {
    if (!have_test_device()) return;
    const auto own = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE(own);
    const HostDevice host(VK_API_VERSION_1_3);
    const auto [found, snapshot] = offer_of(host, VK_API_VERSION_1_3);
    // The application has its own chain, whose struct takes what it has a place for.
    VkPhysicalDeviceVulkan12Features core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceFeatures2* given = nullptr;
    SUBCASE("with a chain of its own") {}
    SUBCASE("with the application's chain") {
      if (snapshot.version < VK_API_VERSION_1_2) return;
      features.pNext = &core;
      given = &features;
    }
    auto chain = FeatureChain::create(found, given);
    REQUIRE_MESSAGE(chain.ok(), chain.error().message);
    CHECK((given == nullptr || chain->features() == given));
    CHECK((given == nullptr || core.timelineSemaphore == found.timeline_semaphore));
    const float priority = 1;
    VkDeviceQueueCreateInfo queues{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queues.queueFamilyIndex = host.family;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    info.pNext = chain->features();
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queues;
    info.enabledExtensionCount = static_cast<uint32_t>(chain->extension_names().size());
    info.ppEnabledExtensionNames = chain->extension_names().data();
    AdoptedDevice adopted = host.adopted();
    REQUIRE(host.api.CreateDevice(host.physical, &info, nullptr, &adopted.device) == VK_SUCCESS);
    const auto function = [&](const char* name) {
      return host.api.GetDeviceProcAddr(adopted.device, name);
    };
    reinterpret_cast<PFN_vkGetDeviceQueue>(function("vkGetDeviceQueue"))(
        adopted.device, host.family, 0, &adopted.queue);
    adopted.enabled_features = chain->features();
    adopted.enabled_extensions = chain->extensions();
    {
      const auto device = adopt_device(adopted, test_device_options());
      REQUIRE_MESSAGE(device.ok(), device.error().message);
      CHECK(device->tier() == own->tier());
      CHECK(device->info().notes == own->info().notes);
    }
    reinterpret_cast<PFN_vkDestroyDevice>(function("vkDestroyDevice"))(adopted.device, nullptr);
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

TEST_SUITE("cpu") {
  TEST_CASE("a feature chain adds what the application's chain lacks") {
    DeviceRequirements wanted;
    wanted.shader_int64 = wanted.shader_float16 = wanted.timeline_semaphore = VK_TRUE;
    wanted.cooperative_matrix = wanted.subgroup_size_control = wanted.descriptor_indexing = VK_TRUE;
    wanted.integer_dot_product = VK_TRUE;
    wanted.extensions = {"VK_KHR_cooperative_matrix", "VK_KHR_swapchain"};
    const std::vector<std::string> own_extensions = {"VK_KHR_swapchain"};
    const Features all = feature::kInt64 | feature::kFp16 | feature::kTimeline | feature::kUnits |
                         feature::kSubgroupSizes | feature::kTables | feature::kDot8;
    {
      auto chain = FeatureChain::create(wanted, nullptr, own_extensions);
      REQUIRE_MESSAGE(chain.ok(), chain.error().message);
      CHECK(features_in(chain->features()) == all);
      CHECK(chain->extensions() ==
            std::vector<std::string>{"VK_KHR_swapchain", "VK_KHR_cooperative_matrix"});
      const FeatureChain moved = *std::move(chain);
      REQUIRE(moved.extension_names().size() == 2);
      CHECK(moved.extension_names()[1] == std::string("VK_KHR_cooperative_matrix"));
      CHECK(features_in(moved.features()) == all);
    }
    // Structs of core versions hold what they have, and nothing is there twice.
    VkPhysicalDeviceVulkan13Features core13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    VkPhysicalDeviceVulkan12Features core12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    features.pNext = &core12;
    core12.pNext = &core13;
    const auto chain = FeatureChain::create(wanted, &features);
    REQUIRE_MESSAGE(chain.ok(), chain.error().message);
    CHECK(features_in(&features) == all);
    CHECK(core12.vulkanMemoryModelDeviceScope == VK_TRUE);
    CHECK(core12.runtimeDescriptorArray == VK_TRUE);
    CHECK(core13.computeFullSubgroups == VK_TRUE);
    const auto* added = static_cast<const VkBaseInStructure*>(core13.pNext);
    REQUIRE(added != nullptr);
    CHECK(added->sType == MatrixFeatures::kType);
    CHECK(added->pNext == nullptr);
  }

  TEST_CASE(
      "a feature chain leaves tables out beside robust buffers, and refuses what is no chain") {
    DeviceRequirements wanted;
    wanted.descriptor_indexing = VK_TRUE;
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    features.features.robustBufferAccess = VK_TRUE;
    CHECK(FeatureChain::create(wanted, &features).ok());
    CHECK(features_in(&features) == 0);
    wanted.shader_int64 = VK_TRUE;
    VkPhysicalDeviceVulkan12Features cycle{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    cycle.pNext = &cycle;
    features.pNext = &cycle;
    const auto looped = FeatureChain::create(wanted, &features);
    REQUIRE_FALSE(looped.ok());
    CHECK(looped.error().message.find("256 structs") != std::string::npos);
    VkPhysicalDeviceFeatures2 empty{};
    const auto untyped = FeatureChain::create(wanted, &empty);
    REQUIRE_FALSE(untyped.ok());
    CHECK(untyped.error().message.find("sType") != std::string::npos);
  }
}
