#include <doctest/doctest.h>

#include <algorithm>

#include "support/test_device.h"
#include "vkformer/benchmark.h"
#include "vkformer/session.h"

using namespace vkformer;

namespace {

Result<Model> load_small(const std::shared_ptr<VulkanDevice>& device) {
  return Model::load(device_of(device), std::string(VKFORMER_SOURCE_DIR) + "/models/g2p-en");
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a profile has every dispatch of what ran, and changes no result") {
    VKF_TEST_DEVICE(device);
    const Device handle = device_of(device);
    const auto model = load_small(device);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto plain = Session::create(*model);
    REQUIRE(plain.ok());
    GenerateOptions options = plain->generation_defaults();
    options.beams = options.return_sequences = 1;
    const std::vector<std::vector<int64_t>> rows = {{5, 6, 7, 2}};
    const auto expected = plain->generate(rows, options);
    REQUIRE_MESSAGE(expected.ok(), expected.error().message);

    REQUIRE(start_profile(handle).ok());
    CHECK_FALSE(start_profile(handle).ok());
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    const auto generated = session->generate(rows, options);
    const auto profile = take_profile(handle);
    const auto nothing = take_profile(handle);
    // Recorded before the start: it runs, and leaves no trace.
    const auto other = plain->generate(rows, options);
    const auto unseen = take_profile(handle);
    REQUIRE(stop_profile(handle).ok());
    CHECK_FALSE(stop_profile(handle).ok());
    CHECK_FALSE(take_profile(handle).ok());

    REQUIRE_MESSAGE(generated.ok(), generated.error().message);
    CHECK(generated->front().front().ids == expected->front().front().ids);
    REQUIRE(other.ok());
    CHECK(other->front().front().ids == expected->front().front().ids);
    REQUIRE(profile.ok());
    REQUIRE(nothing.ok());
    CHECK(nothing->dispatches.empty());
    REQUIRE(unseen.ok());
    CHECK(unseen->dispatches.empty());
    // The prompt, and a submit for each step.
    CHECK(static_cast<int64_t>(profile->submit_us.size()) > session->counters().steps);
    REQUIRE_FALSE(profile->dispatches.empty());
    double before = 0;
    for (const ProfiledDispatch& dispatch : profile->dispatches) {
      CHECK_FALSE(dispatch.op.empty());
      CHECK_FALSE(dispatch.kernel.empty());
      CHECK(dispatch.shapes.find("->") != std::string::npos);
      CHECK(dispatch.submit < static_cast<int>(profile->submit_us.size()));
      CHECK(dispatch.microseconds >= 0);
      CHECK(dispatch.start_us >= before);
      before = dispatch.start_us;
    }
    const auto has = [&](const char* op) {
      return std::any_of(profile->dispatches.begin(), profile->dispatches.end(),
                         [op](const ProfiledDispatch& d) { return d.op == op; });
    };
    for (const char* op : {"matmul", "attention", "layer_norm", "kv_append", "token_candidates",
                           "greedy_select", "step_advance"}) {
      CHECK_MESSAGE(has(op), op);
    }
  }
}
