#include "vkformer/model.h"

#include <atomic>
#include <optional>

#include "base/background_task.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "load/loaded_model.h"
#include "load/upload_pace.h"
#include "model/family_traits.h"
#include "session/memory_needs.h"
#include "session/model_loading.h"
#include "vulkan/device_impl.h"

namespace vkformer {

Result<ModelInfo> inspect_model(const std::string& directory) {
  return guarded([&] { return read_model_info(directory); });
}

Result<MemoryNeeds> memory_needs(const Device& device, const ModelSource& source,
                                 const ModelOptions& options, const SessionSizes& sizes) {
  return guarded([&] {
    return memory_needs_of(*HandleAccess::impl(device), *HandleAccess::impl(source), options,
                           sizes);
  });
}

std::vector<std::string> model_families() {
  return family_names();
}

std::vector<ModelFamilyFacts> model_family_facts() {
  std::vector<ModelFamilyFacts> facts;
  for (const auto& [family, traits] : listed_families()) {
    ModelFamilyFacts fact{.family = family,
                          .kind = traits.kind,
                          .source = traits.source,
                          .heads = {traits.heads.begin(), traits.heads.end()},
                          .generates = traits.generates(),
                          .attention_maps = traits.maps,
                          .inputs = traits.inputs};
    facts.push_back(std::move(fact));
  }
  return facts;
}

Result<Model> Model::load(const Device& device, const std::string& directory,
                          const ModelOptions& options) {
  return guarded([&] { return load_from(device, ModelSource::directory(directory), options); });
}

Result<Model> Model::load_from(const Device& device, const ModelSource& source,
                               const ModelOptions& options) {
  return guarded([&]() -> Result<Model> {
    VKF_ASSIGN(std::shared_ptr<const LoadedModel> model,
               load_model(HandleAccess::impl(device), *HandleAccess::impl(source), options));
    return HandleAccess::make<Model>(std::move(model));
  });
}

const ModelInfo& Model::info() const {
  return impl_->info();
}

uint64_t Model::weight_bytes() const {
  return impl_->weight_bytes();
}

uint64_t Model::host_weight_bytes() const {
  return impl_->host_weight_bytes();
}

GroupPlan Model::group_plan() const {
  return impl_->split() != nullptr ? impl_->split()->plan : GroupPlan();
}

Status Model::set_adapter_scales(const std::vector<float>& scales) {
  return guarded([&] { return impl_->set_adapter_scales(scales); });
}

class BackgroundLoadState {
 public:
  UploadPace pace;
  std::atomic<uint64_t> loaded{0};
  std::atomic<uint64_t> total{0};
  std::atomic<uint64_t> made_pipelines{0};
  std::atomic<uint64_t> total_pipelines{0};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> done{false};
  std::optional<Result<Model>> result;
  std::unique_ptr<BackgroundTask> task;  // null where nobody took it; after what it uses
};

BackgroundLoad::BackgroundLoad(std::shared_ptr<BackgroundLoadState> impl)
    : impl_(std::move(impl)) {}
BackgroundLoad::BackgroundLoad(BackgroundLoad&&) noexcept = default;

BackgroundLoad& BackgroundLoad::operator=(BackgroundLoad&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

BackgroundLoad::~BackgroundLoad() {
  if (impl_ == nullptr) return;
  cancel();
  impl_.reset();
}

BackgroundLoad BackgroundLoad::start(const Device& device, const ModelSource& source,
                                     const ModelOptions& options) {
  std::shared_ptr<BackgroundLoadState> state;
  try {
    state = std::make_shared<BackgroundLoadState>();
    ModelOptions watched = options;
    BackgroundLoadState* s = state.get();  // outlives the thread, which is joined before it goes
    watched.progress = [s, report = options.progress](const LoadProgress& progress) {
      s->loaded = progress.loaded_bytes;
      s->total = progress.total_bytes;
      s->made_pipelines = progress.made_pipelines;
      s->total_pipelines = progress.total_pipelines;
      return !s->cancelled && (!report || report(progress));
    };
    const auto vulkan = HandleAccess::impl(device);
    const BackgroundTask::Jobs jobs = vulkan ? vulkan->impl().context.run_job : nullptr;
    if (options.paced) {
      watched.before_copy = [s, before = options.before_copy](uint64_t bytes) {
        if (before) before(bytes);
        s->pace.take(bytes);
      };
    }
    state->task = std::make_unique<BackgroundTask>(jobs, [s, device, source, watched] {
      s->result = Model::load_from(device, source, watched);
      s->done = true;
    });
    if (const auto& refused = state->task->refused()) {
      state->result.emplace(*refused);
      state->task.reset();
      state->done = true;
    }
  } catch (...) {
    // wait() reports it. Where not even the state could be made, wait() knows why.
    if (state) {
      state->result.emplace(caught_error());
      state->done = true;
    }
  }
  return HandleAccess::make<BackgroundLoad>(std::move(state));
}

LoadProgress BackgroundLoad::progress() const {
  if (!impl_) return {};
  return {impl_->loaded, impl_->total, impl_->made_pipelines, impl_->total_pipelines};
}

bool BackgroundLoad::done() const {
  return !impl_ || impl_->done;
}

void BackgroundLoad::cancel() {
  if (!impl_) return;
  impl_->cancelled = true;
  impl_->pace.let_go();
}

void BackgroundLoad::advance(double microseconds) {
  if (impl_) impl_->pace.grant(microseconds);
}

Result<Model> BackgroundLoad::wait() {
  return guarded([&]() -> Result<Model> {
    if (!impl_) return Error{ErrorCode::kOutOfMemory, kNoHostMemory};
    impl_->pace.let_go();
    if (impl_->task) impl_->task->wait();
    return *impl_->result;
  });
}

}  // namespace vkformer
