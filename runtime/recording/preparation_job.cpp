#include "recording/preparation_job.h"

#include <chrono>
#include <cmath>

#include "base/guarded.h"
#include "vulkan/device_impl.h"

namespace vkformer {

PreparationJob::PreparationJob(VulkanDevice& device, Preparation& pass)
    : device_(device), pass_(pass) {
  const Context& context = device.impl().context;
  if (!context.jobs) return;
  task_ = std::make_unique<BackgroundTask>(
      context.jobs, [this] { result_ = guarded([this] { return prepare(); }); });
  if (task_->refused()) task_.reset();  // portions
}

PreparationJob::~PreparationJob() {
  count_.stopped = true;
}

Status PreparationJob::prepare() {
  VKF_CHECK(pass_.plan());
  device_.impl().pipelines->make_ahead(pass_.plans(), PipelineStore::Caller::kBesideFrames,
                                       &count_);
  if (count_.stopped) return cancelled("[session] what was being prepared was given up");
  return pass_.record();
}

Result<bool> PreparationJob::portion() {
  if (!portions_.planned) {
    VKF_CHECK(pass_.plan());
    portions_.planned = true;
    for (const Plan* plan : pass_.plans()) {
      for (const Dispatch& dispatch : plan->dispatches) portions_.pipelines.push_back(&dispatch);
    }
    count_.total = portions_.pipelines.size();
    return false;
  }
  if (portions_.next < portions_.pipelines.size()) {
    const Dispatch& d = *portions_.pipelines[portions_.next++];
    VKF_CHECK(device_.impl().pipelines->get(d.kernel, d.spec, d.reproducible));
    ++count_.made;
    return false;
  }
  VKF_CHECK(pass_.record());
  return true;
}

Result<bool> PreparationJob::advance(double microseconds) {
  if (task_) {
    if (std::isinf(microseconds)) task_->wait();
    if (!task_->done()) return false;
    VKF_CHECK(result_);
    return true;
  }
  if (!(microseconds > 0)) return false;
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (true) {
    VKF_ASSIGN(const bool over, portion());
    if (over) return true;
    const std::chrono::duration<double, std::micro> taken = Clock::now() - begin;
    if (taken.count() >= microseconds) return false;
  }
}

double PreparationJob::fraction() const {
  const size_t total = count_.total;
  return total == 0 ? 0 : static_cast<double>(count_.made) / static_cast<double>(total);
}

}  // namespace vkformer
