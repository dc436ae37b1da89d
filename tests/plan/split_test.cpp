#include <numeric>
#include <vector>

#include "plan/random_plan.h"
#include "plan/slicing.h"

namespace vkformer::testing {
namespace {

// Every group of the dispatch is in exactly one part.
void check_covers(const Dispatch& d, const std::vector<DispatchPart>& parts) {
  const size_t total = size_t{d.groups[0]} * d.groups[1] * d.groups[2];
  std::vector<int> seen(total, 0);
  double flops = 0;
  for (const DispatchPart& part : parts) {
    flops += part.flops;
    for (size_t axis = 0; axis < 3; ++axis) {
      REQUIRE(part.base[axis] + part.groups[axis] <= d.groups[axis]);
      REQUIRE(part.groups[axis] >= 1);
    }
    for (uint32_t z = 0; z < part.groups[2]; ++z) {
      for (uint32_t y = 0; y < part.groups[1]; ++y) {
        for (uint32_t x = 0; x < part.groups[0]; ++x) {
          const size_t row = size_t{part.base[2] + z} * d.groups[1] + part.base[1] + y;
          ++seen[row * d.groups[0] + part.base[0] + x];
        }
      }
    }
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
  CHECK(flops == doctest::Approx(d.flops));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("the parts of a long dispatch cover it once and keep below the limit") {
    std::mt19937 engine(3);
    for (int round = 0; round < 200; ++round) {
      Dispatch d;
      for (uint32_t& count : d.groups) count = static_cast<uint32_t>(pick(engine, 1, 40));
      d.flops = static_cast<double>(pick(engine, 1, 1000000));
      const auto limit = static_cast<double>(pick(engine, 1, 1000000));
      const std::vector<DispatchPart> parts = split_dispatch(d, limit);
      check_covers(d, parts);
      // One slice of the longest axis is the least that can be cut off.
      const uint32_t longest = *std::max_element(d.groups.begin(), d.groups.end());
      const double slice = d.flops / longest;
      for (const DispatchPart& part : parts) CHECK(part.flops <= limit * 1.0001 + slice);
    }
  }

  TEST_CASE("a short dispatch stays whole") {
    Dispatch d;
    d.groups = {7, 3, 2};
    d.flops = 100;
    for (double limit : {100.0, 1e9, 0.0}) {
      const std::vector<DispatchPart> parts = split_dispatch(d, limit);
      REQUIRE(parts.size() == 1);
      CHECK(parts[0].groups == d.groups);
      CHECK(parts[0].base == std::array<uint32_t, 3>{0, 0, 0});
    }
  }

  TEST_CASE("a single group cannot be split") {
    Dispatch d;
    d.flops = 1e15;
    CHECK(split_dispatch(d, 1).size() == 1);
  }
}

}  // namespace vkformer::testing
