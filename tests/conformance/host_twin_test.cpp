// The host's twin of reproducible precision: right, by the references in double, and the same as
// the device, by bits.
#include "conformance/host_twin.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "conformance/cases.h"
#include "support/test_device.h"
#include "vkformer/fingerprint.h"

namespace vkformer::testing {
namespace {

// Operators of which some check is computed on the host as well, whatever its size.
const std::set<std::string> kTwinned = {
    "activation",  "combine", "embedding", "gated_activation", "layer_norm",
    "log_softmax", "matmul",  "mean_pool", "rms_norm",         "softmax"};

std::vector<conformance::Check> quick_checks() {
  std::vector<conformance::Check> list = conformance::all_checks();
  std::erase_if(list, [](const conformance::Check& c) { return !c.quick; });
  return list;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("the host's twin is as right as the references ask") {
    std::set<std::string> seen;
    for (const conformance::Check& check : quick_checks()) {
      CAPTURE(check.name);
      auto made = check.make();
      REQUIRE_MESSAGE(made.ok(), made.error().message);
      if (made->precision != Precision::kF32) continue;
      auto twin = conformance::twin_outputs(made->op.graph, made->op.inputs);
      if (!twin) continue;
      seen.insert(check.op);
      if (made->op.finish != nullptr) {
        auto finished = made->op.finish(std::move(*twin));
        REQUIRE_MESSAGE(finished.ok(), finished.error().message);
        *twin = std::move(*finished);
      }
      for (const auto& [name, expected] : made->expected) {
        REQUIRE(twin->count(name) == 1);
        const auto compared = conformance::compare(name, twin->at(name), expected);
        CHECK_MESSAGE(compared.message.empty(), compared.message);
      }
    }
    // Others are seen where their checks are graphs of these.
    for (const std::string& op : kTwinned) CHECK_MESSAGE(seen.count(op) == 1, op);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("a device has the bits of the host") {
    if (!have_test_device()) return;
    std::vector<std::string> names;
    for (const conformance::Check& check : quick_checks()) {
      if (kTwinned.count(check.op) != 0) names.push_back(check.name);
    }
    const auto taken = take_fingerprint(*test_device(), {.filters = names});
    REQUIRE_MESSAGE(taken.ok(), taken.error().message);
    CHECK(taken->compared_with_host > 200);
    const bool same = !taken->host_difference.has_value();
    CHECK_MESSAGE(same, (same ? std::string() : taken->host_difference->message));
  }
}

}  // namespace vkformer::testing
