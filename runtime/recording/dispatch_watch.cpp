#include "recording/dispatch_watch.h"

#include <algorithm>

#include "base/check.h"
#include "vulkan/dispatch_profiler.h"

namespace vkformer {
namespace {

class Watch : public DispatchProfiler {
 public:
  Watch(VulkanDevice& device, DispatchWatcher watcher)
      : device_(device), watcher_(std::move(watcher)) {}

  uint32_t recorded(const Plan&) override { return 0; }
  void finished(const Ran&, std::span<const Recording::Span>, double) override {}
  bool watches() const override { return true; }

  Status executed(const Recording& recording, uint32_t index) override {
    const Plan& plan = recording.plan();
    const Dispatch& dispatch = plan.dispatches[index];
    for (const BoundBuffer& bound : dispatch.bindings) {
      if (bound.access == Access::kRead) continue;
      const PlanBuffer& buffer = plan.buffers[bound.buffer];
      const BufferSpan span = recording.span_of(bound.buffer);
      if (span.buffer == nullptr) continue;
      bytes_.resize(std::min(buffer.bytes, span.bytes) / 4 * 4);
      VKF_CHECK(device_.download(*span.buffer, span.offset, bytes_));
      VKF_CHECK(watcher_({.op = dispatch.op,
                          .label = dispatch.label,
                          .kernel = kernel_info(dispatch.kernel).name,
                          .name = buffer.name,
                          .shape = buffer.shape,
                          .dtype = buffer.dtype,
                          .bytes = bytes_,
                          .finished = !written_again(plan, index, bound.buffer)}));
    }
    return {};
  }

 private:
  // By a later dispatch of the same node.
  static bool written_again(const Plan& plan, uint32_t index, uint32_t buffer) {
    const Dispatch& mine = plan.dispatches[index];
    for (size_t i = index + 1; i < plan.dispatches.size(); ++i) {
      const Dispatch& later = plan.dispatches[i];
      if (later.label != mine.label || later.op != mine.op) return false;
      for (const BoundBuffer& bound : later.bindings) {
        if (bound.buffer == buffer && bound.access != Access::kRead) return true;
      }
    }
    return false;
  }

  VulkanDevice& device_;  // owns this object
  DispatchWatcher watcher_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Status watch_dispatches(const std::shared_ptr<VulkanDevice>& device, DispatchWatcher watcher) {
  if (!device) return invalid_argument("[watch] The device is empty; make a Device first.");
  if (device->profiler() != nullptr && !device->profiler()->watches()) {
    return invalid_argument("[watch] A profile of this device is being taken; stop it first.");
  }
  std::shared_ptr<DispatchProfiler> watch;
  if (watcher) watch = std::make_shared<Watch>(*device, std::move(watcher));
  device->set_profiler(std::move(watch));
  return {};
}

}  // namespace vkformer
