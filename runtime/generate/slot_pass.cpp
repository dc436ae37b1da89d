#include "generate/slot_pass.h"

#include <algorithm>
#include <bit>

#include "base/message.h"
#include "generate/token_choice.h"
#include "ops/token_sample.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

SearchParams search_params(const ModelFamily& family, const StepShape& shape) {
  return {.batch = static_cast<uint32_t>(shape.slots),
          .beams = 1,
          .capacity = static_cast<uint32_t>(shape.capacity),
          .vocab = static_cast<uint32_t>(family.facts().target_vocab),
          .candidates = 1};
}

// A slot's settings and its history lie in the row of its own number, so that guesses at the
// tokens of one row stand beside each other.
Result<TensorId> add_choice(Graph& graph, TensorId logits, const SearchParams& p) {
  const auto words = [&](const char* name, uint64_t count) {
    return graph.add_external(name, DType::kU32, {static_cast<int64_t>(count)});
  };
  SearchTensors t{.params = p};
  t.state = words("choice_state", 4096);
  t.search = words("search", search_words(p));
  t.settings = words("settings", sizeof(SearchSettings) / 4);
  t.choice = words("choice", choice_words(p, uint64_t{kSlotRuleWords} * p.batch));
  graph.set_scope("choice");
  VKF_ASSIGN(const TensorId scores, add_token_scores(graph, logits, t, ScoresFrom::kLogits));
  return add_token_sample(graph, scores, logits, t);
}

}  // namespace

SlotPass::SlotPass(std::shared_ptr<const LoadedModel> model, const StepShape& shape)
    : model_(std::move(model)), shape_(shape), memory_(model_->device()) {
  params_ = search_params(model_->family(), shape_);
  rules_.resize(static_cast<size_t>(shape_.slots));
}

Result<std::unique_ptr<SlotPass>> SlotPass::create(std::shared_ptr<const LoadedModel> model,
                                                   const StepShape& shape) {
  std::unique_ptr<SlotPass> pass(new SlotPass(std::move(model), shape));
  VKF_CHECK(pass->record());
  VKF_CHECK(pass->write_constants());
  return pass;
}

Status SlotPass::record() {
  Graph graph;
  ModelBuilder builder(graph, model_->weights());
  VKF_ASSIGN(const TensorId logits, model_->family().build_step(builder, shape_));
  VKF_ASSIGN(const TensorId chosen, add_choice(graph, logits, params_));
  builder.mark_output(chosen, "chosen");
  RecordedGraphOptions options{.model = model_.get(), .precision = model_->precision()};
  options.host.writes = {"decode_state", "step_ids", "args",   "search",
                         "choice_state", "settings", "choice", "key_mask"};
  options.host.reads = {"chosen"};
  options.indirect_args = "args";
  options.cut_at = kScoresKernel;
  VKF_ASSIGN(step_, RecordedGraph::build(memory_, builder, options));
  find_commands();
  return {};
}

void SlotPass::find_commands() {
  const Plan& plan = step_->plan();
  std::vector<bool> is_cache(plan.buffers.size());
  least_lines_ = shape_.capacity;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& b = plan.buffers[i];
    if (!b.name.starts_with("self_kv.")) continue;
    is_cache[i] = true;
    cache_bytes_ += static_cast<int64_t>(b.bytes);
    least_lines_ = std::min(least_lines_, b.shape[1]);
  }
  size_t last_write = 0;
  for (const Dispatch& d : plan.dispatches) {
    for (const BoundBuffer& b : d.bindings) {
      if (is_cache[b.buffer] && b.access != Access::kRead) last_write = commands_.size();
    }
    if (d.live_axis < 0) continue;
    commands_.push_back({.groups = d.groups,
                         .axis = static_cast<uint32_t>(d.live_axis),
                         .slots_per_group = d.slots_per_group});
  }
  for (size_t i = last_write + 1; i < commands_.size(); ++i) commands_[i].for_all = false;
}

// Settings that all slots share: none, because every slot's own say more.
Status SlotPass::write_constants() {
  SearchSettings s{};
  s.max_length = VKF_NO_TOKEN;
  s.forced_first = s.forced_last = VKF_NO_TOKEN;
  const auto words = std::bit_cast<std::array<uint32_t, sizeof s / 4>>(s);
  return memory_.write("settings", 0, words);
}

Status SlotPass::write_choice_words(const std::string& name, uint64_t word,
                                    std::span<const uint32_t> values) {
  return memory_.write(name, word, values, PassMemory::InFlight::kDoesNotRead);
}

Status SlotPass::write_tokens(std::span<const FedToken> fed, size_t chosen) {
  uint32_t position = 0;
  for (const FedToken& f : fed) position = std::max(position, f.position);
  const auto count = static_cast<uint32_t>(fed.size());
  std::vector<uint32_t> state(VKF_STATE_WORDS), ids;
  state[0] = state[1] = count;
  state[2] = position;
  for (const FedToken& f : fed) {
    state.push_back(f.row | ((position - f.position) << VKF_SLOT_ROW_BITS));
    ids.push_back(f.token);
  }
  std::vector<uint32_t> args;
  for (const Command& c : commands_) {
    const uint32_t slots = c.for_all ? count : static_cast<uint32_t>(chosen);
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const bool live = axis == c.axis;
      args.push_back(live ? (slots + c.slots_per_group - 1) / c.slots_per_group : c.groups[axis]);
    }
  }
  VKF_CHECK(memory_.write("decode_state", 0, state));
  VKF_CHECK(memory_.write("step_ids", 0, ids));
  return memory_.write("args", 0, args);
}

// The settings of all slots, and behind them what is masked where any is, in one piece.
Status SlotPass::write_settings(std::span<const SlotChoice> choices) {
  const uint64_t rules_at = choice_rules_at(params_);
  std::vector<uint32_t> words;
  for (uint32_t slot = 0; slot < choices.size(); ++slot) {
    const SlotChoice& c = choices[slot];
    ChoiceRow row = c.settings;
    row.masked = c.allowed.empty() ? 0u : 1u;
    row.rules = c.rules ? static_cast<uint32_t>(rules_at) + slot * kSlotRuleWords : 0u;
    const auto settings = std::bit_cast<std::array<uint32_t, VKF_CHOICE_WORDS>>(row);
    words.insert(words.end(), settings.begin(), settings.end());
  }
  for (uint32_t slot = 0; slot < choices.size(); ++slot) {
    const std::vector<uint32_t>& allowed = choices[slot].allowed;
    if (allowed.empty()) continue;
    // Between lie the settings of slots that choose nothing, and a list of suppressed tokens that
    // nobody fills, because every slot's own mask says more.
    words.resize(choice_allowed_at(params_, slot));
    words.insert(words.end(), allowed.begin(), allowed.end());
  }
  VKF_CHECK(write_choice_words("choice", 0, words));
  for (uint32_t slot = 0; slot < choices.size(); ++slot) {
    const auto& rules = choices[slot].rules;
    if (!rules || rules_[slot] == rules) continue;
    VKF_CHECK(write_choice_words("choice", rules_at + uint64_t{slot} * kSlotRuleWords, *rules));
    rules_[slot] = rules;
  }
  return {};
}

// Histories end together, each in its slot's row; one that nobody looks at ends where it begins.
Status SlotPass::write_choices(std::span<const FedToken> fed, std::span<const SlotChoice> choices) {
  if (choices.empty()) return {};
  uint32_t position = 0;
  for (size_t i = 0; i < choices.size(); ++i) position = std::max(position, fed[i].position);
  std::vector<uint32_t> state(VKF_STATE_WORDS), histories;
  uint64_t first = 0;
  state[0] = state[1] = static_cast<uint32_t>(choices.size());
  state[2] = position;
  for (uint32_t slot = 0; slot < choices.size(); ++slot) {
    const std::vector<uint32_t>& history = choices[slot].history;
    const uint32_t start = position + 1 - static_cast<uint32_t>(history.size());
    state.push_back(slot | (start << VKF_SLOT_ROW_BITS));
    if (history.empty()) continue;
    const uint64_t at = uint64_t{slot} * params_.capacity + start;
    if (histories.empty()) first = at;
    histories.resize(at - first);
    histories.insert(histories.end(), history.begin(), history.end());
  }
  VKF_CHECK(write_settings(choices));
  VKF_CHECK(write_choice_words("search", first, histories));
  return write_choice_words("choice_state", 0, state);
}

Result<std::vector<ChosenToken>> SlotPass::run(std::span<const FedToken> fed,
                                               std::span<SlotChoice> choices,
                                               const CompleteChoices& complete) {
  if (fed.empty() || fed.size() > static_cast<size_t>(shape_.slots) ||
      choices.size() > fed.size()) {
    return internal_error(message({"[slots] ", fed.size(), " tokens with ", choices.size(),
                                   " choices do not fit into ", shape_.slots, " slots"}));
  }
  std::vector<ChosenToken> chosen(choices.size());
  const TensorPart results[] = {{"chosen", 0, 8 * chosen.size()}};
  VKF_CHECK(write_tokens(fed, choices.size()));
  RecordingPart last = RecordingPart::kAll;
  if (complete) {
    const RecordingRange layers[] = {step_->part(RecordingPart::kBeforeCut)};
    VKF_CHECK(memory_.submit(layers, {}));
    VKF_CHECK(complete(choices));
    last = RecordingPart::kAfterCut;
  }
  VKF_CHECK(write_choices(fed, choices));
  const RecordingRange rest[] = {step_->part(last)};
  VKF_CHECK(memory_.submit(rest, results));
  // A step that only reads a prompt leaves nothing to wait for.
  if (chosen.empty()) return chosen;
  VKF_CHECK(memory_.wait());
  std::vector<uint32_t> words(2 * chosen.size());
  VKF_CHECK(memory_.read(results[0], std::as_writable_bytes(std::span<uint32_t>(words))));
  for (size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = {.token = words[2 * i + 1], .log_probability = std::bit_cast<float>(words[2 * i])};
  }
  return chosen;
}

}  // namespace vkformer
