// TextOptions: settings by which tasks write texts, or zero-shot labels them.
//
// Threading: plain values. Lifetime: owns what it holds, and shares the grammar. Callbacks run on
// the thread that called the task; the text of a piece is valid during the callback only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vkformer/generation.h"
#include "vkformer/grammar.h"
#include "vkformer/tokenizer.h"

namespace vkformer {

// A piece of a text that is being written: whole characters of UTF-8, that nothing takes back.
struct TextPiece {
  size_t input = 0;     // which text of the call it answers
  size_t sequence = 0;  // of that text's
  std::string_view text;
};
using OnText = std::function<TokenVerdict(const TextPiece& piece)>;

// Added to the score of the last token of a text wherever its others come right before it.
struct TextBias {
  std::string text;
  double bias = 0.0;
};

// Settings of a generation; absent ones are the model's own (generation_config.json).
struct TextOptions {
  // Stands before every text, such as "translate English to German: ".
  std::string prefix;
  // One of the model's task_specific_params (T5: "summarization"): defaults of prefix and settings.
  std::string task;
  // Languages of translation models, by token or name in it: "de", "__de__", "de_DE", "deu_Latn".
  // The source's replaces the language token that the tokenizer adds; the target's is forced first.
  std::string source_language;
  std::string target_language;
  // kExclude: the texts have their special tokens already, as chat templates write them.
  SpecialTokens special_tokens = SpecialTokens::kInclude;
  std::optional<int> beams;  // 1 to 16
  std::optional<int> max_new_tokens;
  std::optional<int> min_new_tokens;
  std::optional<int> return_sequences;
  std::optional<double> length_penalty;
  std::optional<EarlyStopping> early_stopping;
  std::optional<int> beam_groups;
  std::optional<double> diversity;
  std::optional<int> context, sinks;  // as GenerateOptions'

  // Absent: sampled where one of the settings below says so, or the model does.
  std::optional<TokenChoice> choice;
  // As SamplingOptions'. If one of them is given, but the seed and a temperature of 0, tokens are
  // sampled. Where neither the caller nor the model says how many of the likeliest are left, these
  // are 50, as in transformers.
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p, min_p, typical_p;
  std::optional<uint64_t> seed;
  // As PenaltyOptions'.
  std::optional<double> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int> no_repeat_ngram;
  // Never written, with or without a space before them.
  std::vector<std::string> bad_words;
  std::vector<TextBias> biases;
  // As GenerateOptions'.
  std::optional<int> contrastive_tokens;
  std::optional<double> contrast;
  std::vector<AdapterScale> adapters;

  // A text ends before the first of them that would be complete in it.
  std::vector<std::string> stop;
  // Texts keep to it.
  std::optional<Grammar> grammar;
  // Gets texts while they are written. Not with beams.
  OnText on_text;
};

// Classes that are named when texts are classified, by a model of natural language inference, or
// pictures, by one that compares them with texts.
struct ZeroShotOptions {
  // A sentence that a text may entail or that may say what a picture shows; "{}" is where each
  // label is put. "": "This example is {}.", of pictures "This is a photo of {}.".
  std::string hypothesis;
  // True: each label has its own probability, of entailment against contradiction, as one alone
  // always has. False: those of all labels sum to 1. For pictures the model decides: those of a
  // CLIP sum to 1, each of a SigLIP is its own.
  bool multi_label = false;
};

// Entities whose labels are named when texts are read, by a GLiNER.
struct EntityOptions {
  // An entity's probability is above it; 0 to 1.
  double threshold = 0.5;
  // True: entities may lie inside others. False: no two share a word.
  bool nested = false;
  // True: one stretch of a text may have several labels.
  bool multi_label = false;
};

}  // namespace vkformer
