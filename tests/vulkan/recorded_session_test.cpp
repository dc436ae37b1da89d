// A pass inside the application's command buffers and buffers, whole and within a budget, and
// submits of ours between its semaphores.
#include <cstring>
#include <deque>
#include <limits>

#include "support/golden.h"
#include "support/patience.h"
#include "support/preparing.h"
#include "support/test_device.h"
#include "vkformer/session.h"
#include "vulkan/host_queue.h"

namespace vkformer::testing {
namespace {

constexpr double kWholeFrame = std::numeric_limits<double>::infinity();

struct Guest {
  HostDevice host{VK_API_VERSION_1_2};
  std::optional<Device> device;
  std::optional<Session> session;
  TensorMap inputs;
  TensorMap expected;  // of run(), on the application's device

  explicit Guest(const char* name) {
    auto adopted = adopt_device(host.adopted(), no_cache());
    REQUIRE_MESSAGE(adopted.ok(), adopted.error().message);
    device.emplace(std::move(adopted).value());
    const GoldenCase golden = golden_case(name);
    const auto model = Model::load(*device, golden.path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto made = Session::create(*model);
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    session.emplace(std::move(made).value());
    inputs = golden.pass_inputs();
    auto whole = session->run(inputs);
    REQUIRE_MESSAGE(whole.ok(), whole.error().message);
    expected = std::move(whole).value();
  }
};

void check_words(const Tensor& expected, const float* words) {
  CHECK(std::memcmp(words, expected.bytes.data(), expected.bytes.size()) == 0);
}

// The pass ends with the outputs of a run, to the bit.
void check_finishes(Guest& guest) {
  const auto outputs = guest.session->finish();
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  for (const auto& [bound_name, tensor] : guest.expected) {
    const auto& name = bound_name;
    CHECK_MESSAGE(tensor.bytes == outputs->at(name).bytes, name);
  }
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a pass, or two, runs inside the application's command buffer with the same bits") {
    if (!have_test_device()) return;
    for (const char* model : {"bert-base", "vits-convs"}) {
      CAPTURE(model);
      Guest guest(model);
      for (double budget : {kWholeFrame, 300.0}) {
        CAPTURE(budget);
        REQUIRE(guest.session->start(guest.inputs).ok());
        bool more = true;
        const Patience patience;
        while (more) {
          REQUIRE(patience.left());
          HostQueue frame(guest.host);
          const auto advance = guest.session->record(frame.commands(), budget);
          REQUIRE_MESSAGE(advance.ok(), advance.error().message);
          more = advance->more_to_submit();
          frame.submit_and_wait();
        }
        check_finishes(guest);
      }
    }
  }

  TEST_CASE("of two passes, whose host reads between them, nothing lies in buffers") {
    if (!have_test_device()) return;
    Guest guest("vits-convs");
    HostQueue queue(guest.host);
    float* words = nullptr;
    const VkBuffer buffer = queue.make_buffer(4096, words);
    const Status refused =
        start_on_buffers(*guest.session, guest.inputs, {{"waveform", {buffer, 0, 4096}}});
    REQUIRE_FALSE(refused.ok());
    CHECK_MESSAGE(refused.error().message.find("[waveform]") != std::string::npos,
                  refused.error().message);
    CHECK(guest.session->run(guest.inputs).ok());
  }

  TEST_CASE(
      "slices of several frames in flight, in secondary command buffers, give the same bits") {
    if (!have_test_device()) return;
    Guest guest("bert-base");
    REQUIRE(guest.session->start(guest.inputs).ok());
    constexpr size_t kFramesInFlight = 3;
    std::deque<HostQueue> frames;
    bool more = true;
    size_t most_in_flight = 0;
    while (more) {
      // As a renderer's fence does, this lets the oldest frame run out; here with all others.
      if (frames.size() == kFramesInFlight) {
        frames.back().wait();
        frames.clear();
      }
      HostQueue& frame = frames.emplace_back(guest.host);
      const VkCommandBuffer secondary = frame.begin_secondary();
      const auto advance = guest.session->record(secondary, 300);
      REQUIRE_MESSAGE(advance.ok(), advance.error().message);
      more = advance->more_to_submit();
      frame.execute(secondary);
      frame.submit();
      most_in_flight = std::max(most_in_flight, frames.size());
    }
    CHECK(most_in_flight == kFramesInFlight);
    frames.back().wait();
    check_finishes(guest);
  }

  TEST_CASE("pictures and outputs lie in the application's buffers, without copies") {
    if (!have_test_device()) return;
    Guest guest("vit-base");
    const Tensor& pixels = guest.inputs.at("pixel_values");
    const Tensor& hidden = guest.expected.at("last_hidden_state");
    HostQueue queue(guest.host);
    float* in = nullptr;
    float* out = nullptr;
    const VkBuffer pixel_buffer = queue.make_buffer(pixels.bytes.size() + 256, in);
    const VkBuffer output_buffer = queue.make_buffer(hidden.bytes.size(), out);
    TensorMap shapes = guest.inputs;
    std::memset(shapes.at("pixel_values").bytes.data(), 0, pixels.bytes.size());
    const Status started =
        start_on_buffers(*guest.session, shapes,
                         {{"pixel_values", {pixel_buffer, 256, pixels.bytes.size()}},
                          {"last_hidden_state", {output_buffer, 0, hidden.bytes.size()}}});
    REQUIRE_MESSAGE(started.ok(), started.error().message);
    const auto buffers = pass_buffers(*guest.session);
    REQUIRE(buffers.ok());
    REQUIRE(buffers->count("last_hidden_state") == 1);
    CHECK(buffers->at("last_hidden_state").range.buffer == output_buffer);
    CHECK(buffers->at("last_hidden_state").tensor.shape == hidden.shape);
    queue.barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_WRITE_BIT,
                  VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT);
    auto recorded = guest.session->record(queue.commands(), kWholeFrame);
    REQUIRE_MESSAGE(recorded.ok(), recorded.error().message);
    CHECK_FALSE(recorded->more_to_submit());
    // Nothing has run yet: what counts is what the buffer holds at submit.
    std::memcpy(in + 64, pixels.bytes.data(), pixels.bytes.size());
    queue.submit_and_wait();
    check_words(hidden, out);
    const auto rest = guest.session->finish();
    REQUIRE_MESSAGE(rest.ok(), rest.error().message);
    CHECK(rest->count("last_hidden_state") == 0);
  }

  TEST_CASE("the application's commands read an output of ours in the same submit") {
    if (!have_test_device()) return;
    Guest guest("bert-base");
    REQUIRE(guest.session->start(guest.inputs).ok());
    const auto buffers = pass_buffers(*guest.session);
    REQUIRE(buffers.ok());
    const BufferRange ours = buffers->at("last_hidden_state").range;
    const Tensor& hidden = guest.expected.at("last_hidden_state");
    HostQueue queue(guest.host);
    float* words = nullptr;
    const VkBuffer copy = queue.make_buffer(hidden.bytes.size(), words);
    REQUIRE(guest.session->record(queue.commands(), kWholeFrame).ok());
    queue.copy(ours.buffer, ours.offset, copy, hidden.bytes.size());
    queue.barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                  VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    queue.submit_and_wait();
    check_words(hidden, words);
    CHECK(guest.session->cancel().ok());
  }

  TEST_CASE("our submit waits for the application's semaphores and signals its own") {
    if (!have_test_device()) return;
    Guest guest("bert-base");
    if (guest.host.enabled12.timelineSemaphore == VK_FALSE) {
      MESSAGE("skipped: the device has no timeline semaphores");
      return;
    }
    HostQueue queue(guest.host);
    const VkSemaphore binary = queue.make_semaphore(HostQueue::SemaphoreKind::kBinary);
    const VkSemaphore timeline = queue.make_semaphore(HostQueue::SemaphoreKind::kTimeline);
    REQUIRE(guest.session->start(guest.inputs).ok());
    queue.submit_signalling(binary);
    const auto advance =
        advance_between(*guest.session, kWholeFrame, {{binary, 0}}, {{timeline, 7}});
    REQUIRE_MESSAGE(advance.ok(), advance.error().message);
    queue.wait_for(timeline, 7);
    check_finishes(guest);
  }

  TEST_CASE("recorded slices that never run leave nothing behind when they are cancelled") {
    if (!have_test_device()) return;
    Guest guest("bert-base");
    for (int round = 0; round < 3; ++round) {
      REQUIRE(guest.session->start(guest.inputs).ok());
      HostQueue dropped(guest.host);
      REQUIRE(guest.session->record(dropped.commands(), 200).ok());
      REQUIRE(guest.session->cancel().ok());
    }
    REQUIRE(guest.session->start(guest.inputs).ok());
    auto advance = guest.session->advance(kWholeFrame);
    for (const Patience patience; patience.left() && advance.ok();) {
      if (advance->progress == Advance::Progress::kDone) break;
      advance = guest.session->advance(kWholeFrame);
    }
    REQUIRE(advance.ok());
    CHECK(advance->progress == Advance::Progress::kDone);
    check_finishes(guest);
  }

  TEST_CASE("a recorded slice that is dropped comes again, and the pass gives the same bits") {
    if (!have_test_device()) return;
    Guest guest("bert-base");
    CHECK_FALSE(guest.session->drop_recorded().ok());
    REQUIRE(guest.session->start(guest.inputs).ok());
    const auto nothing = guest.session->drop_recorded();
    REQUIRE_FALSE(nothing.ok());
    int dropped = 0;
    Advance now;
    int frame = 0;
    for (const Patience patience; patience.left() && now.more_to_submit(); ++frame) {
      HostQueue queue(guest.host);
      const auto advance = guest.session->record(queue.commands(), 200);
      REQUIRE_MESSAGE(advance.ok(), advance.error().message);
      if (still_prepares(*advance)) continue;
      // Of three frames the swapchain of one is lost, and of one in nine that of the next as well.
      if (frame % 3 == 0) {
        if (frame % 9 == 0) REQUIRE(guest.session->record(queue.commands(), 200).ok());
        for (int slice = 0; slice < (frame % 9 == 0 ? 2 : 1); ++slice) {
          const auto given_up = guest.session->drop_recorded();
          // What was recorded last may have been nothing at all.
          if (slice == 0) REQUIRE_MESSAGE(given_up.ok(), given_up.error().message);
          ++dropped;
        }
        continue;
      }
      now = *advance;
      queue.submit_and_wait();
    }
    CHECK(dropped > 0);
    check_finishes(guest);
  }

  TEST_CASE("steps of a generation that are dropped come again, and give the same tokens") {
    if (!have_test_device()) return;
    Guest guest("gpt2-batch");
    GenerateOptions options = guest.session->generation_defaults();
    options.beams = 1;
    options.max_new_tokens = 6;
    const auto whole = guest.session->generate_masked(guest.inputs, options);
    REQUIRE_MESSAGE(whole.ok(), whole.error().message);
    REQUIRE(guest.session->start_generation(guest.inputs, options).ok());
    int dropped = 0;
    int frame = 0;
    for (const Patience patience; patience.left(); ++frame) {
      HostQueue queue(guest.host);
      const auto advance = guest.session->record(queue.commands(), 2000);
      REQUIRE_MESSAGE(advance.ok(), advance.error().message);
      if (still_prepares(*advance)) continue;
      if (advance->progress == Advance::Progress::kDone) break;
      if (frame % 2 == 0 && guest.session->drop_recorded().ok()) {
        ++dropped;
        continue;
      }
      queue.submit_and_wait();
    }
    CHECK(dropped > 0);
    const auto sliced = guest.session->finish_generation();
    REQUIRE_MESSAGE(sliced.ok(), sliced.error().message);
    REQUIRE(sliced->size() == whole->size());
    for (size_t i = 0; i < whole->size(); ++i) CHECK((*sliced)[i][0].ids == (*whole)[i][0].ids);
  }

  TEST_CASE("more recorded slices than can be told apart are refused, and the pass goes on") {
    if (!have_test_device()) return;
    Guest guest("bert-base");
    REQUIRE(guest.session->start(guest.inputs).ok());
    HostQueue queue(guest.host);
    auto advance = guest.session->record(queue.commands(), 1);
    while (advance.ok() && advance->more_to_submit()) {
      advance = guest.session->record(queue.commands(), 1);
    }
    REQUIRE_FALSE(advance.ok());
    CHECK(advance.error().message.find("have not run") != std::string::npos);
    queue.submit_and_wait();
    HostQueue rest(guest.host);
    for (int i = 0; i < 60; ++i) {
      advance = guest.session->record(rest.commands(), kWholeFrame);
      REQUIRE_MESSAGE(advance.ok(), advance.error().message);
      if (!advance->more_to_submit()) break;
    }
    rest.submit_and_wait();
    check_finishes(guest);
  }

  TEST_CASE("places that do not fit are refused by name") {
    if (!have_test_device()) return;
    Guest guest("bert-base");
    HostQueue queue(guest.host);
    float* words = nullptr;
    const VkBuffer buffer = queue.make_buffer(4096, words);
    const auto refused = [&](const std::map<std::string, BufferRange>& places, const char* part) {
      Status started = start_on_buffers(*guest.session, guest.inputs, places);
      if (started.ok()) {
        // What only a plan shows.
        const auto advance = guest.session->advance(kWholeFrame);
        REQUIRE_FALSE(advance.ok());
        started = advance.error();
      }
      CHECK_MESSAGE(started.error().message.find(part) != std::string::npos,
                    started.error().message);
    };
    refused({{"pixels", {buffer, 0, 4096}}}, "[pixels] is not a tensor of this pass");
    refused({{"last_hidden_state", {buffer, 0, 4}}}, "[last_hidden_state] needs");
    refused({{"last_hidden_state", {VK_NULL_HANDLE, 0, 4}}}, "no buffer");
    refused({{"last_hidden_state", {buffer, 0, 4096}}, {"input_ids", {buffer, 256, 256}}},
            "overlap");
    CHECK(forget_buffers(*guest.session).ok());
    // After a refusal nothing is started.
    CHECK(guest.session->run(guest.inputs).ok());
    REQUIRE(guest.session->start(guest.inputs).ok());
    CHECK_FALSE(advance_between(*guest.session, 1e6, {{VK_NULL_HANDLE, 0}}, {}).ok());
    CHECK(guest.session->cancel().ok());
  }
}

}  // namespace vkformer::testing
