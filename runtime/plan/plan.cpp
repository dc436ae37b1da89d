#include "plan/plan.h"

#include <cstdio>

namespace vkformer {
namespace {

std::string human_bytes(uint64_t bytes) {
  char text[32];
  if (bytes < 10000) {
    std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(bytes));
  } else if (bytes < (10ull << 20)) {
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / 1024);
  } else {
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  }
  return text;
}

std::string dispatch_text(const Dispatch& d) {
  std::string text(kernel_info(d.kernel).name);
  text += " [" + std::to_string(d.groups[0]) + " x " + std::to_string(d.groups[1]) + " x " +
          std::to_string(d.groups[2]) + "]";
  if (d.live_axis >= 0) {
    text += " live axis " + std::to_string(d.live_axis) + " / " + std::to_string(d.slots_per_group);
  }
  for (const BoundBuffer& b : d.bindings) {
    const char* mode = b.access == Access::kRead ? "r" : b.access == Access::kWrite ? "w" : "rw";
    text += std::string(" ") + mode + "%" + std::to_string(b.buffer);
  }
  char cost[64];
  std::snprintf(cost, sizeof cost, "  %.3g flop, %.3g B", d.flops, d.bytes);
  text += cost;
  return text + (d.label.empty() ? "" : "  # " + d.label);
}

}  // namespace

double Plan::flops() const {
  double sum = 0;
  for (const Dispatch& d : dispatches) sum += d.flops;
  return sum;
}

double Plan::bytes() const {
  double sum = 0;
  for (const Dispatch& d : dispatches) sum += d.bytes;
  return sum;
}

std::string Plan::dump() const {
  std::string text;
  for (const Fusion& f : fusions) {
    text += std::string("fused ") + f.pattern;
    if (f.count > 1) text += ", " + std::to_string(f.count) + " times";
    text += (f.label.empty() ? "" : "  # " + f.label) + "\n";
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const PlanBuffer& b = buffers[i];
    if (b.bytes == 0) continue;
    text += "%" + std::to_string(i) + " ";
    if (b.source == BufferSource::kArena) text += "arena @" + std::to_string(b.offset);
    if (b.source == BufferSource::kExternal) text += "external";
    if (b.source == BufferSource::kConstant) text += "constant " + std::to_string(b.constant);
    text += " " + human_bytes(b.bytes) + " " + b.name + "\n";
  }
  size_t next_barrier = 0;
  for (size_t i = 0; i < dispatches.size(); ++i) {
    while (next_barrier < barriers.size() && barriers[next_barrier].before_dispatch == i) {
      const Barrier& barrier = barriers[next_barrier++];
      text += barrier.write_after_read_only ? "  -- barrier (execution) for" : "  -- barrier for";
      for (uint32_t b : barrier.buffers) text += " %" + std::to_string(b);
      text += "\n";
    }
    text += std::to_string(i) + ": " + dispatch_text(dispatches[i]) + "\n";
  }
  char cost[128];
  std::snprintf(cost, sizeof cost, "%zu dispatches, %zu barriers, %.4g flop, %.4g B moved\n",
                dispatches.size(), barriers.size(), flops(), bytes());
  return text + cost + "arena " + human_bytes(arena_bytes) + ", at least " +
         human_bytes(arena_bound_bytes) + ", without reuse " + human_bytes(arena_naive_bytes) +
         "\n";
}

}  // namespace vkformer
