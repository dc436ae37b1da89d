// Generation: settings of a generation, what it gives, and how to follow it token by token.
//
// Threading: plain values; a GrammarConstraint among the settings belongs to one call at a time.
// Lifetime: settings own what they hold, and share the grammar; what a callback captures must stay
// valid until the generation has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/export.h"
#include "vkformer/token.h"

namespace vkformer {

class GrammarConstraint;

// How the next token is chosen of those that there are.
enum class TokenChoice : uint8_t {
  kBest,     // the likeliest one; with beams, the likeliest texts
  kSampled,  // at random, by its probability
};

// What is left of the likeliest tokens to draw from, one after the other, and the random numbers. A
// text depends on its seed and on nothing else that runs with it.
struct SamplingOptions {
  double temperature = 1.0;  // divides the scores; 0: the best token
  int top_k = 0;  // this many of the likeliest, and what ties with the last of them; 0: all
  // The fewest of the likeliest whose probabilities reach this sum (Holtzman et al. 2020); 1: all.
  double top_p = 1.0;
  double min_p = 0.0;  // those at least so likely as a share of the likeliest (Nguyen et al. 2024)
  // The fewest whose surprise is nearest to the entropy and whose probabilities reach this sum
  // (Meister et al. 2023); 1: all.
  double typical_p = 1.0;
  uint64_t seed = 0;
};

// Adds a bias to the score of the last token wherever the others come right before it; -infinity
// forbids it.
struct TokenBias {
  std::vector<TokenId> tokens;  // at least one
  double bias = 0.0;
};

// What tokens that came before cost, and tokens that are wanted more or less than the model says.
struct PenaltyOptions {
  double repetition = 1.0;  // divides positive scores of tokens seen, multiplies negative ones
  double presence = 0.0;    // subtracted from the scores of tokens that were generated
  double frequency = 0.0;   // subtracted for every time a token was generated
  int no_repeat_ngram = 0;  // this many tokens never come twice in one order; at most 32, 0: off
  std::vector<TokenBias> biases;
  std::vector<std::vector<TokenId>> bad_words;  // tokens that never come in that order
};

// A token that a sequence has gained.
struct NewToken {
  size_t input = 0;
  size_t sequence = 0;  // of that input's
  TokenId id = 0;
  double log_probability = 0;  // by the model's logits
};

// What to do after a new token.
enum class TokenVerdict : uint8_t {
  kGoOn,
  kEnd,     // it is its sequence's last one; what was computed beyond it is dropped
  kCancel,  // the generation ends with ErrorCode::kCancelled
};

// Called on the thread that generates, between two submits, for the tokens of each sequence in
// order. In a GenerationBatch that is the thread which takes the step, and `input` the request's
// number.
using OnToken = std::function<TokenVerdict(const NewToken& token)>;

// How much of an adapter a request has (ModelOptions::request_adapters).
struct AdapterScale {
  std::string adapter;  // its name
  float scale = 1.0f;   // multiplies what it adds; finite
};

// Settings of Hugging Face's generate(). Absent values come from the model's own
// generation_config.json; start from Session::generation_defaults().
struct GenerateOptions {
  int beams = 1;  // 1 to 16
  // 0: the model's default, else as much as its positions allow, at most 1,024.
  int max_new_tokens = 0;
  int min_new_tokens = 0;       // before which no end token may come
  double length_penalty = 1.0;  // exponent of the length a beam's score is divided by
  EarlyStopping early_stopping = EarlyStopping::kFalse;
  std::vector<TokenId> eos;  // end tokens, at most 8; empty: always max_new_tokens
  TokenId pad = 0;
  TokenId decoder_start = 0;
  // What the decoder of an encoder-decoder starts with instead of decoder_start: a language, a
  // task.
  std::vector<TokenId> decoder_prompt;
  TokenId forced_bos = -1;              // token forced first; -1: none
  TokenId forced_eos = -1;              // token forced at the last possible position; -1: none
  std::vector<TokenId> suppress;        // never chosen
  std::vector<TokenId> begin_suppress;  // not chosen first
  // Sequences per input: the best of at most `beams`, or this many that are sampled.
  int return_sequences = 1;
  TokenChoice choice = TokenChoice::kBest;
  SamplingOptions sampling;  // counts where tokens are sampled
  PenaltyOptions penalties;
  // Of a model that is one decoder: keys that its cache keeps of a row, the query's own included;
  // absent: all. Beyond it the first `sinks` stay and the oldest of the others give way, and
  // positions count within the cache (Xiao et al. 2023, "Efficient Streaming Language Models with
  // Attention Sinks"). Neither prompts nor max_new_tokens are then bound to the model's positions,
  // unless it learned a table of them.
  std::optional<int> context;
  int sinks = 4;  // keys, from 0 to context - 1
  // Groups that the beams are divided into, each with its own search. A token costs `diversity` for
  // every beam of the groups before that has chosen it at the same position (Vijayakumar et al.
  // 2018, "Diverse Beam Search").
  int beam_groups = 1;
  double diversity = 0.0;
  // Contrastive search (Su et al. 2022, "A Contrastive Framework for Neural Text Generation"): of
  // this many likeliest tokens, the one with the largest (1 - contrast) p - contrast s. Here s is
  // the largest cosine of its hidden state with one before it. 0: off.
  int contrastive_tokens = 0;
  double contrast = 0.6;
  // Without beams: what to do after every token. Tokens come SessionOptions::steps_per_submit at a
  // time.
  OnToken on_token;
  // Without beams: texts keep to it, and are complete. Its vocabulary's end tokens are `eos`. Each
  // token is then its own submit.
  std::shared_ptr<GrammarConstraint> grammar;
  // Adapters of this request, of those that the model was loaded with for requests; they add up.
  // Empty: the model's own weights. Sequences of one batch may differ in them.
  std::vector<AdapterScale> adapters;
};

// One generated sequence.
struct Hypothesis {
  // Prompt (of an encoder-decoder the decoder's start token), then what was generated; ends with
  // its end token, if one came.
  std::vector<TokenId> ids;
  // Sum of log-probabilities; with beams divided by length^length_penalty, as generate() does.
  double score = 0;
  // Of each generated token by the model's logits, whatever it was chosen by; empty with beams.
  std::vector<float> log_probabilities;
};

// Per input its sequences: the best hypotheses, best first, or those that were sampled.
using Generation = std::vector<std::vector<Hypothesis>>;

// Counters of the last generate(), for tests and tuning.
struct GenerationCounters {
  int64_t steps = 0;       // decoding steps that had live rows
  int64_t submits = 0;     // queue submissions
  int64_t recordings = 0;  // recordings made; 0 when all were reused
  // Bytes of the caches of keys and values that a decoder writes to in its steps.
  int64_t cache_bytes = 0;
  // Tokens of prompts whose keys an earlier call left (SessionOptions::prefix_reuse).
  int64_t reused_tokens = 0;
  // Parts of prompts that a group has read (DeviceGroupOptions::prompt_part), and the rounds that
  // they took. In a round all members with layers are at work, each on another part.
  int64_t prompt_parts = 0;
  int64_t prompt_rounds = 0;
  // Workgroups launched by each step, in order; recorded with steps_per_submit = 1 only.
  std::vector<int64_t> step_workgroups;
};

}  // namespace vkformer
