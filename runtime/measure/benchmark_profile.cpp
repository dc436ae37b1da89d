#include "measure/benchmark_profile.h"

#include <algorithm>

#include "base/check.h"
#include "vkformer/tensor.h"

namespace vkformer {
namespace {

// "(2,5,64) (64,64) -> (2,5,64)"
std::string shapes_of(const Plan& plan, const Dispatch& dispatch) {
  std::string read, written;
  for (const BoundBuffer& bound : dispatch.bindings) {
    const PlanBuffer& buffer = plan.buffers[bound.buffer];
    const std::string text =
        buffer.shape.empty() ? std::to_string(buffer.bytes) + " B" : shape_text(buffer.shape);
    if (bound.access != Access::kWrite) read += (read.empty() ? "" : " ") + text;
    if (bound.access != Access::kRead) written += " " + text;
  }
  return read + (read.empty() ? "->" : " ->") + written;
}

// Shares of a submit where nothing but its whole time is known. A byte counts as eight operations,
// about what devices do while they move one.
double weight_of(const ProfiledDispatch& dispatch) {
  return 1.0 + dispatch.flops + 8.0 * dispatch.bytes;
}

Result<std::shared_ptr<ProfileRecorder>> recorder_of(const std::shared_ptr<VulkanDevice>& device) {
  if (!device) return invalid_argument("[profile] The device is empty; make a Device first.");
  auto recorder = std::dynamic_pointer_cast<ProfileRecorder>(device->profiler());
  if (recorder) return recorder;
  return invalid_argument("[profile] No profile is being taken; call start_profile first.");
}

}  // namespace

uint32_t ProfileRecorder::recorded(const Plan& plan) {
  std::vector<ProfiledDispatch> dispatches;
  for (const Dispatch& d : plan.dispatches) {
    ProfiledDispatch one;
    one.op = d.op;
    one.label = d.label;
    one.kernel = kernel_info(d.kernel).name;
    one.shapes = shapes_of(plan, d);
    one.flops = d.flops;
    one.bytes = d.bytes;
    dispatches.push_back(std::move(one));
  }
  plans_.push_back(std::move(dispatches));
  return static_cast<uint32_t>(plans_.size());
}

void ProfileRecorder::finished(const Ran& ran, std::span<const Recording::Span> spans,
                               double wall_ns) {
  if (ran.number == 0 || ran.number > plans_.size()) return;
  submits_.push_back({ran, {spans.begin(), spans.end()}, wall_ns});
}

void ProfileRecorder::append(const Submit& submit, double clock_start, Profile& profile) const {
  const auto plan =
      std::span(plans_[submit.ran.number - 1]).subspan(submit.ran.first, submit.ran.count);
  double weights = 0;
  for (const ProfiledDispatch& dispatch : plan) weights += weight_of(dispatch);
  double elapsed = 0;  // microseconds
  for (const double us : profile.submit_us) elapsed += us;
  for (size_t i = 0; i < plan.size(); ++i) {
    ProfiledDispatch one = plan[i];
    one.submit = static_cast<int>(profile.submit_us.size());
    if (i < submit.spans.size()) {
      one.start_us = std::max(0.0, submit.spans[i].start_ns - clock_start) * 1e-3;
      one.microseconds = submit.spans[i].ns * 1e-3;
    } else {
      one.start_us = elapsed;
      one.microseconds = submit.wall_ns * 1e-3 * weight_of(one) / weights;
      elapsed += one.microseconds;
    }
    profile.dispatches.push_back(std::move(one));
  }
  profile.submit_us.push_back(submit.wall_ns * 1e-3);
}

Profile ProfileRecorder::take() {
  Profile profile;
  double clock_start = 0;
  for (const Submit& submit : submits_) {
    if (submit.spans.empty()) continue;
    if (!profile.device_clock) clock_start = submit.spans.front().start_ns;
    profile.device_clock = true;
  }
  for (const Submit& submit : submits_) append(submit, clock_start, profile);
  submits_.clear();
  return profile;
}

Status start_device_profile(const std::shared_ptr<VulkanDevice>& device) {
  if (!device) return invalid_argument("[profile] The device is empty; make a Device first.");
  if (device->profiler() != nullptr) {
    return invalid_argument(
        "[profile] A profile of this device is being taken already; stop it first.");
  }
  device->set_profiler(std::make_shared<ProfileRecorder>());
  return {};
}

Result<Profile> take_device_profile(const std::shared_ptr<VulkanDevice>& device) {
  VKF_ASSIGN(const std::shared_ptr<ProfileRecorder> recorder, recorder_of(device));
  return recorder->take();
}

Status stop_device_profile(const std::shared_ptr<VulkanDevice>& device) {
  VKF_CHECK(recorder_of(device));
  device->set_profiler(nullptr);
  return {};
}

}  // namespace vkformer
