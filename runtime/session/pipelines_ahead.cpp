#include "session/pipelines_ahead.h"

#include <system_error>

#include "base/message.h"
#include "ops/op.h"
#include "session/sized_graphs.h"
#include "vulkan/device_impl.h"

namespace vkformer {

PipelinesAhead::PipelinesAhead(const LoadedModel& model, const std::optional<SessionSizes>& sizes)
    : model_(model), sizes_(sizes) {
  if (!sizes || model.device()->impl().context.compile_threads == 0) return;
  try {
    thread_ = std::thread([this] { make(); });
  } catch (const std::system_error&) {
    // A process that may start no more threads makes them in finish().
  }
}

PipelinesAhead::~PipelinesAhead() {
  stopped_ = true;
  if (thread_.joinable()) thread_.join();
}

void PipelinesAhead::finish() {
  if (thread_.joinable()) {
    thread_.join();
  } else if (sizes_) {
    make();
  }
}

void PipelinesAhead::make() {
  try {
    const Status made = make_all();
    if (made) return;
    model_.device()->impl().context.say(
        LogLevel::kInfo,
        message({"[first_use] No pipelines are made ahead: ", made.error().message}));
  } catch (const std::exception&) {
    // Out of host memory; a thread may not end with that.
  }
}

Status PipelinesAhead::make_all() {
  VKF_ASSIGN(const std::vector<SizedGraph> graphs,
             sized_graphs(model_.family(), model_.weights(), *sizes_));
  VulkanDevice& device = *model_.device();
  for (const SizedGraph& sized : graphs) {
    VKF_ASSIGN(const Plan plan, make_plan(sized.graph, device.caps(), model_.precision()));
    device.impl().pipelines->make_ahead(plan.dispatches, &stopped_);
  }
  return {};
}

}  // namespace vkformer
