// Choosing tokens by chance: what token_scores and token_sample share. Both read one storage buffer
// of 32-bit words, `choice`, for R rows and W = ceil(V/32):
//   rows      (R, VKF_CHOICE_WORDS)  a row's settings, struct ChoiceRow
//   suppress  (2, W)                 tokens never chosen, tokens not chosen first
//   allowed   (R, W)                 tokens that a row may choose now, where its `masked` is set
//   rules     lists of rules on tokens, one for each row or shared; a list has, in words:
//             G, then (G, 3): a token, where its first rule begins (words from the list's start)
//             and how many it has, by ascending token; then the rules: f32 added to the token's
//             score, n, and the n tokens that must come right before it
#ifndef VKFORMER_PARAMS_SAMPLING_H
#define VKFORMER_PARAMS_SAMPLING_H
#include "constants.h"
#include "search.h"

#define VKF_CHOICE_WORDS 16u
#define VKF_MAX_NO_REPEAT 32u

// A row's settings; every row has its own, so that requests of any settings run together.
struct ChoiceRow {
  float_t temperature;  // divides the scores; 0: the best token
  float_t top_p;        // share of the likeliest tokens' mass that is kept; 1: all
  float_t min_p;        // least probability, as a share of the likeliest token's; 0: any
  float_t typical_p;    // mass kept of the tokens nearest to the entropy; 1: all
  uint_t top_k;         // likeliest tokens kept, and those that tie with the last; 0: all
  uint_t seed_low;
  uint_t seed_high;
  uint_t stream;       // which of a prompt's sequences
  float_t repetition;  // divides positive scores of tokens seen, multiplies others; 1: off
  float_t presence;    // subtracted once from tokens that were generated
  float_t frequency;   // subtracted for every time a token was generated
  uint_t no_repeat;    // n: no n tokens come twice in the same order; 0: off
  uint_t masked;       // 1: only tokens of `allowed`
  uint_t rules;        // words from the buffer's start to the row's list; 0: none
  uint_t next;         // which of the row's generated tokens is chosen, from 1; 0: settings tell
  uint_t unused;
};

// Push constants of token_scores and token_sample.
struct SampleParams {
  SearchParams search;
  uint_t normalise;  // 1: scores start from log-probabilities instead of logits (beams)
};
#ifdef __cplusplus
static_assert(sizeof(ChoiceRow) == 4 * VKF_CHOICE_WORDS);
static_assert(sizeof(SampleParams) == 28);
#endif

// Specialization constants (constants.h).
#define VKF_TOKEN_SAMPLE_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64) \
  constant(1, kAll, all, 0)  /* 1: gives what every token is worth, and draws none */
VKF_CONSTANTS_STRUCT(TokenSampleConstants, VKF_TOKEN_SAMPLE_CONSTANTS)
#endif
