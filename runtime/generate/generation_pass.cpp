#include "generate/generation_pass.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/message.h"
#include "generate/generation_sizes.h"
#include "generate/request_adapters.h"
#include "generate/token_choice.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

constexpr float kIdleBeamScore = -1e9f;  // beams that start without a hypothesis of their own

uint32_t early_stopping_code(EarlyStopping when) {
  switch (when) {
    case EarlyStopping::kFalse:
      return VKF_EARLY_STOPPING_NO;
    case EarlyStopping::kTrue:
      return VKF_EARLY_STOPPING_YES;
    case EarlyStopping::kNever:
      return VKF_EARLY_STOPPING_NEVER;
  }
  return VKF_EARLY_STOPPING_NO;
}

Status set_bit(std::vector<uint32_t>& words, size_t first, int64_t token, uint32_t vocab,
               const char* name) {
  VKF_CHECK(check_token_id(name, token, vocab));
  words[first + static_cast<size_t>(token / 32)] |= 1u << (token % 32);
  return {};
}

DecodeStep::Prompt prompt_of(bool first) {
  return first ? DecodeStep::Prompt::kYes : DecodeStep::Prompt::kNo;
}

std::vector<int64_t> ids_from(const std::vector<uint32_t>& words, size_t begin, size_t count) {
  return {words.begin() + static_cast<ptrdiff_t>(begin),
          words.begin() + static_cast<ptrdiff_t>(begin + count)};
}

}  // namespace

GenerationPass::GenerationPass(std::shared_ptr<DecodeStep> step)
    : step_(std::move(step)),
      params_(step_->params()),
      results_(
          {{"decode_state", 0, 4 * sizeof(uint32_t)}, {"search", 0, 4 * search_words(params_)}}) {}

int64_t GenerationPass::start_of(const GenerationInputs& inputs, size_t item) const {
  return prompt_end_ - static_cast<int64_t>(inputs.prompts[item].size());
}

Status GenerationPass::prepare_slots(const GenerationInputs& inputs) {
  const auto position = static_cast<uint32_t>(step_->shape().prompt - 1);
  std::vector<FedToken> fed;
  for (uint32_t row = 0; row < params_.batch * params_.beams; ++row) {
    const size_t item = row / params_.beams;
    const int64_t token = inputs.prompts[item][fed_at_once(inputs, item, step_->shape()) - 1];
    fed.push_back({.row = row,
                   .position = position - static_cast<uint32_t>(start_of(inputs, item)),
                   .token = static_cast<uint32_t>(token)});
  }
  return step_->write_slots(fed, params_.batch, position);
}

Status GenerationPass::prepare(const GenerationInputs& inputs, const GenerateOptions& options,
                               int64_t new_tokens) {
  VKF_CHECK(step_->write_prompts(inputs));
  VKF_ASSIGN(const std::vector<float> scales, adapter_scales(step_->model(), options.adapters));
  VKF_CHECK(step_->write_adapters(0, step_->rows(), scales));
  VKF_CHECK(prepare_settings(inputs, options, new_tokens));
  VKF_CHECK(prepare_search(inputs));
  VKF_CHECK(prepare_slots(inputs));
  return step_->write_groups_and_table();
}

Status GenerationPass::prepare_search(const GenerationInputs& inputs) {
  const SearchLayout layout{params_};
  std::vector<uint32_t> words(search_words(params_), 0u);
  std::vector<uint32_t> ancestry(layout.rows() * params_.capacity);
  for (size_t row = 0; row < layout.rows(); ++row) {
    const size_t item = row / params_.beams;
    const std::vector<int64_t>& prompt = inputs.prompts[item];
    const size_t tokens = layout.tokens(row) + static_cast<size_t>(start_of(inputs, item));
    for (size_t t = 0; t < prompt.size(); ++t) words[tokens + t] = static_cast<uint32_t>(prompt[t]);
    words[layout.score(row)] =
        std::bit_cast<uint32_t>(row % params_.beams == 0 ? 0.0f : kIdleBeamScore);
    // The prompt's keys lie in the item's first row, those of later positions in the row itself.
    const auto own = ancestry.begin() + static_cast<ptrdiff_t>(row * params_.capacity);
    std::fill_n(own, params_.capacity, static_cast<uint32_t>(row));
    std::fill_n(own, fed_at_once(inputs, item, step_->shape()) - 1,
                static_cast<uint32_t>(item * params_.beams));
  }
  for (size_t i = 0; i < params_.batch; ++i) words[layout.item(i) + VKF_ITEM_ACTIVE] = 1;
  VKF_CHECK(step_->memory().write("search", 0, words));
  return step_->memory().write("ancestry", 0, ancestry);
}

Status GenerationPass::prepare_settings(const GenerationInputs& inputs,
                                        const GenerateOptions& options, int64_t new_tokens) {
  SearchSettings s{};
  s.prompt_length = static_cast<uint32_t>(prompt_end_);
  s.max_length = s.prompt_length + static_cast<uint32_t>(new_tokens);
  s.min_length = s.prompt_length + static_cast<uint32_t>(options.min_new_tokens);
  s.forced_first =
      options.forced_bos < 0 ? VKF_NO_TOKEN : static_cast<uint32_t>(options.forced_bos);
  s.forced_last = options.forced_eos < 0 ? VKF_NO_TOKEN : static_cast<uint32_t>(options.forced_eos);
  s.early_stopping = early_stopping_code(options.early_stopping);
  s.length_penalty = static_cast<float>(options.length_penalty);
  s.diversity = static_cast<float>(options.diversity);
  s.eos_count = static_cast<uint32_t>(options.eos.size());
  for (size_t i = 0; i < options.eos.size(); ++i) {
    s.eos[i / 4].word[i % 4] = static_cast<uint32_t>(options.eos[i]);
  }
  const size_t half = (params_.vocab + 31) / 32;
  std::vector<uint32_t> suppress(2 * half, 0u);
  for (int64_t token : options.suppress)
    VKF_CHECK(set_bit(suppress, 0, token, params_.vocab, "suppress"));
  for (int64_t token : options.begin_suppress)
    VKF_CHECK(set_bit(suppress, half, token, params_.vocab, "begin_suppress"));
  VKF_CHECK(step_->memory().write("suppress", 0, suppress));
  const auto settings = std::bit_cast<std::array<uint32_t, sizeof s / 4>>(s);
  VKF_CHECK(step_->memory().write("settings", 0, settings));
  if (step_->key().choice == GenerationKey::Choice::kPlain) return {};
  return prepare_choice(inputs, options, std::move(suppress));
}

Status GenerationPass::prepare_choice(const GenerationInputs& inputs,
                                      const GenerateOptions& options,
                                      std::vector<uint32_t> suppress) {
  std::vector<uint32_t> words;
  const std::vector<TokenRule> rules = token_rules(options.penalties);
  const auto rules_at = static_cast<uint32_t>(rules.empty() ? 0 : choice_rules_at(params_));
  const auto sequences = static_cast<size_t>(options.return_sequences);
  for (size_t row = 0; row < size_t{params_.batch} * params_.beams; ++row) {
    // Beams are told apart where they draw; other rows by their place among an input's sequences.
    const size_t stream =
        params_.beams > 1 ? row % params_.beams : inputs.items[row / params_.beams] % sequences;
    const ChoiceRow settings = choice_row(options, static_cast<uint32_t>(stream), rules_at);
    words.resize(words.size() + VKF_CHOICE_WORDS);
    std::memcpy(words.data() + words.size() - VKF_CHOICE_WORDS, &settings, sizeof settings);
  }
  words.insert(words.end(), suppress.begin(), suppress.end());
  VKF_CHECK(step_->memory().write("choice", 0, words));
  return rules.empty() ? Status{} : step_->memory().write("choice", rules_at, rule_list(rules));
}

Status GenerationPass::decode(int steps_per_submit, GenerationCounters& counters) {
  const bool masked = watch_ && watch_->masks_tokens();
  uint32_t live_slots = params_.batch * params_.beams;
  const int64_t before = counters.steps;  // of rows that ran apart
  const int64_t submits = step_->memory().submits();
  const DecodeStep::PromptParts parts = step_->prompt_parts();
  for (bool first = true; live_slots > 0 && steps_left_ > 0; first = false) {
    const int64_t steps = masked ? 1 : std::min<int64_t>(steps_per_submit, steps_left_);
    if (masked) {
      VKF_CHECK(masked_step(first));
    } else {
      VKF_CHECK(step_->submit(prompt_of(first), RecordingPart::kAll, steps, results_));
    }
    VKF_CHECK(step_->memory().wait());
    steps_left_ -= steps;
    if (masked || steps_per_submit == 1)
      counters.step_workgroups.push_back(step_->workgroups(live_slots));
    VKF_ASSIGN(const auto state, read_state());
    live_slots = state[1];
    counters.steps = before + state[3];
    if (watch_) VKF_CHECK(follow(state[2], live_slots));
  }
  counters.submits += step_->memory().submits() - submits;
  counters.prompt_parts += step_->prompt_parts().parts - parts.parts;
  counters.prompt_rounds += step_->prompt_parts().rounds - parts.rounds;
  return {};
}

Status GenerationPass::write_masks() {
  VKF_ASSIGN(const std::vector<uint32_t> masks, watch_->masks());
  // Nothing before the cut reads them.
  return step_->memory().write("choice", choice_allowed_at(params_, 0), masks,
                               PassMemory::InFlight::kDoesNotRead);
}

// The host computes the masks while the GPU is at the layers.
Status GenerationPass::masked_step(bool first) {
  VKF_CHECK(step_->submit(prompt_of(first), RecordingPart::kBeforeCut, 1, {}));
  VKF_CHECK(write_masks());
  return step_->submit(DecodeStep::Prompt::kNo, RecordingPart::kAfterCut, 1, results_);
}

Status GenerationPass::follow(uint32_t position, uint32_t& live_slots) {
  if (position + 1 <= static_cast<uint32_t>(prompt_end_)) return {};
  const SearchLayout layout{params_};
  VKF_ASSIGN(const std::vector<uint32_t> words, read_search());
  VKF_ASSIGN(const std::vector<uint32_t> ended, watch_->read(words, position + 1));
  for (uint32_t item : ended) {
    // The next step still chooses a token for it, and then packs it away.
    const std::array<uint32_t, 3> stopped = {0, 0, watch_->ended_at(item)};
    VKF_CHECK(step_->memory().write("search", layout.item(item), stopped));
  }
  live_slots -= std::min(live_slots, static_cast<uint32_t>(ended.size()) * params_.beams);
  return {};
}

// The first words of the state: items, live slots, position, steps.
Result<std::array<uint32_t, 4>> GenerationPass::read_state() const {
  std::array<uint32_t, 4> state{};
  VKF_CHECK(step_->memory().read(results_[0], std::as_writable_bytes(std::span<uint32_t>(state))));
  return state;
}

Result<std::vector<uint32_t>> GenerationPass::read_search() const {
  std::vector<uint32_t> words(search_words(params_));
  VKF_CHECK(step_->memory().read(results_[1], std::as_writable_bytes(std::span<uint32_t>(words))));
  return words;
}

Result<uint32_t> GenerationPass::live_slots() {
  VKF_ASSIGN(const auto state, read_state());
  uint32_t live = state[1];
  if (watch_) VKF_CHECK(follow(state[2], live));
  return live;
}

Result<SlicedPlan> GenerationPass::next_slices(int steps_per_submit) {
  SlicedPlan plan;
  if (steps_left_ == 0) return plan;
  const bool first = steps_left_ == steps();
  int64_t count = steps_left_;
  if (watch_ && watch_->masks_tokens()) {
    VKF_CHECK(write_masks());
    count = 1;
  } else if (watch_) {
    count = std::min<int64_t>(count, steps_per_submit);
  }
  steps_left_ -= count;
  step_->add_units(prompt_of(first), count, plan);
  plan.before = step_->memory().only().take_writes();
  VKF_ASSIGN(plan.after, step_->memory().only().copies_of(results_));
  return plan;
}

Status GenerationPass::check_item(std::span<const uint32_t> search, const GenerationInputs& inputs,
                                  size_t item) const {
  const size_t at = SearchLayout{params_}.item(item);
  // As the caller counts: among the inputs of the call, and in the input's own text.
  const size_t input = inputs.items[item] / per_input_;
  const int64_t position = int64_t{search[at + VKF_ITEM_LENGTH]} - start_of(inputs, item);
  const std::string place = " at position " + std::to_string(position);
  switch (search[at + VKF_ITEM_STATUS]) {
    case 0:
      return {};
    case VKF_STATUS_NO_TOKEN:
      return invalid_argument(message(
          {"[generate] no token is allowed for input ", input, place,
           ": suppressed, biased and bad tokens, repeated n-grams, min_new_tokens and the grammar "
           "leave none; allow more"}));
    default:
      return Error{
          ErrorCode::kDriver,
          message({"[generate] the logits of input ", input, " became NaN", place,
                   "; the weights hold NaN or infinity, or this driver computes wrong results"})};
  }
}

Result<Generation> GenerationPass::collect(const GenerationInputs& inputs) {
  const SearchLayout layout{params_};
  VKF_ASSIGN(const std::vector<uint32_t> words, read_search());
  Generation result(params_.batch);
  for (size_t i = 0; i < params_.batch; ++i) {
    const size_t item = layout.item(i);
    const auto start = static_cast<size_t>(start_of(inputs, i));
    VKF_CHECK(check_item(words, inputs, i));
    if (step_->key().single()) {
      size_t length = words[item + VKF_ITEM_LENGTH];
      if (watch_ && watch_->ended_at(i) != 0) length = watch_->ended_at(i);
      Hypothesis found{ids_from(words, layout.tokens(i) + start, length - start)};
      found.log_probabilities.reserve(length);
      for (size_t t = static_cast<size_t>(prompt_end_); t < length; ++t) {
        found.log_probabilities.push_back(std::bit_cast<float>(words[layout.sequence(i, 0) + t]));
        found.score += static_cast<double>(found.log_probabilities.back());
      }
      result[i].push_back(std::move(found));
      continue;
    }
    for (size_t place = 0; place < words[item + VKF_ITEM_FINISHED]; ++place) {
      const size_t at = layout.finished(i, place);
      result[i].push_back(
          {ids_from(words, layout.sequence(i, place) + start, words[at + 1] - start),
           static_cast<double>(std::bit_cast<float>(words[at])),
           {}});
    }
  }
  if (watch_) VKF_CHECK(watch_->check_complete());
  return result;
}

Status GenerationPass::begin(const GenerationInputs& inputs, const GenerateOptions& options,
                             int64_t new_tokens, GenerationCounters& counters) {
  prompt_end_ = std::max(step_->shape().prompt, inputs.longest());
  new_tokens_ = new_tokens;
  per_input_ = items_per_input(options);
  steps_left_ = steps();
  counters.cache_bytes += step_->cache_bytes();
  watch_.reset();
  if (options.on_token || options.grammar) {
    watch_.emplace(options, params_, inputs.items, static_cast<uint32_t>(prompt_end_), new_tokens);
  }
  return prepare(inputs, options, new_tokens);
}

Result<Generation> GenerationPass::run(const GenerationInputs& inputs,
                                       const GenerateOptions& options, int64_t new_tokens,
                                       int steps_per_submit, GenerationCounters& counters) {
  VKF_CHECK(begin(inputs, options, new_tokens, counters));
  VKF_CHECK(decode(steps_per_submit, counters));
  return collect(inputs);
}

}  // namespace vkformer
