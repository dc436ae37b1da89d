// What a host may limit and share (memory, its pipeline cache, its queue), and what happens to
// those who misuse the interface.
#include <cmath>
#include <filesystem>
#include <limits>

#include "checkpoint/temp_dir.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"
#include "vulkan/host_queue.h"

namespace vkformer::testing {
namespace {

constexpr uint64_t kMegabyte = uint64_t{1} << 20;

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

Session session_on(const Device& device, const char* name) {
  const auto model = Model::load(device, golden_case(name).path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return std::move(session).value();
}

TensorMap inputs_of(const char* name) {
  return golden_case(name).pass_inputs();
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a memory budget is kept, named when it does not suffice, and given back") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_2);
    DeviceOptions options = no_cache();
    options.memory_budget = 8 * kMegabyte;
    const auto device = adopt_device(host.adopted(), options);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    {
      Session session = session_on(*device, "bert-base");
      CHECK(session.run(inputs_of("bert-base")).ok());
      CHECK(device->memory_in_use() > 0);
      CHECK(device->memory_in_use() <= device->memory_allocated());
      CHECK(device->memory_allocated() <= options.memory_budget);
      // More tokens than the budget has room for.
      const Tensor ids = Tensor::zeros(DType::kI64, {512, 40});
      const uint64_t before = device->memory_in_use();
      const auto refused = session.run({{"input_ids", ids}});
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == ErrorCode::kOutOfMemory);
      CHECK_MESSAGE(says(refused.error().message, "memory_budget of 8388608 bytes"),
                    refused.error().message);
      CHECK(device->memory_in_use() == before);
      CHECK(device->memory_allocated() <= options.memory_budget);
      CHECK(session.run(inputs_of("bert-base")).ok());
    }
    CHECK(device->memory_in_use() == 0);
    CHECK(session_on(*device, "gpt2-base").generation_defaults().beams >= 1);
  }

  TEST_CASE("a budget that does not hold a model's weights is an error of its loading") {
    if (!have_test_device()) return;
    DeviceOptions options = test_device_options();
    options.memory_budget = 4096;
    const auto device = Device::create(options);
    // Even what a device makes for itself counts.
    if (device.ok()) {
      const auto model = Model::load(*device, golden_case("bert-base").path("model"));
      REQUIRE_FALSE(model.ok());
      CHECK(model.error().code == ErrorCode::kOutOfMemory);
      CHECK_MESSAGE(says(model.error().message, "memory_budget of 4096"), model.error().message);
      CHECK(device->memory_allocated() <= 4096);
    } else {
      CHECK_MESSAGE(says(device.error().message, "memory_budget of 4096"), device.error().message);
    }
    options.memory_budget = 0;
    const auto nothing = Device::create(options);
    REQUIRE_FALSE(nothing.ok());
    CHECK_MESSAGE(says(nothing.error().message, "memory_budget is 0"), nothing.error().message);
  }

  TEST_CASE("the application's pipeline cache is used, no file is written, and it stays") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_1);
    HostQueue queue(host);
    VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    VkPipelineCache cache = VK_NULL_HANDLE;
    REQUIRE(queue.api().CreatePipelineCache(host.device, &info, nullptr, &cache) == VK_SUCCESS);
    const test::TempDir folder;
    DeviceOptions options;
    options.cache_directory = folder.path();
    AdoptedDevice adopted = host.adopted();
    adopted.pipeline_cache = cache;
    const auto size = [&] {
      size_t bytes = 0;
      REQUIRE(queue.api().GetPipelineCacheData(host.device, cache, &bytes, nullptr) == VK_SUCCESS);
      return bytes;
    };
    const size_t empty = size();
    {
      const auto device = adopt_device(adopted, options);
      REQUIRE_MESSAGE(device.ok(), device.error().message);
      CHECK(session_on(*device, "bert-base").run(inputs_of("bert-base")).ok());
    }
    CHECK(size() >= empty);
    CHECK(std::filesystem::is_empty(folder.path()));
    // Again, from what is in it.
    {
      const auto device = adopt_device(adopted, options);
      REQUIRE(device.ok());
      CHECK(session_on(*device, "bert-base").run(inputs_of("bert-base")).ok());
    }
    queue.api().DestroyPipelineCache(host.device, cache, nullptr);
  }

  TEST_CASE("our own queue is made at either priority") {
    if (!have_test_device()) return;
    TensorMap first;
    for (auto priority :
         {DeviceOptions::QueuePriority::kLow, DeviceOptions::QueuePriority::kNormal}) {
      DeviceOptions options = test_device_options();
      options.queue_priority = priority;
      const auto device = Device::create(options);
      REQUIRE_MESSAGE(device.ok(), device.error().message);
      auto outputs = session_on(*device, "bert-base").run(inputs_of("bert-base"));
      REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
      if (first.empty()) first = *outputs;
      for (const auto& [name, tensor] : first) CHECK(outputs->at(name).bytes == tensor.bytes);
    }
  }

  TEST_CASE("a session keeps the device and the model whose handles are gone") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_1);
    std::optional<Session> session;
    {
      const auto device = adopt_device(host.adopted(), no_cache());
      REQUIRE(device.ok());
      session.emplace(session_on(*device, "bert-base"));
    }
    CHECK(session->run(inputs_of("bert-base")).ok());
  }

  TEST_CASE("budgets of no time, of less and of none that is a number are refused") {
    if (!have_test_device()) return;
    Session session = session_on(*test_device(), "bert-base");
    CHECK_FALSE(session.advance(1000).ok());  // nothing was started
    REQUIRE(session.start(inputs_of("bert-base")).ok());
    for (double budget : {0.0, -1.0, std::nan("")}) {
      const auto advance = session.advance(budget);
      REQUIRE_FALSE(advance.ok());
      CHECK_MESSAGE(says(advance.error().message, "must be above 0"), advance.error().message);
    }
    CHECK(session.cancel().ok());
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("features that the application did not enable are not used, whatever the device has") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_2);
    AdoptedDevice adopted = host.adopted();
    adopted.enabled_features = nullptr;
    const auto plain = adopt_device(adopted, no_cache());
    REQUIRE_MESSAGE(plain.ok(), plain.error().message);
    CHECK(plain->tier() != Tier::kFp16);
    CHECK_FALSE(vulkan_of(*plain)->caps().compiler.has_int64);
    std::string notes;
    for (const std::string& note : plain->info().notes) notes += note + "\n";
    CHECK(says(notes, "did not enable timelineSemaphore"));
    // A chain that claims everything gets no more than the device has.
    VkPhysicalDeviceVulkan12Features claims{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    claims.shaderFloat16 = host.enabled12.shaderFloat16;
    VkPhysicalDeviceFeatures2 chain{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    chain.pNext = &claims;
    adopted.enabled_features = &chain;
    const auto half = adopt_device(adopted, no_cache());
    REQUIRE_MESSAGE(half.ok(), half.error().message);
    CHECK((half->tier() == Tier::kFp16) ==
          (claims.shaderFloat16 == VK_TRUE && vulkan_of(*half)->caps().subgroup()));
  }

  TEST_CASE("a queue family that cannot compute is refused by its number") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_1);
    const auto snapshot = take_snapshot(host.api, host.physical, host.version, 0);
    REQUIRE(snapshot.ok());
    const auto count = static_cast<uint32_t>(snapshot->families.size());
    for (uint32_t family = 0; family <= count; ++family) {
      const bool computes =
          family < count && (snapshot->families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
      if (computes) continue;
      AdoptedDevice adopted = host.adopted();
      adopted.queue_family = family;
      const auto device = adopt_device(adopted, no_cache());
      REQUIRE_FALSE(device.ok());
      CHECK(says(device.error().message, "queue family " + std::to_string(family)));
    }
  }
}

}  // namespace vkformer::testing
