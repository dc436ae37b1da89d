#include "vkformer/device_group.h"

#include <cstdio>

#include "base/guarded.h"
#include "base/handle_access.h"
#include "session/group_making.h"

namespace vkformer {
namespace {

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string stage_text(const GroupPlan& plan, size_t index) {
  const GroupStage& stage = plan.stages[index];
  std::string text;
  if (plan.split == GroupSplit::kTensors) {
    text = "has part " + std::to_string(index + 1) + " of " + std::to_string(plan.stages.size()) +
           " of every layer" + (index == 0 ? ", and what is not divided: " : ": ") +
           std::to_string(stage.weight_bytes) + " bytes of weights, " +
           decimal(100 * stage.work, 0) + " % of the work";
  } else if (stage.first.empty()) {
    text = "has no part: the link to it costs more than it saves";
  } else {
    const std::string places =
        stage.first == stage.last ? stage.first : stage.first + " to " + stage.last;
    text = "has " + places + ": " + std::to_string(stage.weight_bytes) + " bytes of weights, " +
           decimal(100 * stage.work, 0) + " % of the work";
  }
  if (stage.link_rate > 0) {
    text += "; a message to the next takes " + decimal(1e3 * stage.link_latency, 3) +
            " ms and goes at " + decimal(stage.link_rate / 1e6, 0) + " MB/s";
  }
  return text;
}

}  // namespace

std::string group_plan_text(const GroupPlan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const GroupStage& stage = plan.stages[i];
    text += std::to_string(i) + ", " + stage.device + ", " + stage_text(plan, i) + ".\n";
  }
  if (plan.step_seconds > 0) {
    text += "estimated: " + decimal(1e3 * plan.step_seconds, 2) + " ms a token, " +
            decimal(plan.tokens_per_second, 1) + " tokens a second in a batch.\n";
  }
  const std::string other = plan.split == GroupSplit::kTensors ? "layers" : "tensors";
  if (plan.other_step_seconds > 0) {
    text += "estimated for a split by " + other + ": " + decimal(1e3 * plan.other_step_seconds, 2) +
            " ms a token.\n";
  } else if (!plan.other_refused.empty()) {
    text += "a split by " + other + " cannot be: " + plan.other_refused + "\n";
  }
  return text;
}

Result<DeviceGroup> DeviceGroup::create(const std::vector<Device>& devices,
                                        const DeviceGroupOptions& options) {
  return guarded([&]() -> Result<DeviceGroup> {
    std::vector<std::shared_ptr<VulkanDevice>> impls;
    for (const Device& device : devices) impls.push_back(HandleAccess::impl(device));
    VKF_ASSIGN(std::shared_ptr<const DeviceGroupState> group, make_group(impls, options));
    return HandleAccess::make<DeviceGroup>(std::move(group));
  });
}

Result<DeviceGroup> DeviceGroup::create_linked(const Device& own, std::shared_ptr<DeviceLink> link,
                                               const DeviceGroupOptions& options) {
  return guarded([&]() -> Result<DeviceGroup> {
    if (!link) return invalid_argument("[group] the link between the processes is null; give one");
    VKF_ASSIGN(std::shared_ptr<const DeviceGroupState> group,
               make_linked_group(HandleAccess::impl(own), std::move(link), options));
    return HandleAccess::make<DeviceGroup>(std::move(group));
  });
}

size_t DeviceGroup::size() const {
  return impl_->members.size();
}

}  // namespace vkformer
