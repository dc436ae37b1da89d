#include "faults/world.h"

#include <thread>
#include <utility>

#include "base/check.h"
#include "base/handle_access.h"
#include "support/fault_entry_points.h"
#include "support/preparing.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

std::string text_of(const TensorMap& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    text += name + ":";
    text.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  return text;
}

std::string text_of(const Generation& generation) {
  std::string text;
  for (const auto& hypotheses : generation) {
    for (const Hypothesis& h : hypotheses) {
      for (const int64_t id : h.ids) text += std::to_string(id) + " ";
      text.append(reinterpret_cast<const char*>(&h.score), sizeof h.score);
    }
  }
  return text;
}

// Far more than any pass of a golden case takes.
constexpr int64_t kMostRounds = 50'000'000;

// A command buffer of the application's, whose own calls never fail.
class Frame {
 public:
  explicit Frame(const Context& context) : context_(context) {
    auto table = DeviceApi::load(driver_get_device_proc_addr, context.device, {});
    if (!table) return;
    api_ = *table;
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = context.queue_family;
    if (api_.CreateCommandPool(context.device, &pool, nullptr, &pool_) != VK_SUCCESS) return;
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = pool_;
    info.commandBufferCount = 1;
    if (api_.AllocateCommandBuffers(context.device, &info, &commands_) != VK_SUCCESS) return;
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    api_.BeginCommandBuffer(commands_, &begin);
  }
  ~Frame() {
    if (pool_) api_.DestroyCommandPool(context_.device, pool_, nullptr);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  VkCommandBuffer commands() const { return commands_; }
  void submit_and_wait() {
    api_.EndCommandBuffer(commands_);
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands_;
    api_.QueueSubmit(context_.queue, 1, &submit, VK_NULL_HANDLE);
    api_.QueueWaitIdle(context_.queue);
  }

 private:
  const Context& context_;
  DeviceApi api_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

}  // namespace

const char* World::name_of(int stage) {
  static constexpr const char* kNames[] = {
      "device", "load", "run", "generate", "slices", "sliced generation", "record"};
  return stage >= 0 && stage < kStages ? kNames[stage] : "";
}

void World::end() {
  session_.reset();
  model_.reset();
  device_.reset();
}

Status World::make_session() {
  if (session_) return {};
  VKF_ASSIGN(Session made, Session::create(*model_));
  session_.emplace(std::move(made));
  return {};
}

Status World::carry_out(int stage, Outputs& outputs) {
  passed_over.reset();
  if (stage == kDevice) {
    VKF_ASSIGN(auto made, VulkanDevice::create_tweaked(settings_.device, settings_.tweaks));
    device_ = HandleAccess::make<Device>(std::move(made));
    return {};
  }
  if (stage == kLoad) {
    VKF_ASSIGN(Model loaded, Model::load(*device_, settings_.model));
    model_.emplace(std::move(loaded));
    return {};
  }
  VKF_CHECK(make_session());
  if (stage == kRun) {
    VKF_ASSIGN(const TensorMap given, session_->run(settings_.inputs));
    outputs.run = text_of(given);
    return {};
  }
  if (stage == kSlices) return slices(outputs);
  if (stage == kRecord) return record(outputs);
  if (model_->info().head != HeadKind::kLanguage) return {};
  if (stage == kSlicedGeneration) return sliced_generation(outputs);
  GenerateOptions options = session_->generation_defaults();
  options.beams = 2;
  options.max_new_tokens = 6;
  VKF_ASSIGN(const Generation given, session_->generate_masked(settings_.prompts, options));
  outputs.generation = text_of(given);
  return {};
}

// A slice that was refused is still to come, so one failure is passed over.
Status World::advance_to_end(double microseconds) {
  for (int64_t rounds = 0;; ++rounds) {
    if (rounds == kMostRounds) return internal_error("[advance] never says that it is done");
    const auto advance = session_->advance(microseconds);
    if (!advance) {
      if (advance.error().code == ErrorCode::kDeviceLost) return advance.error();
      // Between the jobs of a generation an error ends what was started.
      if (passed_over) return *std::exchange(passed_over, std::nullopt);
      passed_over = advance.error();
      continue;
    }
    if (advance->progress == Advance::Progress::kDone) return {};
    if (testing::still_prepares(*advance)) --rounds;
    std::this_thread::yield();
  }
}

Status World::slices(Outputs& outputs) {
  VKF_CHECK(session_->start(settings_.inputs));
  const Status advanced = advance_to_end(200);
  if (!advanced) {
    (void)session_->cancel();
    return advanced;
  }
  VKF_ASSIGN(const TensorMap given, session_->finish());
  outputs.sliced = text_of(given);
  return {};
}

Status World::sliced_generation(Outputs& outputs) {
  GenerateOptions options = session_->generation_defaults();
  options.max_new_tokens = 4;
  VKF_CHECK(session_->start_generation(settings_.prompts, options));
  const Status advanced = advance_to_end(2000);
  if (!advanced) {
    (void)session_->cancel();
    return advanced;
  }
  VKF_ASSIGN(const Generation given, session_->finish_generation());
  outputs.sliced_generation = text_of(given);
  return {};
}

Status World::record_frames() {
  const Context& context = HandleAccess::impl(*device_)->impl().context;
  for (bool more = true; more;) {
    Frame frame(context);
    VKF_ASSIGN(const Advance advance, session_->record(frame.commands(), 500));
    frame.submit_and_wait();
    more = advance.more_to_submit();
  }
  return {};
}

Status World::record(Outputs& outputs) {
  VKF_CHECK(session_->start(settings_.inputs));
  const Status recorded = record_frames();
  if (!recorded) {
    (void)session_->cancel();
    return recorded;
  }
  VKF_ASSIGN(const TensorMap given, session_->finish());
  outputs.recorded = text_of(given);
  return {};
}

}  // namespace vkformer::testing
