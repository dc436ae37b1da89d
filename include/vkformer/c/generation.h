// c/generation.h: texts that a model goes on with.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_GENERATION_H
#define VKFORMER_C_GENERATION_H

#include "vkformer/c/grammar.h"
#include "vkformer/c/session.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vkf_generation vkf_generation;

// Bits of vkf_generate_options::set and vkf_text_options::set: the fields that count.
enum {
  VKF_SET_BEAMS = 1,
  VKF_SET_MAX_NEW_TOKENS = 2,
  VKF_SET_MIN_NEW_TOKENS = 4,
  VKF_SET_RETURN_SEQUENCES = 8,
  VKF_SET_LENGTH_PENALTY = 16,
  VKF_SET_EARLY_STOPPING = 32,
  VKF_SET_EOS = 64,
  VKF_SET_PAD = 128,
  VKF_SET_DECODER_START = 256,
  VKF_SET_DECODER_PROMPT = 512,
  VKF_SET_FORCED_BOS = 1024,
  VKF_SET_FORCED_EOS = 2048,
  VKF_SET_SUPPRESS = 4096,
  VKF_SET_BEGIN_SUPPRESS = 8192,
  VKF_SET_CONTEXT = 16384,
  VKF_SET_SINKS = 32768,
  VKF_SET_BIASES = 65536,
  VKF_SET_BAD_WORDS = 131072
};
// Bits of vkf_choice_options::set.
enum {
  VKF_CHOICE_SAMPLE = 1,
  VKF_CHOICE_TEMPERATURE = 2,
  VKF_CHOICE_TOP_K = 4,
  VKF_CHOICE_TOP_P = 8,
  VKF_CHOICE_MIN_P = 16,
  VKF_CHOICE_TYPICAL_P = 32,
  VKF_CHOICE_SEED = 64,
  VKF_CHOICE_REPETITION = 128,
  VKF_CHOICE_PRESENCE = 256,
  VKF_CHOICE_FREQUENCY = 512,
  VKF_CHOICE_NO_REPEAT = 1024,
  VKF_CHOICE_BEAM_GROUPS = 2048,
  VKF_CHOICE_DIVERSITY = 4096,
  VKF_CHOICE_CONTRASTIVE = 8192,
  VKF_CHOICE_CONTRAST = 16384
};
// How tokens are chosen; what has no bit in `set` is as the model says.
typedef struct vkf_choice_options {
  uint32_t struct_size;
  uint32_t set;
  int32_t sample;              // 1: tokens are sampled; 0: the best, or with beams the best texts
  int32_t top_k;               // this many of the likeliest; 0: all
  double temperature;          // divides the scores; 0: the best token
  double top_p;                // the fewest of the likeliest whose probabilities reach this sum
  double min_p;                // least probability, as a share of the likeliest token's
  double typical_p;            // those of typical surprise whose probabilities reach this sum
  uint64_t seed;               // same seed, same text
  double repetition_penalty;   // divides scores of tokens seen; 1: off
  double presence_penalty;     // subtracted from scores of tokens generated
  double frequency_penalty;    // subtracted for every time a token was generated
  int32_t no_repeat_ngram;     // this many tokens never come twice in one order; 0: off
  int32_t beam_groups;         // groups of beams that search apart
  double diversity;            // what a token costs for every beam of other groups that chose it
  double contrast;             // of contrastive search: its weight of likeness to what was before
  int32_t contrastive_tokens;  // contrastive search among this many likeliest tokens; 0: off
  int32_t reserved;
} vkf_choice_options;
// Added to the score of the last token wherever the others come right before it. Never changes.
typedef struct vkf_token_bias {
  vkf_ids tokens;
  double bias;  // -infinity forbids it
} vkf_token_bias;
// What to do after a token or a piece of text.
typedef int32_t vkf_verdict;
enum {
  VKF_GO_ON = 0,
  VKF_END_TEXT = 1,          // the text ends here
  VKF_CANCEL_GENERATION = 2  // the call fails with VKF_CANCELLED
};
// Gets the tokens of each sequence in order, between submits.
typedef vkf_verdict (*vkf_on_token)(void* user, size_t input, size_t sequence, int64_t id,
                                    double log_probability);
// Settings of a generation; those without their bit in `set` are the model's own.
typedef struct vkf_generate_options {
  uint32_t struct_size;
  uint32_t set;
  int32_t beams;  // 1 is greedy
  int32_t max_new_tokens;
  int32_t min_new_tokens;      // before which no end token may come
  int32_t return_sequences;    // best hypotheses per input, at most `beams`
  double length_penalty;       // exponent of the length a beam's score is divided by
  const char* early_stopping;  // "false", "true" or "never"
  vkf_ids eos;                 // end tokens, at most 8; none: always max_new_tokens
  int64_t pad;
  int64_t decoder_start;
  vkf_ids decoder_prompt;  // what the decoder starts with instead: a language, a task
  int64_t forced_bos;      // token forced first; -1: none
  int64_t forced_eos;      // token forced at the last possible position; -1: none
  vkf_ids suppress;        // never chosen
  vkf_ids begin_suppress;  // not chosen first
  // Of a model that is one decoder: keys that its cache keeps of a row; unset: all. Beyond it the
  // first `sinks` stay and the oldest of the others give way.
  int32_t context;
  int32_t sinks;
  const vkf_choice_options* choice;  // null: as the model says
  const vkf_token_bias* biases;
  size_t bias_count;
  const vkf_ids* bad_words;  // tokens that never come in that order
  size_t bad_word_count;
  vkf_on_token on_token;  // null: nobody; not with beams
  void* on_token_user;
  vkf_constraint* constraint;  // null: none; not with beams. Its call's alone meanwhile.
  // Names of vkf_model_options::request_adapters, and what multiplies each; none: the model's own
  // weights. Sequences of one batch may differ in them.
  const char* const* adapters;  // adapter_count of them
  const float* adapter_scales;  // likewise, or null: 1
  size_t adapter_count;
} vkf_generate_options;

typedef struct vkf_sequence {
  uint32_t struct_size;
  uint32_t reserved;
  vkf_ids ids;   // prompt or start token, what was generated, the end token if one came
  double score;  // sum of log-probabilities; with beams divided by length^length_penalty
  const float* log_probabilities;  // of the tokens that were generated, by the logits
  size_t log_probability_count;    // 0 with beams
} vkf_sequence;

typedef struct vkf_generation_counters {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t steps;            // decoding steps that had live rows
  int64_t submits;          // queue submissions
  int64_t recordings;       // recordings made; 0 when all were reused
  int64_t cache_bytes;      // of keys and values that a decoder writes to in its steps
  vkf_ids step_workgroups;  // of each step, in order; with steps_per_submit = 1 only
  int64_t reused_tokens;    // of prompts, whose keys an earlier call left
} vkf_generation_counters;

// The model's own settings, with every bit set; what it points to stays until the next call on this
// session. [one]
VKFORMER_API vkf_status vkf_session_generation_defaults(vkf_session* session,
                                                        vkf_generate_options* options,
                                                        vkf_error* error);
// Generates from `count` rows of token ids: the encoder's, or the prompts of a model that is one
// decoder. [one]
VKFORMER_API vkf_status vkf_session_generate(vkf_session* session, const vkf_ids* rows,
                                             size_t count, const vkf_generate_options* options,
                                             vkf_generation** generation, vkf_error* error);
// The same from tensors: input_ids (B,S) with attention_mask (B,S) or none, pixel_values,
// input_features. [one]
VKFORMER_API vkf_status vkf_session_generate_from(vkf_session* session, const vkf_tensors* inputs,
                                                  const vkf_generate_options* options,
                                                  vkf_generation** generation, vkf_error* error);
// "log_probabilities" (T) that the model gives the tokens of a continuation after an input. [one]
VKFORMER_API vkf_status vkf_session_score(vkf_session* session, const vkf_ids* input,
                                          const vkf_ids* continuation, vkf_tensors** tensors,
                                          vkf_error* error);
// Of the last generation; what they point to stays until the next call on this session. [one]
VKFORMER_API vkf_status vkf_session_counters(vkf_session* session,
                                             vkf_generation_counters* counters, vkf_error* error);

// Inputs there were. [any]
VKFORMER_API size_t vkf_generation_inputs(const vkf_generation* generation);
// Sequences of an input; 0 beyond the last. [any]
VKFORMER_API size_t vkf_generation_count(const vkf_generation* generation, size_t input);
// One of them, best first. [any]
VKFORMER_API vkf_status vkf_generation_get(const vkf_generation* generation, size_t input,
                                           size_t index, vkf_sequence* sequence, vkf_error* error);
VKFORMER_API void vkf_generation_free(vkf_generation* generation);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_GENERATION_H
