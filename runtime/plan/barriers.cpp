#include <algorithm>

#include "plan/plan.h"

namespace vkformer {
namespace {

// Two plan buffers that share memory: the same one, or arena ranges that overlap. Constants are
// never written, so they never meet a hazard.
bool overlap(const Plan& plan, uint32_t a, uint32_t b) {
  if (a == b) return true;
  const PlanBuffer& x = plan.buffers[a];
  const PlanBuffer& y = plan.buffers[b];
  if (x.source != BufferSource::kArena || y.source != BufferSource::kArena) return false;
  return x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}

// Accesses since the last barrier; a barrier orders everything before it against everything after.
struct Pending {
  std::vector<uint32_t> written;
  std::vector<uint32_t> read;
};

void note_hazard(const Plan& plan, const BoundBuffer& b, const Pending& pending, Barrier& barrier,
                 bool& memory_hazard) {
  bool hazard = false;
  for (uint32_t w : pending.written) {
    if (overlap(plan, b.buffer, w)) hazard = memory_hazard = true;
  }
  if (b.access != Access::kRead) {
    for (uint32_t r : pending.read) hazard = hazard || overlap(plan, b.buffer, r);
  }
  // A dispatch may bind a buffer twice; name it once.
  const auto known = std::find(barrier.buffers.begin(), barrier.buffers.end(), b.buffer);
  if (hazard && known == barrier.buffers.end()) barrier.buffers.push_back(b.buffer);
}

}  // namespace

void plan_barriers(Plan& plan) {
  plan.barriers.clear();
  Pending pending;
  for (uint32_t i = 0; i < plan.dispatches.size(); ++i) {
    const Dispatch& dispatch = plan.dispatches[i];
    Barrier barrier{.before_dispatch = i};
    bool memory_hazard = false;
    for (const BoundBuffer& b : dispatch.bindings) {
      note_hazard(plan, b, pending, barrier, memory_hazard);
    }
    if (!barrier.buffers.empty()) {
      barrier.write_after_read_only = !memory_hazard;
      // An execution-only barrier does not make earlier writes visible: keep them pending.
      if (memory_hazard) pending.written.clear();
      pending.read.clear();
      plan.barriers.push_back(std::move(barrier));
    }
    for (const BoundBuffer& b : dispatch.bindings) {
      if (b.access != Access::kRead) pending.written.push_back(b.buffer);
      if (b.access != Access::kWrite) pending.read.push_back(b.buffer);
    }
  }
}

}  // namespace vkformer
