// What a dispatch may not say, and the sentences that tell it so.
#include <algorithm>
#include <functional>

#include "params/norm.h"
#include "support/test_device.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"

using namespace vkformer;
using namespace vkformer::fill_plan;

namespace {

// The message of the error that recording one changed fill dispatch gives.
std::string message_for(const std::shared_ptr<VulkanDevice>& device,
                        const std::function<void(Plan&, RecordingInputs&)>& change) {
  Plan plan;
  add_buffer(plan, "words", 64);
  plan.dispatches = {fill(0, 64, 1)};
  const Buffer buffer = make_words(*device, 1024, "words");
  RecordingInputs inputs;
  inputs.memory = {whole(buffer)};
  change(plan, inputs);
  const auto recording = Recording::create(device, plan, inputs);
  return recording ? "" : recording.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a dispatch that disagrees with its shader is refused by name") {
    VKF_TEST_DEVICE(device);
    CHECK(message_for(device, [](Plan&, RecordingInputs&) {}).empty());
    std::string m = message_for(device, [](Plan& plan, RecordingInputs&) {
      plan.dispatches[0].bindings.push_back({0, Access::kRead});
    });
    CHECK(has(m, "[fill_words__u32] in 'fill' is given 2 bindings"));
    m = message_for(device, [](Plan& plan, RecordingInputs&) {
      plan.dispatches[0].bindings[0].access = Access::kReadWrite;
    });
    CHECK(has(m, "declares access 'read and write' for binding 0"));
    m = message_for(device,
                    [](Plan& plan, RecordingInputs&) { plan.dispatches[0].push.resize(12); });
    CHECK(has(m, "12 bytes of push constants"));
    m = message_for(device, [](Plan& plan, RecordingInputs&) { plan.dispatches[0].spec = {4096}; });
    CHECK(has(m, "[fill_words__u32] has a workgroup of 4096"));
    m = message_for(device, [](Plan& plan, RecordingInputs&) { plan.dispatches[0].spec = {}; });
    CHECK(has(m, "0 specialization constants"));
    m = message_for(device, [](Plan& plan, RecordingInputs&) { plan.dispatches[0].spec = {0}; });
    CHECK(has(m, "workgroup of 0"));
    m = message_for(device, [](Plan& plan, RecordingInputs&) {
      plan.dispatches[0].set_constants(LayerNormConstants{});
    });
    CHECK(has(m,
              "is given the specialization constants of 'VKF_LAYER_NORM_CONSTANTS', but its "
              "shader declares 'VKF_WORKGROUP_CONSTANTS'"));
  }

  TEST_CASE("memory that does not fit is refused by name") {
    VKF_TEST_DEVICE(device);
    std::string m =
        message_for(device, [](Plan&, RecordingInputs& inputs) { inputs.memory[0].bytes = 252; });
    CHECK(has(m, "[words] needs 256 bytes, but is given 252"));
    m = message_for(device,
                    [](Plan&, RecordingInputs& inputs) { inputs.memory[0].offset = ~0ull; });
    CHECK(has(m, "[words]"));
    m = message_for(device, [](Plan&, RecordingInputs& inputs) { inputs.memory[0] = {}; });
    CHECK(has(m, "has no memory"));
    m = message_for(
        device, [](Plan& plan, RecordingInputs&) { plan.dispatches[0].bindings[0].buffer = 9; });
    CHECK(has(m, "names buffer 9 of 1"));
    m = message_for(device, [](Plan& plan, RecordingInputs&) {
      plan.buffers[0].source = BufferSource::kArena;
    });
    CHECK(has(m, "run plan_memory"));
  }

  TEST_CASE("a uniform binding that covers more than the device allows is refused, not cut") {
    if (!have_test_device()) return;
    constexpr uint64_t kMost = 16384;  // what every device allows
    DeviceTweaks tweaks = test_device_tweaks();
    Quirk small;
    small.date = "2000-01-01";
    small.reason = "A made-up driver mishandles large ranges.";
    small.limits = DeviceLimits{.max_uniform_range = kMost};
    tweaks.quirks = {small};
    auto made = make_test_device(test_device_options(), tweaks);
    REQUIRE(made);
    const auto device = vulkan_of(*made);
    const auto record = [&](uint64_t bytes) {
      Plan plan;
      add_buffer(plan, "words", 64);
      add_buffer(plan, "step", bytes / 4);
      plan.dispatches = {add(0, 1, 64, 1)};
      const Buffer words = make_words(*device, 64, "words");
      const Buffer step = make_words(*device, bytes / 4, "step");
      RecordingInputs inputs;
      inputs.memory = {whole(words), whole(step)};
      const auto recording = Recording::create(device, plan, inputs);
      return recording ? std::string() : recording.error().message;
    };
    CHECK(record(kMost).empty());
    const std::string refused = record(kMost + 16);
    CHECK(has(refused, "[step] for [fill_add__u32] in 'add' binding 1 covers 16400 bytes"));
    CHECK(has(refused, "one uniform binding may cover 16384"));
  }

  TEST_CASE("clamped limits are obeyed") {
    if (!have_test_device()) return;
    DeviceTweaks tweaks = test_device_tweaks();
    Quirk small;
    small.date = "2000-01-01";
    small.reason = "A made-up driver mishandles large ranges.";
    small.limits = DeviceLimits{.max_storage_range = 1024,
                                .max_storage_buffers = 1,
                                .max_invocations = 32,
                                .max_allocation = 65536};
    small.max_tier = Tier::kBaseline;
    tweaks.quirks = {small};
    auto made = make_test_device(test_device_options(), tweaks);
    REQUIRE(made);
    const auto device = vulkan_of(*made);
    CHECK(made->tier() == Tier::kBaseline);
    CHECK(made->info().max_invocations == 32);
    const std::vector<std::string>& notes = made->info().notes;
    CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return has(note, "workaround of 2000-01-01");
    }));
    std::string m = message_for(device, [](Plan&, RecordingInputs&) {});
    CHECK(has(m, "workgroup of 64 invocations, but this device allows 32"));
    m = message_for(device, [](Plan& plan, RecordingInputs&) {
      plan.dispatches[0].spec = {32};
      plan.buffers[0].bytes = 2048;
    });
    CHECK(has(m, "[words] for [fill_words__u32] in 'fill' binding 0 covers 2048 bytes"));
    CHECK(has(m, "1024"));
    const auto large = device->make_buffer(1 << 20, MemoryUse::kDevice, "large");
    REQUIRE_FALSE(large);
    CHECK(large.error().code == ErrorCode::kOutOfMemory);
    CHECK(has(large.error().message, "[large] asks for a buffer of 1048576 bytes"));
  }
}
