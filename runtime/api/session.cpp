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
  return state_->run(inputs, options);
}

GenerateOptions Session::generation_defaults() const {
  return state_->generation_defaults();
}

Result<Generation> Session::generate(const std::vector<std::vector<int64_t>>& inputs,
                                     const GenerateOptions& options) {
  VKF_ASSIGN(TensorMap padded, pad_rows(inputs));
  return state_->generate(padded, options);
}

Result<Generation> Session::generate_masked(const TensorMap& inputs,
                                            const GenerateOptions& options) {
  return state_->generate(inputs, options);
}

const GenerationCounters& Session::counters() const {
  return state_->counters();
}

std::vector<DispatchTime> Session::last_profile() const {
  return state_->last_profile();
}

}  // namespace vkformer
