#include <algorithm>
#include <numeric>

#include "plan/plan.h"

namespace vkformer {
namespace {

// An arena buffer, its size rounded up, and the dispatches from its first to its last use.
struct Tenant {
  uint32_t buffer = 0;
  uint64_t bytes = 0;
  uint32_t first = ~0u;
  uint32_t last = 0;
  uint64_t offset = 0;

  bool meets(const Tenant& other) const { return first <= other.last && other.first <= last; }
  uint64_t end() const { return offset + bytes; }
};

std::vector<Tenant> tenants_of(const Plan& plan, uint64_t alignment) {
  std::vector<Tenant> all(plan.buffers.size());
  for (uint32_t i = 0; i < plan.dispatches.size(); ++i) {
    for (const BoundBuffer& b : plan.dispatches[i].bindings) {
      all[b.buffer].first = std::min(all[b.buffer].first, i);
      all[b.buffer].last = std::max(all[b.buffer].last, i);
    }
  }
  std::vector<Tenant> tenants;
  for (uint32_t i = 0; i < all.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (buffer.source != BufferSource::kArena || all[i].first == ~0u) continue;
    all[i].buffer = i;
    all[i].bytes = (buffer.bytes + alignment - 1) / alignment * alignment;
    tenants.push_back(all[i]);
  }
  return tenants;
}

// Bytes alive at each dispatch.
std::vector<uint64_t> breadths(const std::vector<Tenant>& tenants, size_t dispatches) {
  std::vector<uint64_t> alive(dispatches, 0);
  for (const Tenant& t : tenants) {
    for (uint32_t i = t.first; i <= t.last; ++i) alive[i] += t.bytes;
  }
  return alive;
}

// Puts every tenant, in that order, at the lowest offset where it meets none that was put before.
// Returns the bytes that all of them take.
uint64_t place(std::vector<Tenant>& tenants, const std::vector<uint32_t>& order) {
  uint64_t total = 0;
  std::vector<uint32_t> placed;  // by offset
  for (uint32_t index : order) {
    Tenant& t = tenants[index];
    t.offset = 0;
    for (uint32_t other : placed) {
      const Tenant& o = tenants[other];
      if (!t.meets(o)) continue;
      if (t.end() <= o.offset) break;
      t.offset = std::max(t.offset, o.end());
    }
    const auto after = std::upper_bound(
        placed.begin(), placed.end(), t.offset,
        [&](uint64_t offset, uint32_t other) { return offset < tenants[other].offset; });
    placed.insert(after, index);
    total = std::max(total, t.end());
  }
  return total;
}

// Orders to try: the largest first; those of the dispatch with most bytes alive first; by time.
std::vector<std::vector<uint32_t>> orders(const std::vector<Tenant>& tenants,
                                          const std::vector<uint64_t>& alive) {
  std::vector<uint32_t> by_size(tenants.size());
  std::iota(by_size.begin(), by_size.end(), 0u);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](uint32_t a, uint32_t b) { return tenants[a].bytes > tenants[b].bytes; });
  // How wide the plan is at the widest of a tenant's dispatches.
  std::vector<uint64_t> widest(tenants.size(), 0);
  for (size_t i = 0; i < tenants.size(); ++i) {
    const auto first = alive.begin() + tenants[i].first;
    widest[i] = *std::max_element(first, alive.begin() + tenants[i].last + 1);
  }
  std::vector<uint32_t> by_breadth = by_size, by_time = by_size;
  std::stable_sort(by_breadth.begin(), by_breadth.end(),
                   [&](uint32_t a, uint32_t b) { return widest[a] > widest[b]; });
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](uint32_t a, uint32_t b) { return tenants[a].first < tenants[b].first; });
  return {by_size, by_breadth, by_time};
}

// The best placing found so far.
struct Best {
  uint64_t bytes = ~uint64_t{0};
  std::vector<Tenant> tenants;

  void take(const std::vector<Tenant>& placed, uint64_t total) {
    if (total >= bytes) return;
    bytes = total;
    tenants = placed;
  }
};

// Tries the order again with those first that reached the top, a few times.
void improve(std::vector<Tenant>& tenants, std::vector<uint32_t> order, uint64_t enough,
             Best& best) {
  constexpr int kRounds = 24;
  uint64_t total = place(tenants, order);
  best.take(tenants, total);
  for (int round = 0; round < kRounds && best.bytes > enough; ++round) {
    std::stable_partition(order.begin(), order.end(),
                          [&](uint32_t index) { return tenants[index].end() == total; });
    total = place(tenants, order);
    best.take(tenants, total);
  }
}

}  // namespace

void plan_memory(Plan& plan, uint64_t alignment) {
  std::vector<Tenant> tenants = tenants_of(plan, alignment);
  const std::vector<uint64_t> alive = breadths(tenants, plan.dispatches.size());
  plan.arena_bound_bytes = alive.empty() ? 0 : *std::max_element(alive.begin(), alive.end());
  plan.arena_naive_bytes = 0;
  for (const Tenant& t : tenants) plan.arena_naive_bytes += t.bytes;
  Best best;
  for (std::vector<uint32_t>& order : orders(tenants, alive)) {
    // What is nearly the bound is not worth the time of looking on.
    const uint64_t enough = plan.arena_bound_bytes + plan.arena_bound_bytes / 64;
    improve(tenants, std::move(order), enough, best);
    if (best.bytes <= enough) break;
  }
  plan.arena_bytes = best.bytes;
  for (const Tenant& t : best.tenants) plan.buffers[t.buffer].offset = t.offset;
}

}  // namespace vkformer
