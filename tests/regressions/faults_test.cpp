// Single Vulkan calls that fail where that once went wrong. tests/faults tries all of them.
#include <limits>
#include <optional>
#include <thread>

#include "support/fault_entry_points.h"
#include "support/golden.h"
#include "support/patience.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

// A session of bert-base on a device whose calls can be made to fail, and what it gives
// undisturbed.
struct Faulty {
  std::optional<Session> session;
  TensorMap inputs;
  std::vector<std::byte> wanted;
  Call wait = Call::kWaitSemaphores;  // what this device waits with

  Faulty() {
    FaultTable::get().clear();
    DeviceOptions options = test_device_options();
    options.compile_threads = 0;
    DeviceTweaks tweaks = test_device_tweaks();
    tweaks.get_instance_proc_addr = FaultTable::get_instance_proc_addr;
    const auto device = make_test_device(options, tweaks);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    const GoldenCase golden = golden_case("bert-base");
    const auto model = Model::load(*device, golden.path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto made = Session::create(*model);
    REQUIRE(made.ok());
    session.emplace(std::move(made).value());
    inputs = golden.pass_inputs();
    wanted = run();
    const auto fences = static_cast<size_t>(Call::kWaitForFences);
    if (FaultTable::get().counts()[fences] > 0) wait = Call::kWaitForFences;
  }
  ~Faulty() {
    FaultTable::get().clear();
    session.reset();
    CHECK(FaultTable::get().live().empty());
  }
  std::vector<std::byte> run() {
    const auto given = session->run(inputs);
    REQUIRE_MESSAGE(given.ok(), given.error().message);
    return given->at("last_hidden_state").bytes;
  }
};

constexpr double kWhole = std::numeric_limits<double>::infinity();

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a slice whose command buffer could not be made comes again") {
    if (!have_test_device()) return;
    Faulty faulty;
    REQUIRE(faulty.session->start(faulty.inputs).ok());
    REQUIRE(faulty.session->advance(1).ok());
    FaultTable::get().fail(Call::kAllocateCommandBuffers, 1, VK_ERROR_OUT_OF_HOST_MEMORY);
    const auto refused = faulty.session->advance(1);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kOutOfMemory);
    FaultTable::get().clear();
    REQUIRE(faulty.session->advance(kWhole).ok());
    const auto given = faulty.session->finish();
    REQUIRE_MESSAGE(given.ok(), given.error().message);
    CHECK(given->at("last_hidden_state").bytes == faulty.wanted);
  }

  TEST_CASE("a slice whose command buffer could not be ended is not waited for") {
    if (!have_test_device()) return;
    Faulty faulty;
    REQUIRE(faulty.session->start(faulty.inputs).ok());
    REQUIRE(faulty.session->advance(1).ok());
    FaultTable::get().fail(Call::kEndCommandBuffer, 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    REQUIRE_FALSE(faulty.session->advance(1).ok());
    FaultTable::get().clear();
    auto progress = Advance::Progress::kRunning;
    for (const Patience patience; patience.left() && progress != Advance::Progress::kDone;) {
      const auto advance = faulty.session->advance(kWhole);
      REQUIRE_MESSAGE(advance.ok(), advance.error().message);
      progress = advance->progress;
      std::this_thread::yield();
    }
    CHECK(progress == Advance::Progress::kDone);
    const auto given = faulty.session->finish();
    REQUIRE_MESSAGE(given.ok(), given.error().message);
    CHECK(given->at("last_hidden_state").bytes == faulty.wanted);
  }

  TEST_CASE("a wait that fails while the GPU goes on ends the pass, not what it uses") {
    if (!have_test_device()) return;
    Faulty faulty;
    for (uint64_t nth = 1; nth <= 3; ++nth) {
      FaultTable::get().fail(faulty.wait, nth, VK_ERROR_OUT_OF_DEVICE_MEMORY);
      (void)faulty.session->run(faulty.inputs);
      FaultTable::get().clear();
      CHECK(faulty.run() == faulty.wanted);
    }
  }

  TEST_CASE("a finish that fails ends what was started") {
    if (!have_test_device()) return;
    Faulty faulty;
    REQUIRE(faulty.session->start(faulty.inputs).ok());
    REQUIRE(faulty.session->advance(kWhole).ok());
    FaultTable::get().fail(faulty.wait, 1, VK_ERROR_OUT_OF_HOST_MEMORY);
    const auto failed = faulty.session->finish();
    FaultTable::get().clear();
    REQUIRE_FALSE(failed.ok());
    CHECK(faulty.run() == faulty.wanted);
  }

  TEST_CASE("a driver that never waits counts as lost, and nothing is left over") {
    if (!have_test_device()) return;
    Faulty faulty;
    FaultTable::get().fail(faulty.wait, 1, VK_ERROR_OUT_OF_HOST_MEMORY,
                           FaultTable::Repeat::kAlways);
    const auto failed = faulty.session->run(faulty.inputs);
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().code == ErrorCode::kOutOfMemory);
    // What it submitted has long run by then.
    faulty.session.reset();
    CHECK(FaultTable::get().live().empty());
  }

  TEST_CASE("what a failed call leaves in a handle is not destroyed") {
    if (!have_test_device()) return;
    Faulty faulty;
    int64_t tokens = 5;
    for (const Call call : {Call::kCreateDescriptorPool, Call::kCreateCommandPool}) {
      TensorMap other;  // a shape that is recorded anew
      const std::vector<int64_t> ids(static_cast<size_t>(++tokens), 3);
      other["input_ids"] = Tensor::from_ints({1, tokens}, ids);
      FaultTable::get().fail(call, 1, VK_ERROR_OUT_OF_HOST_MEMORY);
      // Perhaps an error; perhaps other recordings gave way and it went on.
      (void)faulty.session->run(other);
      CHECK(FaultTable::get().injected() == 1);
      FaultTable::get().clear();
      CHECK(faulty.session->run(other).ok());
    }
    CHECK(FaultTable::get().live().find("never were") == std::string::npos);
  }
}

}  // namespace vkformer::testing
