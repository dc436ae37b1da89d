// Choosing a device, buffers and copies, injected faults, threads.
#include "vulkan/device.h"

#include <thread>

#include "support/test_device.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"

using namespace vkformer;
using namespace vkformer::fill_plan;

namespace {

VKAPI_ATTR VkResult VKAPI_CALL lose_submit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
  return VK_ERROR_DEVICE_LOST;
}
VKAPI_ATTR VkResult VKAPI_CALL refuse_memory(VkDevice, const VkMemoryAllocateInfo*,
                                             const VkAllocationCallbacks*, VkDeviceMemory*) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("every device is listed, and can be chosen by index, name or class") {
    if (!have_test_device()) return;
    auto list = list_devices();
    REQUIRE(list);
    REQUIRE_FALSE(list->empty());
    for (const DeviceInfo& info : *list) {
      CAPTURE(info.name);
      CHECK_FALSE(info.name.empty());
      CHECK(info.uuid.size() == 32);
      CHECK(info.max_invocations >= 128);
    }
    DeviceOptions options;
    options.cache_directory = "none";
    for (const std::string& wanted :
         {std::string("0"), list->front().name.substr(0, 4), std::string("best")}) {
      options.device = wanted;
      CHECK(Device::create(options));
    }
    options.device = "no such device";
    const auto missing = Device::create(options);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(missing.error().message.find(list->front().name) != std::string::npos);
  }

  TEST_CASE("tier and limits clamp") {
    if (!have_test_device()) return;
    DeviceOptions options = test_device_options();
    options.tier = Tier::kBaseline;
    options.limits = LimitProfile::kAndroid2022;
    const auto device = Device::create(options);
    REQUIRE(device);
    CHECK(device->tier() == Tier::kBaseline);
    CHECK(vulkan_of(*device)->caps().limits.max_invocations == 128);
    CHECK(vulkan_of(*device)->caps().limits.max_storage_buffers == 4);
  }

  TEST_CASE("buffers start at zero and copies round-trip") {
    VKF_TEST_DEVICE(device);
    for (MemoryUse use : {MemoryUse::kDevice, MemoryUse::kHost}) {
      // More than a staging buffer holds.
      Buffer buffer = make_words(*device, 5 << 20, "large", use);
      CHECK(mismatches(read_words(*device, buffer, 5 << 20), 0, 0) == 0);
      std::vector<uint32_t> words(5 << 20);
      for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i) * 3;
      write_words(*device, buffer, words);
      CHECK(read_words(*device, buffer, 5 << 20) == words);
      REQUIRE(device->fill(buffer, 8, 16, 0xabcdu));
      const auto head = read_words(*device, buffer, 8);
      CHECK(head == std::vector<uint32_t>{0, 3, 0xabcd, 0xabcd, 0xabcd, 0xabcd, 18, 21});
      CHECK((use == MemoryUse::kDevice || buffer.mapped() != nullptr));
    }
  }

  TEST_CASE("copies outside a buffer are refused") {
    VKF_TEST_DEVICE(device);
    Buffer buffer = make_words(*device, 4, "small");
    std::vector<std::byte> bytes(20);
    CHECK_FALSE(device->upload(buffer, 0, bytes));
    CHECK_FALSE(device->upload(buffer, 2, std::span(bytes).first(4)));
    CHECK_FALSE(device->download(buffer, 16, std::span(bytes).first(4)));
    CHECK_FALSE(device->download(buffer, ~3ull, std::span(bytes).first(8)));
    CHECK_FALSE(device->fill(buffer, 0, 6, 0));
    Buffer empty;
    CHECK_FALSE(device->upload(empty, 0, bytes));
    CHECK(device->upload(buffer, 16, {}));
    CHECK_FALSE(device->make_buffer(0, MemoryUse::kDevice, "nothing"));
    CHECK_FALSE(device->make_buffer(~0ull, MemoryUse::kDevice, "everything"));
  }

  TEST_CASE("memory is reused and given back") {
    VKF_TEST_DEVICE(device);
    const uint64_t before = device->memory_in_use();
    {
      std::vector<Buffer> buffers;
      for (int i = 0; i < 50; ++i) {
        buffers.push_back(make_words(*device, 1 + 1000 * static_cast<uint64_t>(i), "one of many"));
      }
      CHECK(device->memory_in_use() > before);
      for (size_t i = 0; i < buffers.size(); i += 2) buffers[i] = Buffer();
      // Freed ranges come back zero-filled.
      for (int i = 0; i < 10; ++i) buffers.push_back(make_words(*device, 900, "again"));
      CHECK(mismatches(read_words(*device, buffers.back(), 900), 0, 0) == 0);
      const size_t blocks = device->impl().memory->block_count();
      const Buffer large = make_words(*device, 20 << 20, "a block of its own");
      CHECK(device->impl().memory->block_count() == blocks + 1);
    }
    CHECK(device->memory_in_use() == before);
  }

  TEST_CASE("a lost device is an error, then and from then on") {
    if (!have_test_device()) return;
    auto made = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE(made);
    const auto device = vulkan_of(*made);
    Plan plan;
    add_buffer(plan, "words", 64);
    plan.dispatches = {fill(0, 64, 1)};
    const Buffer buffer = make_words(*device, 64, "words");
    RecordingInputs inputs;
    inputs.memory = {whole(buffer)};
    const Recording recording = record(device, plan, inputs);
    device->impl().context.api.QueueSubmit = lose_submit;
    const RecordingRange one[] = {{&recording}};
    const auto submitted = device->submit({.ranges = one});
    REQUIRE_FALSE(submitted);
    CHECK(submitted.error().code == ErrorCode::kDeviceLost);
    CHECK(submitted.error().message.find("make a new Device") != std::string::npos);
    CHECK(device->lost());
    CHECK(device->wait(0).error().code == ErrorCode::kDeviceLost);
    CHECK(Recording::create(device, plan, inputs).error().code == ErrorCode::kDeviceLost);
    CHECK_FALSE(device->make_buffer(64, MemoryUse::kDevice, "after"));
  }

  TEST_CASE("memory that the driver refuses is an error with sizes") {
    if (!have_test_device()) return;
    auto made = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE(made);
    vulkan_of(*made)->impl().context.api.AllocateMemory = refuse_memory;
    const auto buffer = vulkan_of(*made)->make_buffer(4096, MemoryUse::kDevice, "weights");
    REQUIRE_FALSE(buffer);
    CHECK(buffer.error().code == ErrorCode::kOutOfMemory);
    CHECK(buffer.error().message.find("[weights] needs 4096 bytes") != std::string::npos);
    CHECK_FALSE(vulkan_of(*made)->lost());
    CHECK(made->memory_in_use() == 0);
  }

  TEST_CASE("threads may share a device") {
    VKF_TEST_DEVICE(device);
    std::vector<std::thread> threads;
    std::vector<size_t> wrong(4, 1);
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        Plan plan;
        add_buffer(plan, "words", 512);
        plan.dispatches = {fill(0, 512, t)};
        plan.dispatches[0].spec = {16u << (t % 3)};
        plan.dispatches[0].groups = {32, 1, 1};
        auto buffer = device->make_buffer(2048, MemoryUse::kDevice, "words");
        if (!buffer) return;
        RecordingInputs inputs;
        inputs.memory = {whole(*buffer)};
        auto recording = Recording::create(device, plan, inputs);
        if (!recording) return;
        const std::vector<RecordingRange> batch(3, {&*recording});
        for (int i = 0; i < 20; ++i) {
          auto value = device->submit({.ranges = batch});
          if (!value || !device->wait(*value)) return;
        }
        std::vector<uint32_t> words(512);
        if (!device->download(*buffer, 0, std::as_writable_bytes(std::span(words)))) return;
        wrong[t] = mismatches(words, t);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t w : wrong) CHECK(w == 0);
  }

  TEST_CASE("waiting for a value that was never submitted is an error") {
    VKF_TEST_DEVICE(device);
    CHECK(device->wait(0));
    const Status status = device->wait(~0ull);
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kInvalidArgument);
    const RecordingRange none[] = {{}};
    CHECK_FALSE(device->submit({.ranges = none}));
    const auto empty = device->submit({});
    REQUIRE(empty);
    CHECK(device->wait(*empty));
  }
}
