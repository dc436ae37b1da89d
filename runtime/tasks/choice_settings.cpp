#include "tasks/choice_settings.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

Result<std::vector<int64_t>> tokens_of(const TaskModel& task, const char* name,
                                       const std::string& text) {
  EncodeOptions plain;
  plain.special_tokens = SpecialTokens::kExclude;
  const std::string_view view = text;
  auto encoding = task.tokenizer->encode({&view, 1}, plain);
  if (!encoding) return encoding.error().with_context(message({"[", name, "]"}));
  if (encoding->ids.empty()) {
    return invalid_argument(
        message({"[", name, "] '", text, "' has no tokens; give a text that is not empty"}));
  }
  return std::vector<int64_t>(encoding->ids.begin(), encoding->ids.end());
}

Status take_words(const TaskModel& task, const TextOptions& options, PenaltyOptions& penalties) {
  for (const std::string& word : options.bad_words) {
    VKF_ASSIGN(const std::vector<int64_t> alone, tokens_of(task, "bad_words", word));
    VKF_ASSIGN(const std::vector<int64_t> behind, tokens_of(task, "bad_words", " " + word));
    penalties.bad_words.push_back(alone);
    if (behind != alone) penalties.bad_words.push_back(behind);
  }
  for (const TextBias& bias : options.biases) {
    VKF_ASSIGN(std::vector<int64_t> tokens, tokens_of(task, "logit_bias", bias.text));
    penalties.biases.push_back({std::move(tokens), bias.bias});
  }
  return {};
}

// What the model says of one way of searching gives way where the caller chose another.
void give_way(const TextOptions& o, GenerateOptions& settings) {
  const bool drawn = settings.choice == TokenChoice::kSampled;
  if (!o.contrastive_tokens && (drawn || settings.beams > 1)) settings.contrastive_tokens = 0;
  if (!o.beam_groups && (drawn || settings.beams % settings.beam_groups != 0))
    settings.beam_groups = 1;
  if (!o.diversity && settings.beam_groups == 1) settings.diversity = 0;
  const bool one_row = drawn && settings.beams == 1;
  if (!o.return_sequences && !one_row)
    settings.return_sequences = std::min(settings.return_sequences, settings.beams);
}

}  // namespace

Status take_choice(const TaskModel& task, const TextOptions& o, GenerateOptions& settings) {
  SamplingOptions& s = settings.sampling;
  const bool given = o.temperature || o.top_k || o.top_p || o.min_p || o.typical_p;
  if (given) settings.choice = TokenChoice::kSampled;
  take(s.temperature, o.temperature);
  take(s.top_k, o.top_k);
  take(s.top_p, o.top_p);
  take(s.min_p, o.min_p);
  take(s.typical_p, o.typical_p);
  take(s.seed, o.seed);
  if (o.temperature == 0.0) settings.choice = TokenChoice::kBest;
  take(settings.choice, o.choice);
  PenaltyOptions& p = settings.penalties;
  take(p.repetition, o.repetition_penalty);
  take(p.presence, o.presence_penalty);
  take(p.frequency, o.frequency_penalty);
  take(p.no_repeat_ngram, o.no_repeat_ngram);
  take(settings.beam_groups, o.beam_groups);
  take(settings.diversity, o.diversity);
  take(settings.contrastive_tokens, o.contrastive_tokens);
  take(settings.contrast, o.contrast);
  settings.adapters = o.adapters;
  give_way(o, settings);
  return take_words(task, o, p);
}

Result<std::shared_ptr<GrammarConstraint>> grammar_constraint(TaskModel& task,
                                                              const TextOptions& options,
                                                              const GenerateOptions& settings) {
  if (!options.grammar) return std::shared_ptr<GrammarConstraint>();
  if (!task.grammar_vocabulary || task.grammar_ends != settings.eos) {
    std::vector<std::string> bytes;
    for (TokenId id = 0; id < task.facts().target_vocab; ++id) {
      VKF_ASSIGN(std::string token, task.tokenizer->token_bytes(id));
      bytes.push_back(std::move(token));
    }
    VKF_ASSIGN(GrammarVocabulary made, GrammarVocabulary::from_bytes(bytes, settings.eos));
    task.grammar_vocabulary = std::move(made);
    task.grammar_ends = settings.eos;
  }
  VKF_ASSIGN(GrammarConstraint made,
             GrammarConstraint::create(*options.grammar, *task.grammar_vocabulary));
  return std::make_shared<GrammarConstraint>(std::move(made));
}

}  // namespace vkformer
