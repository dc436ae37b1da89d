#include "generate/batch_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/handle_access.h"
#include "base/message.h"
#include "generate/request_adapters.h"
#include "generate/token_choice.h"
#include "generate/token_lookup.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

// Positions of a row where nobody says how many.
constexpr int64_t kUsualCapacity = 1024;
constexpr int64_t kMostPositions = int64_t{1} << 20;
// Tokens that a row can take back where every one of them costs a state of each layer.
constexpr int64_t kBackOfStates = 2;
// Tokens of an encoder's input where nobody says how many, and what they are rounded up to.
constexpr int64_t kUsualSource = 512;
constexpr int64_t kSourceStep = 16;

bool has_encoder(const ModelFacts& facts) {
  return facts.kind == ModelKind::kEncoderDecoder;
}

Status check_family(const ModelFacts& facts, const char* what) {
  const bool reads = facts.source == SourceKind::kTokens || facts.source == SourceKind::kPictures;
  if (has_encoder(facts) && !reads) {
    return unsupported(
        message({"[", what, "] a ", facts.architecture, " reads ", choice_name(facts.source),
                 " by its encoder, but a batch takes tokens or pictures; use Session::generate."}));
  }
  if (facts.slots == ModelFacts::Slots::kNo) {
    return unsupported(message({"[", what, "] a ", facts.architecture,
                                " does not continue tokens by a decoder with a cache of keys and "
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
  VKF_CHECK(check_range("draft_tokens", o.draft_tokens, 1, 64));
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

using State = BatchUpdate::State;

void add_work(const BatchWork& more, BatchWork& sum) {
  sum.prompt_tokens += more.prompt_tokens;
  sum.reused_tokens += more.reused_tokens;
  sum.new_tokens += more.new_tokens;
  sum.draft_tokens += more.draft_tokens;
  sum.accepted_tokens += more.accepted_tokens;
}

// Lets the next step begin.
class Leaving {
 public:
  explicit Leaving(std::atomic<bool>& stepping) : stepping_(stepping) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() { stepping_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool>& stepping_;
};

// Why no token can be taken, if so.
Status check_chosen(const ChosenToken& chosen, size_t position) {
  if (std::isnan(chosen.log_probability)) {
    return Error{
        ErrorCode::kDriver,
        message({"[batch] the logits became NaN at position ", position,
                 "; the weights hold NaN or infinity, or this driver computes wrong results"})};
  }
  if (chosen.token != VKF_NO_TOKEN) return {};
  return invalid_argument(
      message({"[batch] at position ", position,
               " every token is forbidden by the request's settings; forbid fewer"}));
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
  const bool after_prompt = facts.slots == ModelFacts::Slots::kAfterPrompt;
  if (model->split() != nullptr && (has_encoder(facts) || after_prompt)) {
    return unsupported(
        message({"[batch] the layers of this ", facts.architecture,
                 " lie on several devices, where a batch serves models that are one decoder; load "
                 "it onto one device, or use Session::generate"}));
  }
  if (options.draft) {
    const ModelFacts& small = HandleAccess::impl(*options.draft)->family().facts();
    VKF_CHECK(check_family(small, "draft"));
    if (has_encoder(small) || small.slots != ModelFacts::Slots::kYes) {
      return unsupported(message({"[draft] a ", small.architecture,
                                  " reads another input, or its prompt in one pass; a draft is one "
                                  "decoder, which continues what was generated"}));
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
  const int64_t drafted = options_.draft || options_.lookup > 0 ? options_.draft_tokens : 0;
  shape.back = std::max(std::min(back, kBackOfStates), drafted);
  if (has_encoder(facts)) {
    // A picture has as many tokens as its size says, and no picture would fit into fewer.
    const int64_t usual = facts.source == SourceKind::kTokens ? kUsualSource : facts.max_source;
    const int64_t source =
        options_.source > 0 ? options_.source : std::min(facts.max_source, usual);
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
  const bool images = facts.images.kind != ImagePromptFacts::Kind::kNone;
  if (images && model_->split() == nullptr) reader_.emplace(model_, *pass_);
  counters_.cache_bytes = pass_->cache_bytes();
  if (!options_.draft) return {};
  VKF_ASSIGN(draft_, DraftModel::create(HandleAccess::impl(*options_.draft), shape));
  counters_.cache_bytes += draft_->cache_bytes();
  return {};
}

Result<BatchState::Start> BatchState::read_start(const BatchRequest& given) const {
  const bool describes = encoder_ && encoder_->reads_pictures();
  if (given.prompt.empty() && !describes) {
    return invalid_argument("[prompt] has no token, but a request needs at least one");
  }
  Start start{.prompt = given.prompt, .source = {}, .input = {}};
  std::vector<int64_t>& prompt = start.prompt;
  if (!given.inputs.empty() && !reader_ && !describes) {
    return unsupported(message({"[inputs] has ", given.inputs.begin()->first, ", but a ",
                                model_->family().facts().architecture,
                                (model_->split() != nullptr ? " on several devices" : ""),
                                " reads no images in the prompts of a batch; give tokens alone."}));
  }
  if (encoder_) {
    VKF_ASSIGN(start.source, encoder_->read(given, prompt));
  }
  const int64_t capacity = pass_->shape().capacity;
  const auto tokens = static_cast<int64_t>(prompt.size());
  const int64_t wanted = given.options.max_new_tokens;
  if (tokens >= capacity || wanted > capacity - tokens) {
    return invalid_argument(message({"[prompt] has ", tokens, " tokens and ", wanted,
                                     " more are wanted, but a row of this batch has room for ",
                                     capacity, "; shorten it or make the capacity larger"}));
  }
  const size_t own = encoder_ && !describes ? 0 : given.prompt.size();
  for (size_t i = 0; i < prompt.size(); ++i) {
    const char* name = i < prompt.size() - own ? "decoder_prompt" : "prompt";
    VKF_CHECK(check_token_id(name, prompt[i], pass_->vocab()));
  }
  if (reader_) {
    VKF_ASSIGN(start.input, reader_->check(prompt, given.inputs));
  }
  return start;
}

Result<std::vector<std::unique_ptr<BatchState::Request>>> BatchState::read_request(
    const BatchRequest& given) const {
  const GenerateOptions& o = given.options;
  VKF_ASSIGN(const Start start, read_start(given));
  const std::vector<int64_t>& prompt = start.prompt;
  VKF_ASSIGN(const std::vector<float> adapters, adapter_scales(*model_, o.adapters));
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
    request->source = start.source;
    request->input = start.input;
    request->adapters = adapters;
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

// One step: who joins, who gets which of its slots, and what came of it.

void BatchState::leave(Row& row, std::vector<BatchUpdate>& updates) {
  running_.erase(row.request->id);
  cancelled_.erase(row.request->id);
  queue_.ended(row.request->client);
  updates.push_back(std::move(row.request->update));
  row.request.reset();
  std::erase(joined_, static_cast<uint32_t>(&row - rows_.data()));
}

void BatchState::end_cancelled(std::vector<BatchUpdate>& updates) {
  updates = std::move(untold_);
  untold_.clear();
  for (Row& row : rows_) {
    if (row.request == nullptr || cancelled_.count(row.request->id) == 0) continue;
    row.request->update.state = State::kCancelled;
    leave(row, updates);
  }
}

// The prompt's last token is always fed: the first new one is chosen after it. Keys after an image
// are of its content, wherever they end; so are positions, which may depend on the images after
// them.
size_t BatchState::shared_prefix(const Row& row, const Request& request) const {
  const bool other = request.input ? row.content != request.input->content : !row.content.empty();
  if (other) return 0;
  const auto text = std::span(request.text).first(request.prompt - 1);
  const size_t shared = row.kept.shared(text, pass_->reach());
  return request.input && shared < request.input->settled ? 0 : shared;
}

BatchState::Row& BatchState::best_row(const Request& request, size_t& shared) {
  const bool reuse = options_.prefix_reuse;
  Row* best = nullptr;
  size_t most = 0;
  for (Row& row : rows_) {
    if (row.request != nullptr) continue;
    const bool fits = reuse && row.adapters == request.adapters &&
                      (!request.source || row.source == request.source->content);
    const size_t has = fits ? shared_prefix(row, request) : 0;
    // An encoder's keys are worth as much as they are.
    const size_t worth = has + (fits && !row.source.empty() ? row.source_tokens : 0);
    const bool better = best == nullptr || worth > most || (worth == most && row.used < best->used);
    if (!better) continue;
    best = &row;
    most = worth;
    shared = has;
  }
  const bool other_source = request.source && best->source != request.source->content;
  if (!reuse || other_source || best->adapters != request.adapters) best->source.clear();
  return *best;
}

void BatchState::let_join() {
  while (running_.size() < rows_.size()) {
    const std::optional<QueuedRequest> next = queue_.take();
    if (!next) return;
    std::unique_ptr<Request> request = std::move(waiting_.at(next->id));
    waiting_.erase(next->id);
    running_.emplace(next->id, request->update.request);
    size_t shared = 0;
    Row& row = best_row(*request, shared);
    row.kept.trim(shared);
    row.adapters = request->adapters;
    row.content = request->input ? request->input->content : std::string();
    const bool pictured =
        request->source && encoder_->reads_pictures() && row.source != request->source->content;
    request->unread = pictured || (request->input && shared < request->input->settled);
    request->update.work.reused_tokens = static_cast<int64_t>(shared);
    counters_.work.reused_tokens += static_cast<int64_t>(shared);
    if (request->constraint) request->grammar.emplace(request->constraint);
    row.request = std::move(request);
    joined_.push_back(static_cast<uint32_t>(&row - rows_.data()));
  }
}

Status BatchState::write_adapters() {
  for (uint32_t r : joined_) {
    Row& row = rows_[r];
    if (row.written_adapters == row.adapters) continue;
    VKF_CHECK(pass_->write_adapters(r, row.adapters));
    row.written_adapters = row.adapters;
  }
  return {};
}

Status BatchState::encode(uint32_t row) {
  Request& request = *rows_[row].request;
  VKF_CHECK(encoder_->encode(*request.source, row, request.adapters));
  rows_[row].source = request.source->content;
  rows_[row].source_tokens = request.encoded = request.source->tokens;
  request.source.reset();
  return {};
}

Status BatchState::encode_sources() {
  for (uint32_t r : joined_) {
    Request& request = *rows_[r].request;
    if (!request.source || request.unread) continue;
    if (rows_[r].source == request.source->content) {
      request.source.reset();
      continue;
    }
    VKF_CHECK(encoder_->prepare(*request.source));
    VKF_CHECK(encode(r));
  }
  return {};
}

Status BatchState::read_one_prompt(std::vector<BatchUpdate>& updates) {
  const auto waits = [&](uint32_t r) { return rows_[r].request->unread; };
  const auto next = std::find_if(joined_.begin(), joined_.end(), waits);
  if (next == joined_.end()) return {};
  Row& row = rows_[*next];
  Request& request = *row.request;
  const Status prepared =
      request.source ? encoder_->prepare(*request.source) : reader_->prepare(*request.input);
  if (!prepared) {
    request.update.state = State::kFailed;
    request.update.error = prepared.error();
    row.kept.clear();
    const std::lock_guard held(lock_);
    leave(row, updates);
    return {};
  }
  request.unread = false;
  if (request.source) return encode(*next);
  const PromptInput& input = *request.input;
  VKF_CHECK(reader_->read(input, *next));
  for (size_t at = 0; at < input.tokens(); ++at) row.kept.append(request.text[at]);
  row.kept.wrote(input.tokens());
  request.encoded = input.tokens();
  // Its pixels are of no more use.
  request.input.reset();
  return {};
}

// Every running row gets a slot; what is left of them goes to prompts, the first that came first.
std::vector<BatchState::Turn> BatchState::share_slots() const {
  std::vector<Turn> turns;
  size_t spare = static_cast<size_t>(options_.step_tokens) - joined_.size();
  for (uint32_t r : joined_) {
    if (rows_[r].request->unread) continue;
    Turn turn{.row = r, .begin = rows_[r].kept.size()};
    const size_t unfed = rows_[r].request->text.size() - turn.begin;
    const size_t more = std::min(unfed - 1, spare);
    turn.fed = 1 + more;
    spare -= more;
    turn.reads_all = turn.fed == unfed;
    turns.push_back(std::move(turn));
  }
  return turns;
}

// What is left of the slots then goes to draft tokens, shared out evenly.
Status BatchState::add_drafts(std::vector<Turn>& turns) {
  if (draft_ == nullptr && options_.lookup == 0) return {};
  size_t spare = static_cast<size_t>(options_.step_tokens);
  size_t readers = 0;
  for (const Turn& turn : turns) {
    spare -= turn.fed;
    readers += turn.reads_all ? 1 : 0;
  }
  const size_t share =
      std::min(readers == 0 ? 0 : spare / readers, static_cast<size_t>(options_.draft_tokens));
  std::vector<DraftWish> wishes;
  std::vector<Turn*> wishers;
  for (Turn& turn : turns) {
    const Request& request = *rows_[turn.row].request;
    const size_t most = turn.reads_all ? std::min(share, request.left() - 1) : 0;
    turn.drafts = look_up_tokens(request.text, static_cast<size_t>(options_.lookup), most);
    if (!turn.drafts.empty()) continue;
    wishers.push_back(&turn);
    wishes.push_back({.row = turn.row,
                      .text = request.text,
                      .generated = request.generated(),
                      .drafts = most,
                      .choice = &request.choice});
  }
  if (draft_ != nullptr) {
    VKF_ASSIGN(std::vector<std::vector<uint32_t>> drafts, draft_->propose(wishes));
    for (size_t i = 0; i < wishers.size(); ++i) wishers[i]->drafts = std::move(drafts[i]);
  }
  for (Turn& turn : turns) trim_drafts(*rows_[turn.row].request, turn.drafts);
  return {};
}

// What is forced is no part of the text.
Status BatchState::accept(const Request& request, size_t generated, uint32_t token,
                          GrammarText& grammar) {
  if (request.choice.forced(generated, request.most) == token) return {};
  return grammar.accept(token);
}

void BatchState::trim_drafts(const Request& request, std::vector<uint32_t>& drafts) {
  if (!request.grammar) return;
  GrammarText grammar = *request.grammar;
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (accept(request, request.generated() + i, drafts[i], grammar)) continue;
    drafts.resize(i);
  }
}

void BatchState::choose_after(const Turn& turn, std::vector<FedToken>& fed,
                              std::vector<SlotChoice>& choices, std::vector<Place>& places) const {
  const Request& request = *rows_[turn.row].request;
  std::vector<uint32_t> text = request.text;
  Place place{.request = &request, .generated = request.generated(), .grammar = request.grammar};
  choices.push_back(request.choice.at(text, place.generated));
  places.push_back(place);
  for (uint32_t draft : turn.drafts) {
    // trim_drafts has left those that it accepts.
    if (place.grammar) (void)accept(request, place.generated, draft, *place.grammar);
    ++place.generated;
    fed.push_back({turn.row, static_cast<uint32_t>(text.size()), draft});
    text.push_back(draft);
    choices.push_back(request.choice.at(text, place.generated));
    places.push_back(place);
  }
}

Result<std::vector<BatchState::Place>> BatchState::run(const std::vector<Turn>& turns) {
  std::vector<FedToken> fed, unchosen;
  std::vector<SlotChoice> choices;
  std::vector<Place> places;
  for (const Turn& turn : turns) {
    const Request& request = *rows_[turn.row].request;
    const size_t chosen_from = turn.reads_all ? request.text.size() - 1 : request.text.size();
    for (size_t at = turn.begin; at < turn.begin + turn.fed; ++at) {
      (at < chosen_from ? unchosen : fed)
          .push_back({turn.row, static_cast<uint32_t>(at), request.text[at]});
    }
    if (turn.reads_all) choose_after(turn, fed, choices, places);
  }
  fed.insert(fed.end(), unchosen.begin(), unchosen.end());
  const auto mask = [&](std::span<SlotChoice> all) -> Status {
    for (size_t i = 0; i < all.size(); ++i) {
      Place& place = places[i];
      if (!place.grammar) continue;
      if (all[i].allowed.empty()) all[i].allowed.assign((pass_->vocab() + 31) / 32, ~0u);
      const auto left = static_cast<int64_t>(place.request->most - place.generated);
      place.masked = place.grammar->mask(left, all[i].allowed);
    }
    return {};
  };
  const bool masks = std::any_of(places.begin(), places.end(),
                                 [](const Place& place) { return place.grammar.has_value(); });
  VKF_ASSIGN(const std::vector<ChosenToken> chosen,
             pass_->run(fed, choices, masks ? CompleteChoices(mask) : CompleteChoices()));
  for (size_t i = 0; i < chosen.size(); ++i) places[i].chosen = chosen[i];
  return places;
}

void BatchState::follow(Request& request, double log_probability) {
  BatchUpdate& update = request.update;
  if (!request.on_token) return;
  switch (request.on_token({.input = static_cast<size_t>(update.request),
                            .sequence = update.sequence,
                            .id = request.text.back(),
                            .log_probability = log_probability})) {
    case TokenVerdict::kGoOn:
      return;
    case TokenVerdict::kEnd:
      update.state = State::kFinished;
      return;
    case TokenVerdict::kCancel:
      update.state = State::kCancelled;
  }
}

// Takes a token into the text and its grammar.
Status BatchState::add_token(Request& request, uint32_t token, double log_probability,
                             BatchWork& gained) {
  if (request.grammar) {
    VKF_CHECK(accept(request, request.generated(), token, *request.grammar));
  }
  request.text.push_back(token);
  request.update.tokens.push_back(token);
  request.update.score += log_probability;
  ++gained.new_tokens;
  follow(request, log_probability);
  if (request.update.state != State::kRunning) return {};
  if (request.left() > 0 && !request.choice.ends(token)) return {};
  request.update.state = State::kFinished;
  if (!request.grammar || request.grammar->may_end()) return {};
  return invalid_argument(message({"[grammar] the text cannot be completed within max_new_tokens, ",
                                   request.most, "; allow more"}));
}

bool BatchState::take_token(Request& request, const Place& place, BatchWork& gained) {
  BatchUpdate& update = request.update;
  const float found = place.chosen.log_probability;
  const std::optional<uint32_t> forced = request.choice.forced(request.generated(), request.most);
  Status usable = check_chosen(place.chosen, request.text.size());
  if (!place.masked && !std::isnan(found)) usable = place.masked;
  if (forced && !std::isnan(found)) usable = {};
  if (usable && !forced && place.grammar && place.grammar->complete()) {
    update.state = State::kFinished;
    return false;
  }
  if (usable) {
    // A forced token is certain.
    usable = add_token(request, forced.value_or(place.chosen.token),
                       forced ? 0.0 : static_cast<double>(found), gained);
  }
  if (usable) return update.state == State::kRunning;
  update.state = State::kFailed;
  update.error = usable.error();
  return false;
}

BatchWork BatchState::take_tokens(const Turn& turn, std::span<const Place> places) {
  Row& row = rows_[turn.row];
  Request& request = *row.request;
  BatchWork gained{.prompt_tokens =
                       static_cast<int64_t>(std::exchange(request.encoded, size_t{0}))};
  row.used = steps_;
  for (size_t at = turn.begin; at < turn.begin + turn.fed; ++at) {
    gained.prompt_tokens += at < request.prompt ? 1 : 0;
    row.kept.append(request.text[at]);
  }
  row.kept.wrote(turn.begin + turn.fed + turn.drafts.size());
  gained.draft_tokens = static_cast<int64_t>(turn.drafts.size());
  for (size_t i = 0; i < places.size(); ++i) {
    if (!take_token(request, places[i], gained)) break;
    if (i == turn.drafts.size() || request.text.back() != turn.drafts[i]) break;
    row.kept.append(turn.drafts[i]);
    ++gained.accepted_tokens;
  }
  // What a row computed that gave NaN is of no use to another text.
  if (request.update.state == State::kFailed) row.kept.clear();
  ++request.update.work.steps;
  add_work(gained, request.update.work);
  return gained;
}

Status BatchState::take_step(std::vector<Turn>& turns, std::vector<BatchWork>& gained) {
  ++steps_;
  VKF_CHECK(write_adapters());
  VKF_CHECK(encode_sources());
  VKF_CHECK(add_drafts(turns));
  VKF_ASSIGN(const std::vector<Place> places, run(turns));
  size_t next = 0;
  for (const Turn& turn : turns) {
    const size_t count = turn.reads_all ? 1 + turn.drafts.size() : 0;
    gained.push_back(take_tokens(turn, std::span(places).subspan(next, count)));
    next += count;
    Row& row = rows_[turn.row];
    if (row.request->update.state != State::kFailed || !encoder_) continue;
    row.source.clear();
    VKF_CHECK(encoder_->clear(turn.row));
  }
  return {};
}

void BatchState::tell(const std::vector<Turn>& turns, const std::vector<BatchWork>& gained,
                      std::vector<BatchUpdate>& updates) {
  if (!turns.empty()) ++counters_.work.steps;
  if (draft_ != nullptr) counters_.draft_steps = draft_->steps();
  for (size_t i = 0; i < turns.size(); ++i) {
    Row& row = rows_[turns[i].row];
    Request& request = *row.request;
    add_work(gained[i], counters_.work);
    queue_.served(request.client, gained[i].prompt_tokens, gained[i].new_tokens);
    if (request.update.state != State::kRunning) {
      leave(row, updates);
    } else if (!request.update.tokens.empty()) {
      updates.push_back(request.update);
      request.update.tokens.clear();
    }
  }
}

Result<std::vector<BatchUpdate>> BatchState::step() {
  bool free = false;
  if (!stepping_.compare_exchange_strong(free, true, std::memory_order_acquire)) {
    return invalid_argument(
        "[step] another thread is taking a step of this batch; let one thread take them all");
  }
  const Leaving leaving(stepping_);
  std::vector<BatchUpdate> updates;
  {
    const std::lock_guard held(lock_);
    end_cancelled(updates);
    let_join();
  }
  VKF_CHECK(read_one_prompt(updates));
  std::vector<Turn> turns = share_slots();
  std::vector<BatchWork> gained;
  if (!turns.empty()) VKF_CHECK(take_step(turns, gained));
  const std::lock_guard held(lock_);
  tell(turns, gained, updates);
  return updates;
}

}  // namespace vkformer
