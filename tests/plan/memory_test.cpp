#include "plan/random_plan.h"

namespace vkformer::testing {
namespace {

// First and last dispatch that binds the buffer; first > last if none does.
std::pair<size_t, size_t> life(const Plan& plan, uint32_t buffer) {
  size_t first = plan.dispatches.size();
  size_t last = 0;
  for (size_t i = 0; i < plan.dispatches.size(); ++i) {
    if (!is_bound(plan.dispatches[i], buffer)) continue;
    first = std::min(first, i);
    last = i;
  }
  return {first, last};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("no two arena buffers that live at the same time overlap") {
    for (uint32_t seed = 0; seed < 60; ++seed) {
      CAPTURE(seed);
      Plan plan = random_plan(seed, 5 + seed % 40, 3 + seed % 50);
      plan_memory(plan, 256);
      uint64_t total = 0;
      for (uint32_t a = 0; a < plan.buffers.size(); ++a) {
        const PlanBuffer& x = plan.buffers[a];
        const auto [a_first, a_last] = life(plan, a);
        if (x.source != BufferSource::kArena || a_first > a_last) continue;
        CHECK(x.offset % 256 == 0);
        CHECK(x.offset + x.bytes <= plan.arena_bytes);
        total += (x.bytes + 255) / 256 * 256;
        for (uint32_t b = 0; b < a; ++b) {
          const auto [b_first, b_last] = life(plan, b);
          const bool together = a_first <= b_last && b_first <= a_last && b_first <= b_last;
          if (together) CHECK_FALSE(share_memory(plan, a, b));
        }
      }
      CHECK(plan.arena_naive_bytes == total);
      CHECK(plan.arena_bytes <= total);
    }
  }

  TEST_CASE("a chain of equal buffers takes the room of two") {
    Plan plan = chain_plan(12, 1000);
    plan_memory(plan, 256);
    CHECK(plan.arena_bytes == 2 * 1024);
    CHECK(plan.arena_naive_bytes == 13 * 1024);
    plan_memory(plan, 4096);
    CHECK(plan.arena_bytes == 2 * 4096);
    for (const PlanBuffer& buffer : plan.buffers) CHECK(buffer.offset % 4096 == 0);
  }

  TEST_CASE("buffers outside the arena and unused ones take no room") {
    Plan plan = chain_plan(2, 512);
    plan.buffers[0].source = BufferSource::kExternal;
    plan.buffers[2].source = BufferSource::kConstant;
    plan.buffers.push_back({.name = "unused", .bytes = 1 << 20});
    plan_memory(plan, 256);
    CHECK(plan.arena_bytes == 512);
    CHECK(plan.arena_naive_bytes == 512);
    Plan empty;
    plan_memory(empty, 256);
    CHECK(empty.arena_bytes == 0);
  }

  TEST_CASE("planning is repeatable") {
    Plan first = random_plan(7, 30, 40);
    Plan second = random_plan(7, 30, 40);
    plan_memory(first, 256);
    plan_memory(second, 256);
    plan_memory(second, 256);
    for (size_t i = 0; i < first.buffers.size(); ++i) {
      CHECK(first.buffers[i].offset == second.buffers[i].offset);
    }
  }
}

}  // namespace vkformer::testing
