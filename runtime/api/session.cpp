#include "vkformer/session.h"

#include "session/session_state.h"

namespace vkformer {

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
  VKF_ASSIGN(std::unique_ptr<SessionState> state, SessionState::create(model.impl(), options));
  return Session(std::move(state));
}

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<TensorMap> Session::run(const TensorMap& inputs, const RunOptions& options) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->run(inputs, options);
}

GenerateOptions Session::generation_defaults() const {
  return state_->generation_defaults();
}

Result<Generation> Session::generate(const std::vector<std::vector<int64_t>>& inputs,
                                     const GenerateOptions& options) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  VKF_ASSIGN(TensorMap padded, pad_rows(inputs));
  return state_->generate(padded, options);
}

Result<Generation> Session::generate_masked(const TensorMap& inputs,
                                            const GenerateOptions& options) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->generate(inputs, options);
}

Result<std::vector<std::vector<float>>> Session::score(
    const std::vector<std::vector<int64_t>>& inputs,
    const std::vector<std::vector<int64_t>>& continuations) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  VKF_ASSIGN(const TensorMap padded, pad_rows(inputs));
  return state_->score(padded, continuations);
}

Result<std::vector<std::vector<float>>> Session::score_masked(
    const TensorMap& inputs, const std::vector<std::vector<int64_t>>& continuations) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->score(inputs, continuations);
}

Status Session::start(const TensorMap& inputs, const RunOptions& options) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->start(inputs, options, {});
}

Result<Advance> Session::advance(double microseconds) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->sliced().advance(microseconds, {});
}

Result<Advance> Session::record(VkCommandBuffer_T* commands, double microseconds) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->sliced().record(commands, microseconds);
}

Status Session::start_generation(const TensorMap& inputs, const GenerateOptions& options) {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->start_generation(inputs, options);
}

Result<Generation> Session::finish_generation() {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->sliced().finish_generation();
}

Result<TensorMap> Session::finish() {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->sliced().finish();
}

Status Session::cancel() {
  VKF_ASSIGN(const SessionState::Turn turn, state_->turn());
  return state_->sliced().cancel();
}

const GenerationCounters& Session::counters() const {
  return state_->counters();
}

}  // namespace vkformer
