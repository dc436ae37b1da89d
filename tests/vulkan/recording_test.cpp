// Recording, submitting and reading back, on whatever device there is.
#include "vulkan/submission.h"

#include "support/test_device.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"
#include "vulkan/recorder.h"

using namespace vkformer;
using namespace vkformer::fill_plan;

TEST_SUITE("gpu") {
  TEST_CASE("a recording fills a buffer, with ragged sizes") {
    VKF_TEST_DEVICE(device);
    for (uint32_t count : {1u, 63u, 64u, 65u, 1009u}) {
      CAPTURE(count);
      Plan plan;
      const uint32_t words = add_buffer(plan, "words", count);
      plan.dispatches = {fill(words, count, 7)};
      const Buffer buffer = make_words(*device, count + 1, "words");
      RecordingInputs inputs;
      inputs.memory = {whole(buffer)};
      const Recording recording = record(device, plan, inputs);
      CHECK(mismatches(read_words(*device, buffer, count + 1), 0, 0) == 0);
      run(*device, recording);
      auto result = read_words(*device, buffer, count + 1);
      CHECK(result.back() == 0);
      result.pop_back();
      CHECK(mismatches(result, 7) == 0);
      CHECK(recording.dispatch_count() == 1);
      CHECK(recording.direct_workgroups() == (count + 63) / 64);
    }
  }

  TEST_CASE("a recording named several times in one submit sees its own results") {
    VKF_TEST_DEVICE(device);
    constexpr uint32_t kCount = 1000;
    Plan plan;
    const uint32_t words = add_buffer(plan, "words", kCount);
    const uint32_t addend = add_buffer(plan, "addend", 4);
    plan.dispatches = {add(words, addend, kCount, 2), add(words, addend, kCount, 1)};
    plan_memory(plan, device->caps().limits.storage_alignment);
    plan_barriers(plan);
    const Buffer buffer = make_words(*device, kCount, "words");
    Buffer step = make_words(*device, 4, "addend");
    const uint32_t five[] = {5};
    write_words(*device, step, five);
    RecordingInputs inputs;
    inputs.memory = {whole(buffer), whole(step)};
    const Recording recording = record(device, plan, inputs);
    CHECK(recording.barrier_count() == 1);
    run(*device, recording, 10);
    CHECK(mismatches(read_words(*device, buffer, kCount), 130, 0) == 0);
    run(*device, recording, 3);
    CHECK(mismatches(read_words(*device, buffer, kCount), 169, 0) == 0);
  }

  TEST_CASE("arena buffers live at their planned offsets") {
    VKF_TEST_DEVICE(device);
    Plan plan;
    const uint32_t a = add_buffer(plan, "a", 300, BufferSource::kArena);
    const uint32_t b = add_buffer(plan, "b", 200, BufferSource::kArena);
    const uint32_t out = add_buffer(plan, "out", 64);
    plan.dispatches = {fill(a, 300, 10), fill(b, 200, 20), add(a, b, 300, 0), fill(out, 64, 1)};
    plan_memory(plan, device->caps().limits.storage_alignment);
    plan_barriers(plan);
    const Buffer buffer = make_words(*device, 64, "out");
    RecordingInputs inputs;
    inputs.memory = {{}, {}, whole(buffer)};
    const Recording recording = record(device, plan, inputs);
    run(*device, recording);
    const BufferSpan span = recording.arena_span(a);
    REQUIRE(span.buffer != nullptr);
    CHECK(recording.arena_bytes() >= 2000);
    // b's first word is 20: it is the addend.
    CHECK(mismatches(read_words(*device, *span.buffer, 300, span.offset), 30) == 0);
    CHECK(recording.arena_span(out).buffer == nullptr);
  }

  TEST_CASE("group counts can come from a buffer") {
    VKF_TEST_DEVICE(device);
    Plan plan;
    const uint32_t first = add_buffer(plan, "first", 640);
    const uint32_t second = add_buffer(plan, "second", 640);
    plan.dispatches = {fill(first, 640, 1), fill(second, 640, 1)};
    for (Dispatch& d : plan.dispatches) d.live_axis = 0;
    const Buffer one = make_words(*device, 640, "first");
    const Buffer two = make_words(*device, 640, "second");
    Buffer args = make_words(*device, 6, "args");
    RecordingInputs inputs;
    inputs.memory = {whole(one), whole(two)};
    inputs.indirect_args = whole(args);
    const Recording recording = record(device, plan, inputs);
    CHECK(recording.direct_workgroups() == 0);
    const uint32_t counts[] = {2, 1, 1, 3, 1, 1};
    write_words(*device, args, counts);
    run(*device, recording);
    auto words = read_words(*device, one, 640);
    CHECK(mismatches(std::span(words).first(128), 1) == 0);
    CHECK(mismatches(std::span(words).subspan(128), 0, 0) == 0);
    words = read_words(*device, two, 640);
    CHECK(mismatches(std::span(words).first(192), 1) == 0);
    CHECK(mismatches(std::span(words).subspan(192), 0, 0) == 0);
    SUBCASE("but not of what is longer than the device's limit: that runs at capacity, in parts") {
      for (Dispatch& d : plan.dispatches) d.flops = 2.5 * device->caps().max_dispatch_flops;
      const Recording split = record(device, plan, inputs);
      CHECK(split.direct_workgroups() == 20);
      run(*device, split);
      CHECK(mismatches(read_words(*device, one, 640), 1) == 0);
      CHECK(mismatches(read_words(*device, two, 640), 1) == 0);
    }
    SUBCASE("too few arguments are an error") {
      inputs.indirect_args.bytes = 12;
      const auto bad = Recording::create(device, plan, inputs);
      REQUIRE_FALSE(bad);
      CHECK(bad.error().message.find("24 bytes") != std::string::npos);
    }
  }

  TEST_CASE("group counts written by an earlier dispatch of the same plan are seen") {
    VKF_TEST_DEVICE(device);
    Plan plan;
    const uint32_t args = add_buffer(plan, "args", 3);
    const uint32_t words = add_buffer(plan, "words", 64);
    // Leaves {1, 2, 3} in the arguments; 6 groups that all own the same 64 words.
    plan.dispatches = {fill(args, 3, 1), fill(words, 64, 9), fill(args, 3, 1)};
    plan.dispatches[1].live_axis = 0;
    const Buffer arguments = make_words(*device, 4, "args");
    const Buffer buffer = make_words(*device, 64, "words");
    RecordingInputs inputs;
    inputs.memory = {whole(arguments), whole(buffer)};
    inputs.indirect_args = whole(arguments);
    const Recording recording = record(device, plan, inputs);
    // Write before indirect read, and indirect read before write.
    CHECK(recording.barrier_count() == 2);
    run(*device, recording, 2);
    CHECK(mismatches(read_words(*device, buffer, 64), 9) == 0);
  }

  TEST_CASE("long dispatches are split, and long plans become several command buffers") {
    VKF_TEST_DEVICE(device);
    constexpr uint32_t kCount = 64 * 64;
    Plan plan;
    const uint32_t words = add_buffer(plan, "words", kCount);
    const uint32_t addend = add_buffer(plan, "addend", 4);
    plan.dispatches = {fill(words, kCount, 3), add(words, addend, kCount, 1)};
    for (Dispatch& d : plan.dispatches) d.flops = 5.5 * device->caps().max_dispatch_flops;
    plan_barriers(plan);
    const Buffer buffer = make_words(*device, kCount, "words");
    const Buffer zero = make_words(*device, 4, "addend");
    RecordingInputs inputs;
    inputs.memory = {whole(buffer), whole(zero)};
    const Recording recording = record(device, plan, inputs);
    CHECK(recording.direct_workgroups() == 128);
    const auto& chunks = recording.impl().chunks;
    CHECK(chunks.size() >= 3);
    for (const SubmitChunk& chunk : chunks) {
      CHECK(chunk.flops <= 4.001 * device->caps().max_dispatch_flops);
    }
    run(*device, recording, 2);
    CHECK(mismatches(read_words(*device, buffer, kCount), 4) == 0);
  }

  TEST_CASE("timestamps give a time per dispatch") {
    VKF_TEST_DEVICE(device);
    Plan plan;
    const uint32_t words = add_buffer(plan, "words", 4096);
    plan.dispatches = {fill(words, 4096, 1), fill(words, 4096, 2)};
    plan_barriers(plan);
    const Buffer buffer = make_words(*device, 4096, "words");
    RecordingInputs inputs;
    inputs.memory = {whole(buffer)};
    const Recording plain = record(device, plan, inputs);
    run(*device, plain);
    auto times = plain.dispatch_times();
    REQUIRE(times);
    CHECK(times->empty());
    inputs.profile = RecordingInputs::Profile::kOn;
    const Recording profiled = record(device, plan, inputs);
    if (device->impl().context.timestamp_bits == 0) {
      MESSAGE("skipped: the device has no timestamps");
      return;
    }
    CHECK_FALSE(profiled.dispatch_times());  // never submitted
    run(*device, profiled, 2);
    times = profiled.dispatch_times();
    REQUIRE(times);
    REQUIRE(times->size() == 2);
    for (double t : *times) {
      CHECK(t >= 0);
      CHECK(t < 60e9);
    }
  }

  TEST_CASE("a recording may go while the device still runs it") {
    VKF_TEST_DEVICE(device);
    Buffer kept;
    const uint64_t before = device->memory_in_use();
    {
      Plan plan;
      const uint32_t words = add_buffer(plan, "words", 1 << 16);
      const uint32_t scratch = add_buffer(plan, "scratch", 1 << 16, BufferSource::kArena);
      plan.dispatches = {fill(scratch, 1 << 16, 1), fill(words, 1 << 16, 4)};
      plan_memory(plan, 256);
      kept = make_words(*device, 1 << 16, "words");
      RecordingInputs inputs;
      inputs.memory = {whole(kept), {}};
      const Recording recording = record(device, plan, inputs);
      const RecordingRange twice[] = {{&recording}, {&recording}};
      REQUIRE(device->submit({.ranges = twice}));
    }
    CHECK(mismatches(read_words(*device, kept, 1 << 16), 4) == 0);
    kept = Buffer();
    CHECK(device->memory_in_use() == before);
  }
}
