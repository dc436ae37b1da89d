// The same work without timeline semaphores and without mapped device memory.
#include "support/test_device.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"

using namespace vkformer;
using namespace vkformer::fill_plan;

TEST_SUITE("gpu") {
  TEST_CASE("fences and staging give the same results") {
    if (!have_test_device()) return;
    DeviceTweaks tweaks;
    SUBCASE("fences") {
      tweaks.timeline = DeviceTweaks::Timeline::kFences;
    }
    SUBCASE("staging") {
      tweaks.device_memory = DeviceTweaks::DeviceMemory::kStaged;
    }
    SUBCASE("both") {
      tweaks.timeline = DeviceTweaks::Timeline::kFences;
      tweaks.device_memory = DeviceTweaks::DeviceMemory::kStaged;
    }
    auto made = make_test_device(test_device_options(), tweaks);
    REQUIRE(made);
    const auto device = vulkan_of(*made);
    const bool staged = tweaks.device_memory == DeviceTweaks::DeviceMemory::kStaged;
    Plan plan;
    const uint32_t words = add_buffer(plan, "words", 1000);
    const uint32_t addend = add_buffer(plan, "addend", 4);
    plan.dispatches = {add(words, addend, 1000, 1)};
    const Buffer buffer = make_words(*device, 1000, "words");
    Buffer step = make_words(*device, 4, "addend");
    if (staged) CHECK(buffer.mapped() == nullptr);
    const uint32_t four[] = {4};
    write_words(*device, step, four);
    RecordingInputs inputs;
    inputs.memory = {whole(buffer), whole(step)};
    const Recording recording = record(device, plan, inputs);
    // More submits in flight than there are fences.
    uint64_t first = 0, last = 0;
    const RecordingRange one[] = {{&recording}};
    for (int i = 0; i < 40; ++i) {
      auto value = device->submit({.ranges = one});
      REQUIRE(value);
      CHECK(*value > last);
      last = *value;
      if (i == 0) first = last;
    }
    REQUIRE(device->wait(last));
    REQUIRE(device->wait(first));
    REQUIRE(device->wait(last));
    CHECK(mismatches(read_words(*device, buffer, 1000), 200, 0) == 0);
  }
}
