#include "vulkan/appended_plan.h"

#include "vulkan/recorder.h"

namespace vkformer {

struct AppendedPlan::Impl {
  Plan plan;
  RecordingInputs inputs;
  Recording::Impl recording;
  std::unique_ptr<Recorder> recorder;
};

AppendedPlan::AppendedPlan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AppendedPlan::AppendedPlan(AppendedPlan&&) noexcept = default;
AppendedPlan& AppendedPlan::operator=(AppendedPlan&&) noexcept = default;
AppendedPlan::~AppendedPlan() = default;

Result<AppendedPlan> AppendedPlan::create(std::shared_ptr<VulkanDevice> device, Plan plan,
                                          const RecordingInputs& inputs) {
  VKF_CHECK(device->impl().context.check_alive());
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  impl->inputs = inputs;
  impl->recording.device = std::move(device);
  impl->recorder = std::make_unique<Recorder>(impl->recording, impl->plan, impl->inputs);
  VKF_CHECK(impl->recorder->prepare());
  return AppendedPlan(std::move(impl));
}

Status AppendedPlan::append(VkCommandBuffer_T* commands) {
  if (commands == VK_NULL_HANDLE) {
    return invalid_argument("[record] the command buffer is null; begin one first");
  }
  VKF_CHECK(impl_->recording.device->impl().context.check_alive());
  return impl_->recorder->append(commands);
}

}  // namespace vkformer
