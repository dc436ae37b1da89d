#include "vkformer/session.h"

#include "base/guarded.h"
#include "session/session_state.h"

namespace vkformer {

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
  return guarded([&]() -> Result<Session> {
    VKF_ASSIGN(std::unique_ptr<SessionState> state, SessionState::create(model.impl(), options));
    return Session(std::move(state));
  });
}

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<TensorMap> Session::run(const TensorMap& inputs, const RunOptions& options) {
  return guarded([&]() -> Result<TensorMap> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->run(inputs, options);
  });
}

GenerateOptions Session::generation_defaults() const {
  return state_->generation_defaults();
}

Result<Generation> Session::generate(const std::vector<std::vector<int64_t>>& inputs,
                                     const GenerateOptions& options) {
  return guarded([&]() -> Result<Generation> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    VKF_ASSIGN(TensorMap padded, pad_rows(inputs));
    return state_->generate(padded, options);
  });
}

Result<Generation> Session::generate_masked(const TensorMap& inputs,
                                            const GenerateOptions& options) {
  return guarded([&]() -> Result<Generation> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->generate(inputs, options);
  });
}

Result<std::vector<std::vector<float>>> Session::score(
    const std::vector<std::vector<int64_t>>& inputs,
    const std::vector<std::vector<int64_t>>& continuations) {
  return guarded([&]() -> Result<std::vector<std::vector<float>>> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    VKF_ASSIGN(const TensorMap padded, pad_rows(inputs));
    return state_->score(padded, continuations);
  });
}

Result<std::vector<std::vector<float>>> Session::score_masked(
    const TensorMap& inputs, const std::vector<std::vector<int64_t>>& continuations) {
  return guarded([&]() -> Result<std::vector<std::vector<float>>> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->score(inputs, continuations);
  });
}

Status Session::start(const TensorMap& inputs, const RunOptions& options) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->start(inputs, options, {});
  });
}

Result<Advance> Session::advance(double microseconds) {
  return guarded([&]() -> Result<Advance> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->sliced().advance(microseconds, {});
  });
}

Result<Advance> Session::record(VkCommandBuffer_T* commands, double microseconds) {
  return guarded([&]() -> Result<Advance> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->sliced().record(commands, microseconds);
  });
}

Status Session::start_generation(const TensorMap& inputs, const GenerateOptions& options) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->start_generation(inputs, options);
  });
}

Result<Generation> Session::finish_generation() {
  return guarded([&]() -> Result<Generation> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->sliced().finish_generation();
  });
}

Result<TensorMap> Session::finish() {
  return guarded([&]() -> Result<TensorMap> {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->sliced().finish();
  });
}

Status Session::cancel() {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
    return state_->sliced().cancel();
  });
}

const GenerationCounters& Session::counters() const {
  return state_->counters();
}

}  // namespace vkformer
