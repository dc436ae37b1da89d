#include "generate/batch_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/message.h"
#include "generate/token_choice.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

// Positions of a row where nobody says how many.
constexpr int64_t kUsualCapacity = 1024;
constexpr int64_t kMostPositions = int64_t{1} << 20;
// Tokens of an encoder's input where nobody says how many, and what they are rounded up to.
constexpr int64_t kUsualSource = 512;
constexpr int64_t kSourceStep = 16;

bool has_encoder(const ModelFacts& facts) {
  return facts.kind == ModelKind::kEncoderDecoder;
}

Status check_family(const ModelFacts& facts, const char* what) {
  const bool reads_tokens = !has_encoder(facts) || facts.source == SourceKind::kTokens;
  if (facts.slots == ModelFacts::Slots::kNo || !reads_tokens) {
    return unsupported(
        message({"[", what, "] a ", facts.architecture,
                 " does not generate behind tokens by a decoder with a cache of keys and "
                 "values, which rows of a batch share; use Session::generate"}));
  }
  if (facts.head != HeadKind::kLanguage) {
    return unsupported(message(
        {"[", what, "] a ", facts.architecture, " has no language head and generates nothing"}));
  }
  if (facts.prompts != ModelFacts::Prompts::kExact) return {};
  return unsupported(
      message({"[", what, "] the rotary frequencies of this ", facts.architecture,
               " depend on the length of a prompt, which differs from row to row; use "
               "Session::generate"}));
}

Status check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return invalid_argument(
      message({"[", name, "] is ", value, ", but must lie between ", least, " and ", most}));
}

Status check_options(const BatchOptions& o, const ModelFacts& facts) {
  constexpr int64_t kMost = int64_t{1} << 20;
  VKF_CHECK(check_range("rows", o.rows, 1, VKF_MAX_SLOTS));
  VKF_CHECK(check_range("step_tokens", o.step_tokens, o.rows, VKF_MAX_SLOTS));
  VKF_CHECK(check_range("waiting", o.waiting, 1, kMost));
  VKF_CHECK(check_range("waiting_of_client", o.waiting_of_client, 0, kMost));
  VKF_CHECK(check_range("running_of_client", o.running_of_client, 0, kMost));
  VKF_CHECK(check_range("source", o.source, 0, has_encoder(facts) ? facts.max_source : 0));
  VKF_CHECK(check_range("guesses", o.guesses, 1, 64));
  VKF_CHECK(check_range("lookup", o.lookup, 0, 64));
  const bool rolls = o.context && facts.rolling == ModelFacts::Rolling::kFree;
  VKF_CHECK(check_range("capacity", o.capacity, 0, rolls ? kMostPositions : facts.max_target));
  if (!o.context) return {};
  if (has_encoder(facts)) {
    return unsupported(
        message({"[context] a ", facts.architecture,
                 " is no decoder alone: what its decoder keeps ends with the model's ",
                 facts.max_target, " positions; leave context away"}));
  }
  VKF_CHECK(check_range("context", *o.context, 1, facts.max_target));
  return check_range("sinks", o.sinks, 0, *o.context - 1);
}

// A request waits as a whole, so what is larger than its queue would wait forever.
Status check_sequences(int sequences, const BatchOptions& o) {
  const bool own = o.waiting_of_client > 0 && o.waiting_of_client < o.waiting;
  const int most = own ? o.waiting_of_client : o.waiting;
  if (sequences >= 1 && sequences <= most) return {};
  return invalid_argument(
      message({"[return_sequences] is ", sequences, ", but must lie between 1 and ", most,
               own ? ", the requests of one client that may wait (waiting_of_client)."
                   : ", the requests that may wait (waiting).",
               " Ask for fewer sequences, or make the queue longer."}));
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
                                                       const BatchOptions& options, int64_t back) {
  const ModelFacts& facts = model->family().facts();
  VKF_CHECK(check_family(facts, "batch"));
  VKF_CHECK(check_options(options, facts));
  if (options.draft) {
    const ModelFacts& small = options.draft->impl()->family().facts();
    VKF_CHECK(check_family(small, "draft"));
    if (has_encoder(small)) {
      return unsupported(
          message({"[draft] a ", small.architecture,
                   " reads an input of its own; a draft is one decoder, which guesses by "
                   "what was generated"}));
    }
    if (small.target_vocab != facts.target_vocab) {
      return invalid_argument(
          message({"[draft] knows ", small.target_vocab, " tokens, but the model ",
                   facts.target_vocab, "; a draft needs the same vocabulary"}));
    }
  }
  std::unique_ptr<BatchState> state(new BatchState(std::move(model), options));
  VKF_CHECK(state->record(back));
  return state;
}

Status BatchState::record(int64_t back) {
  const ModelFacts& facts = model_->family().facts();
  StepShape shape{.batch = options_.rows, .beams = 1};
  shape.slots = options_.step_tokens;
  shape.ahead = shape.slots - 1 + back;
  if (has_encoder(facts)) {
    const int64_t source =
        options_.source > 0 ? options_.source : std::min(facts.max_source, kUsualSource);
    shape.source =
        std::min((source + kSourceStep - 1) / kSourceStep * kSourceStep, facts.max_source);
  }
  shape.capacity =
      options_.capacity > 0 ? options_.capacity : std::min(facts.max_target, kUsualCapacity);
  if (options_.context && *options_.context < shape.capacity) {
    shape.context = *options_.context;
    shape.sinks = options_.sinks;
  }
  VKF_ASSIGN(pass_, SlotPass::create(model_, shape));
  if (has_encoder(facts)) encoder_.emplace(model_, *pass_);
  counters_.cache_bytes = pass_->cache_bytes();
  if (!options_.draft) return {};
  VKF_ASSIGN(draft_, DraftModel::create(options_.draft->impl(), shape));
  counters_.cache_bytes += draft_->cache_bytes();
  return {};
}

Result<std::vector<int64_t>> BatchState::read_prompt(
    const BatchRequest& given, std::shared_ptr<const EncoderInput>& source) const {
  if (given.prompt.empty()) {
    return invalid_argument("[prompt] has no token, but a request needs at least one");
  }
  std::vector<int64_t> prompt = given.prompt;
  if (encoder_) {
    VKF_ASSIGN(source, encoder_->read(given.prompt, given.options, prompt));
  }
  const int64_t capacity = pass_->shape().capacity;
  const auto tokens = static_cast<int64_t>(prompt.size());
  const int64_t wanted = given.options.max_new_tokens;
  if (tokens >= capacity || wanted > capacity - tokens) {
    return invalid_argument(message({"[prompt] has ", tokens, " tokens and ", wanted,
                                     " more are wanted, but a row of this batch has room for ",
                                     capacity, "; shorten it or make the capacity larger"}));
  }
  for (int64_t token : prompt) {
    VKF_CHECK(check_token_id(encoder_ ? "decoder_prompt" : "prompt", token, pass_->vocab()));
  }
  return prompt;
}

Result<std::vector<std::unique_ptr<BatchState::Request>>> BatchState::read_request(
    const BatchRequest& given) const {
  const GenerateOptions& o = given.options;
  std::shared_ptr<const EncoderInput> source;
  VKF_ASSIGN(const std::vector<int64_t> prompt, read_prompt(given, source));
  VKF_CHECK(check_sequences(o.return_sequences, options_));
  const int64_t room = pass_->shape().capacity - static_cast<int64_t>(prompt.size());
  std::vector<std::unique_ptr<Request>> requests;
  for (int sequence = 0; sequence < o.return_sequences; ++sequence) {
    VKF_ASSIGN(RequestChoice choice,
               RequestChoice::create(o, pass_->vocab(), static_cast<uint32_t>(sequence)));
    auto request = std::make_unique<Request>(std::move(choice));
    request->client = given.client;
    request->on_token = o.on_token;
    request->constraint = o.grammar;
    request->source = source;
    request->text.assign(prompt.begin(), prompt.end());
    request->prompt = prompt.size();
    request->most = static_cast<size_t>(o.max_new_tokens > 0 ? o.max_new_tokens
                                                             : std::min(room, kUsualCapacity));
    request->update.sequence = static_cast<size_t>(sequence);
    requests.push_back(std::move(request));
  }
  return requests;
}

Result<uint64_t> BatchState::submit(const BatchRequest& given) {
  VKF_ASSIGN(std::vector<std::unique_ptr<Request>> requests, read_request(given));
  const std::lock_guard held(lock_);
  const uint64_t first = next_id_;
  // All of them wait, or none, also where memory runs out among them.
  struct Undo {
    BatchState& state;
    const uint64_t first;
    uint64_t end;
    ~Undo() {
      for (uint64_t id = first; id < end; ++id) {
        state.queue_.remove(id);
        state.waiting_.erase(id);
      }
    }
  } undo{*this, first, first};
  for (std::unique_ptr<Request>& request : requests) {
    const uint64_t id = undo.end;
    VKF_CHECK(queue_.add({id, given.client}, untold_.size()));
    ++undo.end;
    request->id = id;
    request->update.request = first;
    waiting_.emplace(id, std::move(request));
  }
  next_id_ = std::exchange(undo.end, first);
  return first;
}

Status BatchState::cancel(uint64_t id) {
  const std::lock_guard held(lock_);
  bool known = false;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto waits = it++;
    const BatchUpdate& update = waits->second->update;
    if (update.request != id) continue;
    known = true;
    untold_.push_back(
        {.request = id, .sequence = update.sequence, .state = BatchUpdate::State::kCancelled});
    queue_.remove(waits->first);
    waiting_.erase(waits);
  }
  for (const auto& [own, request] : running_) {
    if (request != id) continue;
    known = true;
    cancelled_.insert(own);
  }
  if (known) return {};
  return not_found(
      message({"[cancel] ", id, " is no request that waits or runs; it has ended, or never was"}));
}

bool BatchState::idle() const {
  const std::lock_guard held(lock_);
  return waiting_.empty() && running_.empty() && untold_.empty();
}

BatchCounters BatchState::counters() const {
  const std::lock_guard held(lock_);
  BatchCounters now = counters_;
  now.waiting = static_cast<int64_t>(waiting_.size() + untold_.size());
  now.running = static_cast<int64_t>(running_.size());
  return now;
}

}  // namespace vkformer
