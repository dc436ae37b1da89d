#include "session/pipelines_ahead.h"

#include <chrono>
#include <vector>

#include "base/check.h"
#include "base/guarded.h"
#include "base/message.h"
#include "ops/op.h"
#include "session/sized_graphs.h"
#include "vulkan/device_impl.h"

namespace vkformer {

PipelinesAhead::PipelinesAhead(const LoadedModel& model, const std::optional<SessionSizes>& sizes)
    : model_(model), sizes_(sizes) {
  const Context& context = model.device()->impl().context;
  if (!sizes || !context.jobs) return;
  task_.emplace(context.jobs, [this] { make(PipelineStore::Caller::kBesideFrames); });
}

PipelinesAhead::~PipelinesAhead() {
  count_.stopped = true;
}

Status PipelinesAhead::finish(const std::function<bool(size_t made, size_t total)>& going_on) {
  if (!sizes_) return {};
  if (!task_) make(PipelineStore::Caller::kWaits);
  while (task_ && !task_->wait_for(std::chrono::milliseconds(50))) {
    if (going_on && !going_on(count_.made, count_.total)) count_.stopped = true;
  }
  if (going_on && !going_on(count_.made, count_.total)) count_.stopped = true;
  if (!count_.stopped) return {};
  return cancelled(message({"[load] was cancelled after ", count_.made.load(), " of ",
                            count_.total.load(), " pipelines of [first_use]"}));
}

void PipelinesAhead::make(PipelineStore::Caller caller) {
  // What a thread runs out of is left for the session to say, as all else that fails.
  const Status made = guarded([&] { return make_all(caller); });
  if (made) return;
  model_.device()->impl().context.say(
      LogLevel::kInfo,
      message({"[first_use] No pipelines are made ahead: ", made.error().message}));
}

Status PipelinesAhead::make_all(PipelineStore::Caller caller) {
  VKF_ASSIGN(const std::vector<SizedGraph> graphs,
             sized_graphs(model_.family(), model_.weights(), *sizes_));
  VulkanDevice& device = *model_.device();
  std::vector<Plan> plans;
  for (const SizedGraph& sized : graphs) {
    VKF_ASSIGN(Plan plan, make_plan(sized.graph, device.caps(), model_.precision()));
    plans.push_back(std::move(plan));
  }
  std::vector<const Plan*> list;
  for (const Plan& plan : plans) list.push_back(&plan);
  device.impl().pipelines->make_ahead(list, caller, &count_);
  return {};
}

}  // namespace vkformer
