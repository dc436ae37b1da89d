#include "session/pipelines_ahead.h"

#include <chrono>
#include <iterator>
#include <system_error>
#include <vector>

#include "base/check.h"
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
  count_.stopped = true;
  if (thread_.joinable()) thread_.join();
}

Status PipelinesAhead::finish(const std::function<bool(size_t made, size_t total)>& going_on) {
  if (!sizes_) return {};
  if (!thread_.joinable()) make();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(50), [this] { return has_ended_; })) {
    if (going_on && !going_on(count_.made, count_.total)) count_.stopped = true;
  }
  if (going_on && !going_on(count_.made, count_.total)) count_.stopped = true;
  if (!count_.stopped) return {};
  return cancelled(message({"[load] was cancelled after ", count_.made.load(), " of ",
                            count_.total.load(), " pipelines of [first_use]"}));
}

void PipelinesAhead::make() {
  try {
    const Status made = make_all();
    if (!made) {
      model_.device()->impl().context.say(
          LogLevel::kInfo,
          message({"[first_use] No pipelines are made ahead: ", made.error().message}));
    }
  } catch (const std::exception&) {
    // Out of host memory; a thread may not end with that.
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  has_ended_ = true;
  ended_.notify_all();
}

Status PipelinesAhead::make_all() {
  VKF_ASSIGN(const std::vector<SizedGraph> graphs,
             sized_graphs(model_.family(), model_.weights(), *sizes_));
  VulkanDevice& device = *model_.device();
  std::vector<Dispatch> dispatches;
  for (const SizedGraph& sized : graphs) {
    VKF_ASSIGN(Plan plan, make_plan(sized.graph, device.caps(), model_.precision()));
    std::move(plan.dispatches.begin(), plan.dispatches.end(), std::back_inserter(dispatches));
  }
  device.impl().pipelines->make_ahead(dispatches, &count_);
  return {};
}

}  // namespace vkformer
