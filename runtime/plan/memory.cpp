#include <algorithm>
#include <numeric>

#include "plan/plan.h"

namespace vkformer {
namespace {

struct Lifetime {
  uint32_t first = ~0u;
  uint32_t last = 0;
};

std::vector<Lifetime> lifetimes(const Plan& plan) {
  std::vector<Lifetime> result(plan.buffers.size());
  for (uint32_t i = 0; i < plan.dispatches.size(); ++i) {
    for (const BoundBuffer& b : plan.dispatches[i].bindings) {
      result[b.buffer].first = std::min(result[b.buffer].first, i);
      result[b.buffer].last = std::max(result[b.buffer].last, i);
    }
  }
  return result;
}

struct Placed {
  uint64_t begin;
  uint64_t end;
};

// The lowest offset where `bytes` fit between the placed ranges.
uint64_t lowest_gap(std::vector<Placed> taken, uint64_t bytes) {
  std::sort(taken.begin(), taken.end(),
            [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  uint64_t offset = 0;
  for (const Placed& p : taken) {
    if (offset + bytes <= p.begin) break;
    offset = std::max(offset, p.end);
  }
  return offset;
}

}  // namespace

void plan_memory(Plan& plan, uint64_t alignment) {
  const std::vector<Lifetime> life = lifetimes(plan);
  std::vector<uint32_t> order(plan.buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return plan.buffers[a].bytes > plan.buffers[b].bytes;
  });
  plan.arena_bytes = 0;
  plan.arena_naive_bytes = 0;
  std::vector<uint32_t> placed;
  for (uint32_t index : order) {
    PlanBuffer& buffer = plan.buffers[index];
    if (buffer.source != BufferSource::kArena || life[index].first == ~0u) continue;
    const uint64_t bytes = (buffer.bytes + alignment - 1) / alignment * alignment;
    std::vector<Placed> taken;
    for (uint32_t other : placed) {
      if (life[other].first > life[index].last || life[other].last < life[index].first) continue;
      const uint64_t end = plan.buffers[other].offset + plan.buffers[other].bytes;
      taken.push_back({plan.buffers[other].offset, (end + alignment - 1) / alignment * alignment});
    }
    buffer.offset = lowest_gap(std::move(taken), bytes);
    placed.push_back(index);
    plan.arena_bytes = std::max(plan.arena_bytes, buffer.offset + bytes);
    plan.arena_naive_bytes += bytes;
  }
}

}  // namespace vkformer
