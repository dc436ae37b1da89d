#include "vkformer/generation_batch.h"

#include "base/guarded.h"
#include "base/handle_access.h"
#include "generate/batch_state.h"

namespace vkformer {

Result<GenerationBatch> GenerationBatch::create(const Model& model, const BatchOptions& options) {
  return guarded([&]() -> Result<GenerationBatch> {
    VKF_ASSIGN(std::unique_ptr<BatchState> state,
               BatchState::create(HandleAccess::impl(model), options));
    return HandleAccess::make<GenerationBatch>(std::move(state));
  });
}

GenerationBatch::GenerationBatch(std::unique_ptr<BatchState> impl) : impl_(std::move(impl)) {}
GenerationBatch::GenerationBatch(GenerationBatch&&) noexcept = default;
GenerationBatch& GenerationBatch::operator=(GenerationBatch&&) noexcept = default;
GenerationBatch::~GenerationBatch() = default;

GenerateOptions GenerationBatch::generation_defaults() const {
  // A session that runs nothing costs nothing.
  const Result<Session> session = Session::create(HandleAccess::make<Model>(impl_->model()));
  GenerateOptions o = session ? session->generation_defaults() : GenerateOptions();
  o.beams = o.beam_groups = o.return_sequences = 1;
  o.contrastive_tokens = 0;
  o.diversity = 0;
  return o;
}

Result<uint64_t> GenerationBatch::submit(const BatchRequest& request) {
  return guarded([&] { return impl_->submit(request); });
}

Status GenerationBatch::cancel(uint64_t request) {
  return guarded([&] { return impl_->cancel(request); });
}

Result<std::vector<BatchUpdate>> GenerationBatch::step() {
  return guarded([&] { return impl_->step(); });
}

bool GenerationBatch::idle() const {
  return impl_->idle();
}

BatchCounters GenerationBatch::counters() const {
  return impl_->counters();
}

}  // namespace vkformer
