// One step of a batch: who joins, who gets which of its slots, and what came of it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/message.h"
#include "generate/batch_state.h"
#include "generate/token_lookup.h"

namespace vkformer {
namespace {

using State = BatchUpdate::State;

void add_work(const BatchWork& more, BatchWork& sum) {
  sum.prompt_tokens += more.prompt_tokens;
  sum.reused_tokens += more.reused_tokens;
  sum.new_tokens += more.new_tokens;
  sum.guessed_tokens += more.guessed_tokens;
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

// The prompt's last token is always fed: the first new one is chosen behind it.
BatchState::Row& BatchState::best_row(const Request& request, size_t& shared) {
  const CacheReach reach{.lines = pass_->least_lines(), .ahead = pass_->shape().ahead};
  const bool reuse = options_.prefix_reuse == BatchOptions::PrefixReuse::kOn;
  const auto text = std::span(request.text).first(request.prompt - 1);
  Row* best = nullptr;
  size_t most = 0;
  for (Row& row : rows_) {
    if (row.request != nullptr) continue;
    const bool fits = reuse && (!request.source || row.source == request.source->tokens);
    const size_t has = fits ? row.kept.shared(text, reach) : 0;
    // An encoder's keys are worth as much as they are.
    const size_t worth = has + (fits ? row.source.size() : 0);
    const bool better = best == nullptr || worth > most || (worth == most && row.used < best->used);
    if (!better) continue;
    best = &row;
    most = worth;
    shared = has;
  }
  if (!reuse || (request.source && best->source != request.source->tokens)) best->source.clear();
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
    request->update.work.reused_tokens = static_cast<int64_t>(shared);
    counters_.work.reused_tokens += static_cast<int64_t>(shared);
    if (request->constraint) request->grammar.emplace(request->constraint);
    row.request = std::move(request);
    joined_.push_back(static_cast<uint32_t>(&row - rows_.data()));
  }
}

Status BatchState::encode_sources() {
  for (uint32_t r : joined_) {
    Request& request = *rows_[r].request;
    if (!request.source || rows_[r].source == request.source->tokens) continue;
    VKF_CHECK(encoder_->encode(*request.source, r));
    rows_[r].source = request.source->tokens;
    request.encoded = rows_[r].source.size();
  }
  return {};
}

// Every running row gets a slot; what is left of them goes to prompts, the first that came first.
std::vector<BatchState::Turn> BatchState::share_slots() const {
  std::vector<Turn> turns;
  size_t spare = static_cast<size_t>(options_.step_tokens) - joined_.size();
  for (uint32_t r : joined_) {
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

// What is left of the slots then goes to guesses, shared out evenly.
Status BatchState::add_guesses(std::vector<Turn>& turns) {
  if (draft_ == nullptr && options_.lookup == 0) return {};
  size_t spare = static_cast<size_t>(options_.step_tokens);
  size_t readers = 0;
  for (const Turn& turn : turns) {
    spare -= turn.fed;
    readers += turn.reads_all ? 1 : 0;
  }
  const size_t share =
      std::min(readers == 0 ? 0 : spare / readers, static_cast<size_t>(options_.guesses));
  std::vector<GuessWish> wishes;
  std::vector<Turn*> wishers;
  for (Turn& turn : turns) {
    const Request& request = *rows_[turn.row].request;
    const size_t most = turn.reads_all ? std::min(share, request.left() - 1) : 0;
    turn.guesses = look_up_tokens(request.text, static_cast<size_t>(options_.lookup), most);
    if (!turn.guesses.empty()) continue;
    wishers.push_back(&turn);
    wishes.push_back({.row = turn.row,
                      .text = request.text,
                      .generated = request.generated(),
                      .guesses = most,
                      .choice = &request.choice});
  }
  if (draft_ != nullptr) {
    VKF_ASSIGN(std::vector<std::vector<uint32_t>> guesses, draft_->guess(wishes));
    for (size_t i = 0; i < wishers.size(); ++i) wishers[i]->guesses = std::move(guesses[i]);
  }
  for (Turn& turn : turns) trim_guesses(*rows_[turn.row].request, turn.guesses);
  return {};
}

// What is forced is no part of the text.
Status BatchState::accept(const Request& request, size_t generated, uint32_t token,
                          GrammarText& grammar) {
  if (request.choice.forced(generated, request.most) == token) return {};
  return grammar.accept(token);
}

void BatchState::trim_guesses(const Request& request, std::vector<uint32_t>& guesses) {
  if (!request.grammar) return;
  GrammarText grammar = *request.grammar;
  for (size_t i = 0; i < guesses.size(); ++i) {
    if (accept(request, request.generated() + i, guesses[i], grammar)) continue;
    guesses.resize(i);
  }
}

void BatchState::choose_behind(const Turn& turn, std::vector<FedToken>& fed,
                               std::vector<SlotChoice>& choices, std::vector<Place>& places) const {
  const Request& request = *rows_[turn.row].request;
  std::vector<uint32_t> text = request.text;
  Place place{.request = &request, .generated = request.generated(), .grammar = request.grammar};
  choices.push_back(request.choice.at(text, place.generated));
  places.push_back(place);
  for (uint32_t guess : turn.guesses) {
    // trim_guesses has left those that it accepts.
    if (place.grammar) (void)accept(request, place.generated, guess, *place.grammar);
    ++place.generated;
    fed.push_back({turn.row, static_cast<uint32_t>(text.size()), guess});
    text.push_back(guess);
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
    if (turn.reads_all) choose_behind(turn, fed, choices, places);
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
  row.kept.wrote(turn.begin + turn.fed + turn.guesses.size());
  gained.guessed_tokens = static_cast<int64_t>(turn.guesses.size());
  for (size_t i = 0; i < places.size(); ++i) {
    if (!take_token(request, places[i], gained)) break;
    if (i == turn.guesses.size() || request.text.back() != turn.guesses[i]) break;
    row.kept.append(turn.guesses[i]);
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
  VKF_CHECK(encode_sources());
  VKF_CHECK(add_guesses(turns));
  VKF_ASSIGN(const std::vector<Place> places, run(turns));
  size_t next = 0;
  for (const Turn& turn : turns) {
    const size_t count = turn.reads_all ? 1 + turn.guesses.size() : 0;
    gained.push_back(take_tokens(turn, std::span(places).subspan(next, count)));
    next += count;
    Row& row = rows_[turn.row];
    if (row.request->update.state != State::kFailed || !row.request->source) continue;
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
  std::vector<Turn> turns = share_slots();
  std::vector<BatchWork> gained;
  if (!turns.empty()) VKF_CHECK(take_step(turns, gained));
  const std::lock_guard held(lock_);
  tell(turns, gained, updates);
  return updates;
}

}  // namespace vkformer
