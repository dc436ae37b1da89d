#include "generate/slot_pass.h"

#include <algorithm>
#include <bit>

#include "base/message.h"
#include "generate/token_choice.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

// The highest position of the slots that are fed.
uint32_t last_position(std::span<const FedToken> fed) {
  uint32_t position = 0;
  for (const FedToken& f : fed) position = std::max(position, f.position);
  return position;
}

}  // namespace

SlotPass::SlotPass(std::unique_ptr<DecodeStep> step)
    : step_(std::move(step)), params_(step_->params()) {
  rules_.resize(static_cast<size_t>(shape().slots));
}

Result<std::unique_ptr<SlotPass>> SlotPass::create(std::shared_ptr<const LoadedModel> model,
                                                   const StepShape& shape) {
  GenerationKey key{.shape = shape, .choice = GenerationKey::Choice::kSlots};
  key.rule_words = kSlotRuleWords * static_cast<uint32_t>(shape.slots);
  VKF_ASSIGN(std::unique_ptr<DecodeStep> step,
             DecodeStep::create(std::move(model), key, DecodeStep::Prompt::kNo));
  std::unique_ptr<SlotPass> pass(new SlotPass(std::move(step)));
  VKF_CHECK(pass->write_constants());
  return pass;
}

// Settings that all slots share: none, because every slot's own say more.
Status SlotPass::write_constants() {
  SearchSettings s{};
  s.max_length = VKF_NO_TOKEN;
  s.forced_first = s.forced_last = VKF_NO_TOKEN;
  const auto words = std::bit_cast<std::array<uint32_t, sizeof s / 4>>(s);
  return memory().write("settings", 0, words);
}

Status SlotPass::write_choice_words(const std::string& name, uint64_t word,
                                    std::span<const uint32_t> values) {
  return memory().write(name, word, values, PassMemory::InFlight::kDoesNotRead);
}

// The settings of all slots, followed by the masks where there are any, in one piece.
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
  const uint32_t position = last_position(fed.first(choices.size()));
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
  if (fed.empty() || fed.size() > static_cast<size_t>(shape().slots) ||
      choices.size() > fed.size()) {
    return internal_error(message({"[slots] ", fed.size(), " tokens with ", choices.size(),
                                   " choices do not fit into ", shape().slots, " slots"}));
  }
  std::vector<ChosenToken> chosen(choices.size());
  const TensorPart results[] = {{"chosen", 0, 8 * chosen.size()}};
  const auto count = static_cast<uint32_t>(fed.size());
  VKF_CHECK(step_->write_slots(fed, count, last_position(fed)));
  VKF_CHECK(step_->write_groups(count, static_cast<uint32_t>(choices.size())));
  constexpr auto kNoPrompt = DecodeStep::Prompt::kNo;
  RecordingPart last = RecordingPart::kAll;
  if (complete) {
    VKF_CHECK(step_->submit(kNoPrompt, RecordingPart::kBeforeCut, 1, {}));
    VKF_CHECK(complete(choices));
    last = RecordingPart::kAfterCut;
  }
  VKF_CHECK(write_choices(fed, choices));
  VKF_CHECK(step_->submit(kNoPrompt, last, 1, results));
  // A step that only reads a prompt leaves nothing to wait for.
  if (chosen.empty()) return chosen;
  VKF_CHECK(memory().wait());
  std::vector<uint32_t> words(2 * chosen.size());
  VKF_CHECK(memory().read(results[0], std::as_writable_bytes(std::span<uint32_t>(words))));
  for (size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = {.token = words[2 * i + 1], .log_probability = std::bit_cast<float>(words[2 * i])};
  }
  return chosen;
}

}  // namespace vkformer
