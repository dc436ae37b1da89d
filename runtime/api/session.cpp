#include "vkformer/session.h"

#include "base/guarded.h"
#include "base/handle_access.h"
#include "session/session_state.h"

namespace vkformer {

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
  return guarded([&]() -> Result<Session> {
    VKF_ASSIGN(std::unique_ptr<SessionState> state,
               SessionState::create(HandleAccess::impl(model), options));
    return HandleAccess::make<Session>(std::move(state));
  });
}

Session::Session(std::unique_ptr<SessionState> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<TensorMap> Session::run(const TensorMap& inputs, const RunOptions& options) {
  return guarded([&]() -> Result<TensorMap> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->run(inputs, options);
  });
}

GenerateOptions Session::generation_defaults() const {
  return impl_->generation_defaults();
}

Result<Generation> Session::generate(const std::vector<std::vector<TokenId>>& inputs,
                                     const GenerateOptions& options) {
  return guarded([&]() -> Result<Generation> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    VKF_ASSIGN(TensorMap padded, pad_rows(inputs));
    return impl_->generate(padded, options);
  });
}

Result<Generation> Session::generate_masked(const TensorMap& inputs,
                                            const GenerateOptions& options) {
  return guarded([&]() -> Result<Generation> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->generate(inputs, options);
  });
}

Result<std::vector<std::vector<float>>> Session::score(
    const std::vector<std::vector<TokenId>>& inputs,
    const std::vector<std::vector<TokenId>>& continuations) {
  return guarded([&]() -> Result<std::vector<std::vector<float>>> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    VKF_ASSIGN(const TensorMap padded, pad_rows(inputs));
    return impl_->score(padded, continuations);
  });
}

Result<std::vector<std::vector<float>>> Session::score_masked(
    const TensorMap& inputs, const std::vector<std::vector<TokenId>>& continuations) {
  return guarded([&]() -> Result<std::vector<std::vector<float>>> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->score(inputs, continuations);
  });
}

Status Session::warm_up(const SessionSizes& sizes) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->warm_up(sizes);
  });
}

Result<double> Session::warmed_up() {
  return guarded([&]() -> Result<double> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->warmed_up();
  });
}

Status Session::finish_warm_up() {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->finish_warm_up();
  });
}

Result<FrameEstimate> Session::estimate(const SessionSizes& sizes, double microseconds) const {
  return guarded([&] { return impl_->estimate(sizes, microseconds); });
}

Status Session::start(const TensorMap& inputs, const RunOptions& options) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->start(inputs, options, {});
  });
}

Result<Advance> Session::advance(double microseconds) {
  return guarded([&]() -> Result<Advance> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->advance(microseconds, {});
  });
}

Result<Advance> Session::record(VkCommandBuffer_T* commands, double microseconds) {
  return guarded([&]() -> Result<Advance> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->record(commands, microseconds);
  });
}

Status Session::start_generation(const TensorMap& inputs, const GenerateOptions& options) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->start_generation(inputs, options);
  });
}

Result<Generation> Session::finish_generation() {
  return guarded([&]() -> Result<Generation> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->finish_generation();
  });
}

Result<TensorMap> Session::finish() {
  return guarded([&]() -> Result<TensorMap> {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->finish();
  });
}

Status Session::drop_recorded() {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->drop_recorded();
  });
}

Status Session::cancel() {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, impl_->turn());
    return impl_->cancel();
  });
}

const GenerationCounters& Session::counters() const {
  return impl_->counters();
}

}  // namespace vkformer
