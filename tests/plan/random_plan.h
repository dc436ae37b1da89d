// Random plans, for the tests of the planners: data only, nothing is ever run.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "plan/plan.h"

namespace vkformer::testing {

inline int64_t pick(std::mt19937& engine, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(engine);
}

// Every dispatch writes its own buffer or of an earlier one and reads a few older ones.
inline Plan random_plan(uint32_t seed, int64_t buffers, int64_t dispatches) {
  std::mt19937 engine(seed);
  Plan plan;
  for (int64_t i = 0; i < buffers; ++i) {
    PlanBuffer buffer{.name = "b" + std::to_string(i)};
    const int64_t kind = pick(engine, 0, 9);
    if (kind == 0) buffer.source = BufferSource::kExternal;
    if (kind == 1) buffer.source = BufferSource::kConstant;
    buffer.bytes = static_cast<uint64_t>(4 * pick(engine, 1, kind == 2 ? 100000 : 700));
    plan.buffers.push_back(buffer);
  }
  for (int64_t i = 0; i < dispatches; ++i) {
    Dispatch d;
    d.label = "d" + std::to_string(i);
    const int64_t bindings = pick(engine, 1, 4);
    for (int64_t k = 0; k < bindings; ++k) {
      const auto buffer = static_cast<uint32_t>(pick(engine, 0, buffers - 1));
      const bool constant = plan.buffers[buffer].source == BufferSource::kConstant;
      const auto access = static_cast<Access>(constant ? 0 : pick(engine, 0, 2));
      d.bindings.push_back({buffer, access});
    }
    plan.dispatches.push_back(std::move(d));
  }
  return plan;
}

// A chain x0 -> x1 -> ... of dispatches over arena buffers of that many bytes each.
inline Plan chain_plan(uint32_t length, uint64_t bytes) {
  Plan plan;
  for (uint32_t i = 0; i <= length; ++i) {
    plan.buffers.push_back({.name = "x" + std::to_string(i), .bytes = bytes});
  }
  for (uint32_t i = 0; i < length; ++i) {
    Dispatch d;
    d.bindings = {{i, Access::kRead}, {i + 1, Access::kWrite}};
    plan.dispatches.push_back(std::move(d));
  }
  return plan;
}

// The same memory, at least in part.
inline bool share_memory(const Plan& plan, uint32_t a, uint32_t b) {
  if (a == b) return true;
  const PlanBuffer& x = plan.buffers[a];
  const PlanBuffer& y = plan.buffers[b];
  const bool arena = x.source == BufferSource::kArena && y.source == BufferSource::kArena;
  return arena && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}

inline bool is_bound(const Dispatch& dispatch, uint32_t buffer) {
  return std::any_of(dispatch.bindings.begin(), dispatch.bindings.end(),
                     [&](const BoundBuffer& b) { return b.buffer == buffer; });
}

}  // namespace vkformer::testing
