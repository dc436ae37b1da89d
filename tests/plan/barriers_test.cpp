#include "plan/random_plan.h"

namespace vkformer::testing {
namespace {

// Whether dispatch `later` must wait for `earlier`; `memory`: for its writes, so that an execution
// dependency is not enough.
struct Hazard {
  bool any = false;
  bool memory = false;
};

Hazard hazard_between(const Plan& plan, const Dispatch& earlier, const Dispatch& later) {
  Hazard hazard;
  for (const BoundBuffer& a : earlier.bindings) {
    for (const BoundBuffer& b : later.bindings) {
      const bool wrote = a.access != Access::kRead;
      if ((!wrote && b.access == Access::kRead) || !share_memory(plan, a.buffer, b.buffer))
        continue;
      hazard.any = true;
      hazard.memory = hazard.memory || wrote;
    }
  }
  return hazard;
}

// A barrier after `earlier` and at the latest before `later` that orders them.
bool separated(const Plan& plan, size_t earlier, size_t later, bool memory) {
  return std::any_of(plan.barriers.begin(), plan.barriers.end(), [&](const Barrier& barrier) {
    return barrier.before_dispatch > earlier && barrier.before_dispatch <= later &&
           !(memory && barrier.write_after_read_only);
  });
}

// The dispatches between the barrier and the one before it include a reason for it.
bool needed(const Plan& plan, size_t index) {
  const size_t at = plan.barriers[index].before_dispatch;
  for (size_t earlier = 0; earlier < at; ++earlier) {
    const Hazard hazard = hazard_between(plan, plan.dispatches[earlier], plan.dispatches[at]);
    if (!hazard.any) continue;
    Plan without = plan;
    without.barriers.erase(without.barriers.begin() + static_cast<ptrdiff_t>(index));
    if (!separated(without, earlier, at, hazard.memory)) return true;
  }
  return false;
}

void check_barriers(const Plan& plan) {
  size_t missing = 0;
  for (size_t later = 0; later < plan.dispatches.size(); ++later) {
    for (size_t earlier = 0; earlier < later; ++earlier) {
      const Hazard hazard = hazard_between(plan, plan.dispatches[earlier], plan.dispatches[later]);
      if (hazard.any && !separated(plan, earlier, later, hazard.memory)) ++missing;
    }
  }
  CHECK(missing == 0);
  for (size_t i = 0; i < plan.barriers.size(); ++i) {
    const Barrier& barrier = plan.barriers[i];
    CHECK(needed(plan, i));
    CHECK_FALSE(barrier.buffers.empty());
    for (uint32_t buffer : barrier.buffers) {
      CHECK(is_bound(plan.dispatches[barrier.before_dispatch], buffer));
    }
    if (i > 0) CHECK(plan.barriers[i - 1].before_dispatch < barrier.before_dispatch);
  }
}

Dispatch touch(std::vector<BoundBuffer> bindings) {
  Dispatch d;
  d.bindings = std::move(bindings);
  return d;
}

// Dispatches over two external buffers, 0 and 1.
Plan plan_of(std::vector<Dispatch> dispatches) {
  Plan plan;
  for (const char* name : {"x", "y"}) {
    plan.buffers.push_back({.name = name, .source = BufferSource::kExternal, .bytes = 64});
  }
  plan.dispatches = std::move(dispatches);
  plan_barriers(plan);
  return plan;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("random plans: every hazard is separated, and every barrier separates one") {
    for (uint32_t seed = 0; seed < 80; ++seed) {
      CAPTURE(seed);
      Plan plan = random_plan(seed, 4 + seed % 30, 2 + seed % 40);
      plan_memory(plan, 256);
      plan_barriers(plan);
      check_barriers(plan);
    }
  }

  TEST_CASE("barriers come between what depends, and only there") {
    const Access r = Access::kRead;
    const Access w = Access::kWrite;
    CHECK(plan_of({touch({{0, r}}), touch({{0, r}})}).barriers.empty());
    CHECK(plan_of({touch({{0, w}}), touch({{1, w}})}).barriers.empty());
    const Plan raw = plan_of({touch({{0, w}}), touch({{0, r}, {1, w}})});
    REQUIRE(raw.barriers.size() == 1);
    CHECK_FALSE(raw.barriers[0].write_after_read_only);
    CHECK(raw.barriers[0].buffers == std::vector<uint32_t>{0});
    const Plan war = plan_of({touch({{0, r}}), touch({{0, w}})});
    REQUIRE(war.barriers.size() == 1);
    CHECK(war.barriers[0].write_after_read_only);
    const Plan waw = plan_of({touch({{0, w}}), touch({{0, w}})});
    REQUIRE(waw.barriers.size() == 1);
    CHECK_FALSE(waw.barriers[0].write_after_read_only);
  }

  TEST_CASE("an execution barrier does not hide an earlier write") {
    const Plan plan = plan_of({touch({{0, Access::kWrite}, {1, Access::kRead}}),
                               touch({{1, Access::kWrite}}), touch({{0, Access::kRead}})});
    REQUIRE(plan.barriers.size() == 2);
    CHECK(plan.barriers[0].write_after_read_only);
    CHECK_FALSE(plan.barriers[1].write_after_read_only);
  }

  TEST_CASE("one barrier serves independent branches") {
    const Access r = Access::kRead;
    const Access w = Access::kWrite;
    Plan plan = plan_of({touch({{0, w}}), touch({{1, w}}), touch({{0, r}}), touch({{1, r}})});
    CHECK(plan.barriers.size() == 1);
    plan_barriers(plan);
    CHECK(plan.barriers.size() == 1);
  }

  TEST_CASE("reused arena memory counts as the same memory") {
    Plan plan = chain_plan(6, 300);
    plan_memory(plan, 256);
    plan_barriers(plan);
    CHECK(plan.barriers.size() == 5);
    check_barriers(plan);
    CHECK(plan.dump().find("-- barrier for %1") != std::string::npos);
  }
}

}  // namespace vkformer::testing
