// The host's twin of reproducible precision: right, by the references in double, and the same as
// the device, by bits.
#include "conformance/host_twin.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "conformance/cases.h"
#include "conformance/search_cases.h"
#include "support/test_device.h"
#include "vkformer/fingerprint.h"

namespace vkformer::testing {
namespace {

std::vector<conformance::Check> quick_checks() {
  std::vector<conformance::Check> list = conformance::all_checks();
  std::erase_if(list, [](const conformance::Check& c) { return !c.quick; });
  return list;
}

// Elements of a step that no slot writes: the reference says NaN of these, or poison.
void forget_untouched(conformance::Array& expected, Tensor& t) {
  const size_t size = dtype_size(t.dtype);
  for (size_t i = 0; i < expected.data.size(); ++i) {
    if (!std::isnan(expected.data[i]) && expected.data[i] != conformance::kPoison) continue;
    expected.data[i] = 0;
    std::memset(&t.bytes[size * i], 0, size);
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("the host's twin has every operator, and is as right as the references ask") {
    std::set<std::string> without;
    for (const conformance::Check& check : quick_checks()) {
      CAPTURE(check.name);
      if (conformance::is_exact(check.op)) continue;
      auto made = check.make();
      REQUIRE_MESSAGE(made.ok(), made.error().message);
      if (made->precision != Precision::kF32) continue;
      auto twin = conformance::twin_outputs(made->op.graph, made->op.inputs);
      if (!twin) {
        without.insert(check.name);
        continue;
      }
      if (made->op.finish != nullptr) {
        auto finished = made->op.finish(std::move(*twin));
        REQUIRE_MESSAGE(finished.ok(), finished.error().message);
        *twin = std::move(*finished);
      }
      const bool step = made->op.graph.is_step();
      for (auto& [name, expected] : made->expected) {
        REQUIRE(twin->count(name) == 1);
        Tensor& got = twin->at(name);
        if (step && made->live_slots < made->op.graph.row_capacity()) {
          forget_untouched(expected.values, got);
        }
        const auto compared = conformance::compare(name, got, expected);
        CHECK_MESSAGE(compared.message.empty(), compared.message);
      }
    }
    CHECK_MESSAGE(without.empty(), *without.begin());
  }
}

TEST_SUITE("gpu") {
  // `vkformer fingerprint` compares all of them; here some of every operator are enough.
  TEST_CASE("a device has the bits of the host") {
    if (!have_test_device()) return;
    constexpr int kOfEach = 3;
    std::vector<std::string> names;
    std::map<std::string, int> taken_of;
    for (const conformance::Check& check : quick_checks()) {
      if (taken_of[check.op]++ < kOfEach) names.push_back(check.name);
    }
    const auto taken = take_fingerprint(*test_device(), {.filters = names});
    REQUIRE_MESSAGE(taken.ok(), taken.error().message);
    CHECK(taken->compared_with_host > 150);
    CHECK(taken->compared_with_host == static_cast<int>(taken->entries.size()));
    const bool same = !taken->host_difference.has_value();
    CHECK_MESSAGE(same, (same ? std::string() : taken->host_difference->message));
  }
}

}  // namespace vkformer::testing
