#include "session/batch_state.h"

#include <algorithm>
#include <cmath>

#include "params/decode_state.h"

namespace vkformer {
namespace {

// Positions of a row where nobody says how many.
constexpr int64_t kUsualCapacity = 1024;
constexpr int64_t kMostPositions = int64_t{1} << 20;

Status check_family(const ModelFacts& facts, const char* what) {
  if (facts.kind != ModelKind::kDecoder || facts.rolling == ModelFacts::Rolling::kNo) {
    return unsupported("[" + std::string(what) + "] a " + facts.architecture +
                       " is no decoder alone with a cache of keys and values, which rows of a "
                       "batch share; use Session::generate");
  }
  if (facts.head != HeadKind::kLanguage) {
    return unsupported("[" + std::string(what) + "] a " + facts.architecture +
                       " has no language head and generates nothing");
  }
  if (facts.prompts != ModelFacts::Prompts::kExact) return {};
  return unsupported("[" + std::string(what) + "] the rotary frequencies of this " +
                     facts.architecture +
                     " depend on the length of a prompt, which differs from row to row; use "
                     "Session::generate");
}

Status check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return invalid_argument("[" + std::string(name) + "] is " + std::to_string(value) +
                          ", but must lie between " + std::to_string(least) + " and " +
                          std::to_string(most));
}

Status check_options(const BatchOptions& o, const ModelFacts& facts) {
  constexpr int64_t kMost = int64_t{1} << 20;
  VKF_CHECK(check_range("rows", o.rows, 1, VKF_MAX_SLOTS));
  VKF_CHECK(check_range("step_tokens", o.step_tokens, o.rows, VKF_MAX_SLOTS));
  VKF_CHECK(check_range("waiting", o.waiting, 1, kMost));
  VKF_CHECK(check_range("waiting_of_client", o.waiting_of_client, 0, kMost));
  VKF_CHECK(check_range("running_of_client", o.running_of_client, 0, kMost));
  VKF_CHECK(check_range("guesses", o.guesses, 1, 64));
  VKF_CHECK(check_range("lookup", o.lookup, 0, 64));
  const bool rolls = o.context && facts.rolling == ModelFacts::Rolling::kFree;
  VKF_CHECK(check_range("capacity", o.capacity, 0, rolls ? kMostPositions : facts.max_target));
  if (!o.context) return {};
  VKF_CHECK(check_range("context", *o.context, 1, facts.max_target));
  return check_range("sinks", o.sinks, 0, *o.context - 1);
}

}  // namespace

BatchState::BatchState(std::shared_ptr<const LoadedModel> model, const BatchOptions& options)
    : model_(std::move(model)),
      options_(options),
      rows_(static_cast<size_t>(options.rows)),
      queue_({.waiting = static_cast<size_t>(options.waiting),
              .waiting_of_client = static_cast<size_t>(options.waiting_of_client),
              .running_of_client = static_cast<size_t>(options.running_of_client)}) {}

Result<std::unique_ptr<BatchState>> BatchState::create(std::shared_ptr<const LoadedModel> model,
                                                       const BatchOptions& options) {
  const ModelFacts& facts = model->family().facts();
  VKF_CHECK(check_family(facts, "batch"));
  VKF_CHECK(check_options(options, facts));
  if (options.draft) {
    const ModelFacts& small = options.draft->impl()->family().facts();
    VKF_CHECK(check_family(small, "draft"));
    if (small.target_vocab != facts.target_vocab) {
      return invalid_argument("[draft] knows " + std::to_string(small.target_vocab) +
                              " tokens, but the model " + std::to_string(facts.target_vocab) +
                              "; a draft needs the same vocabulary");
    }
  }
  std::unique_ptr<BatchState> state(new BatchState(std::move(model), options));
  VKF_CHECK(state->record());
  return state;
}

Status BatchState::record() {
  const ModelFacts& facts = model_->family().facts();
  StepShape shape{.batch = options_.rows, .beams = 1};
  shape.slots = options_.step_tokens;
  shape.ahead = shape.slots - 1;
  shape.capacity =
      options_.capacity > 0 ? options_.capacity : std::min(facts.max_target, kUsualCapacity);
  if (options_.context && *options_.context < shape.capacity) {
    shape.context = *options_.context;
    shape.sinks = options_.sinks;
  }
  VKF_ASSIGN(pass_, SlotPass::create(model_, shape));
  counters_.cache_bytes = pass_->cache_bytes();
  if (!options_.draft) return {};
  VKF_ASSIGN(draft_, DraftModel::create(options_.draft->impl(), shape));
  counters_.cache_bytes += draft_->cache_bytes();
  return {};
}

Result<std::unique_ptr<BatchState::Request>> BatchState::read_request(
    const BatchRequest& given) const {
  const int64_t capacity = pass_->shape().capacity;
  const auto tokens = static_cast<int64_t>(given.prompt.size());
  const int64_t room = capacity - tokens;
  if (tokens == 0) {
    return invalid_argument("[prompt] has no token, but a request needs at least one");
  }
  const int64_t wanted = given.options.max_new_tokens;
  if (room < 1 || wanted > room) {
    return invalid_argument("[prompt] has " + std::to_string(tokens) + " tokens and " +
                            std::to_string(wanted) +
                            " more are wanted, but a row of this batch has room for " +
                            std::to_string(capacity) + "; shorten it or make the capacity larger");
  }
  VKF_ASSIGN(RequestChoice choice, RequestChoice::create(given.options, pass_->vocab()));
  auto request = std::make_unique<Request>(Request{.choice = std::move(choice)});
  request->client = given.client;
  for (int64_t token : given.prompt) {
    if (token < 0 || token >= pass_->vocab()) {
      return invalid_argument("[prompt] names the token " + std::to_string(token) +
                              ", but the vocabulary has ids 0 to " +
                              std::to_string(pass_->vocab() - 1));
    }
    request->text.push_back(static_cast<uint32_t>(token));
  }
  request->prompt = request->text.size();
  request->most = static_cast<size_t>(wanted > 0 ? wanted : std::min(room, kUsualCapacity));
  return request;
}

Result<uint64_t> BatchState::submit(const BatchRequest& given) {
  VKF_ASSIGN(std::unique_ptr<Request> request, read_request(given));
  const std::lock_guard held(lock_);
  VKF_CHECK(queue_.add({next_id_, given.client}, untold_.size()));
  request->id = request->update.request = next_id_;
  waiting_.emplace(next_id_, std::move(request));
  return next_id_++;
}

Status BatchState::cancel(uint64_t id) {
  const std::lock_guard held(lock_);
  if (queue_.remove(id)) {
    waiting_.erase(id);
    untold_.push_back({.request = id, .state = BatchUpdate::State::kCancelled});
    return {};
  }
  if (running_.count(id) == 0) {
    return not_found("[cancel] " + std::to_string(id) +
                     " is no request that waits or runs; it has ended, or never was");
  }
  cancelled_.insert(id);
  return {};
}

bool BatchState::idle() const {
  const std::lock_guard held(lock_);
  return waiting_.empty() && running_.empty() && untold_.empty();
}

BatchCounters BatchState::counters() const {
  const std::lock_guard held(lock_);
  BatchCounters now = counters_;
  now.waiting = static_cast<int64_t>(waiting_.size());
  now.running = static_cast<int64_t>(running_.size());
  return now;
}

}  // namespace vkformer
