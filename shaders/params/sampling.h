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

// token_sample works in stages, each of which goes over all tokens once and is a dispatch. The
// parts of a row (VKF_VOCAB_PART) leave what they find in the buffer `draws`. The workgroups of the
// next stage put it together. A row whose settings do not ask for a stage passes it over.
#define VKF_STAGE_SUMS 0u       // the softmax
#define VKF_STAGE_TOP_K 1u      // four digits of the least key that top-k keeps
#define VKF_STAGE_TOP_P 5u      // the same for top-p
#define VKF_STAGE_TIES 9u       // how many tokens have just that key
#define VKF_STAGE_LAST_TIE 10u  // the last of them that top-p keeps
#define VKF_STAGE_LEFT 11u      // the mass that is left
#define VKF_STAGE_SURPRISE 12u  // its entropy
#define VKF_STAGE_TYPICAL 13u   // four digits of the least key that typical sampling keeps
#define VKF_STAGE_MASS 17u      // the mass of what all settings leave
#define VKF_STAGE_DRAW 18u      // the token
#define VKF_SAMPLE_STAGES 19u

// What a stage does with the tokens, so that a kernel holds no other's code.
#define VKF_SAMPLE_SUMS 0u    // their softmax
#define VKF_SAMPLE_DIGIT 1u   // a histogram over a digit of their keys
#define VKF_SAMPLE_COUNT 2u   // their number, or their mass
#define VKF_SAMPLE_FIND 3u    // the token at a place of what was counted
#define VKF_SAMPLE_WEIGHT 4u  // a sum of floats
#define VKF_SAMPLE_GIVE 5u    // every token's score, where it is left
#define VKF_SAMPLE_NONE 6u

// A row's words of `draws`. These are what the softmax gave, two words that each stage found, the
// row's settings, three histograms that take turns, and VKF_DRAW_PART_WORDS for each part.
#define VKF_DRAW_SUMS 6u
#define VKF_DRAW_SETTINGS (VKF_DRAW_SUMS + 2u * VKF_SAMPLE_STAGES)
#define VKF_DRAW_KNOWN (VKF_DRAW_SETTINGS + VKF_CHOICE_WORDS)
#define VKF_DRAW_DIGITS 256u
#define VKF_DRAW_PARTS (VKF_DRAW_KNOWN + 3u * VKF_DRAW_DIGITS)
#define VKF_DRAW_PART_WORDS 8u

// Push constants of token_scores.
struct ScoresParams {
  SearchParams search;
  uint_t normalize;  // 1: scores start from log-probabilities instead of logits (beams)
};

// Push constants of token_sample.
struct SampleParams {
  SearchParams search;
  uint_t stage;   // VKF_STAGE_*
  uint_t before;  // the stage before it
  uint_t after;   // the stage after it; VKF_SAMPLE_STAGES: none
};
#ifdef __cplusplus
static_assert(sizeof(ChoiceRow) == 4 * VKF_CHOICE_WORDS);
static_assert(sizeof(ScoresParams) == 28);
static_assert(sizeof(SampleParams) == 36);
#endif

// Specialization constants (constants.h).
#define VKF_TOKEN_SAMPLE_CONSTANTS(constant)                          \
  constant(0, kLocalSize, local_size, 64)                             \
      constant(1, kDoes, does, 0)     /* VKF_SAMPLE_* of the stage */ \
      constant(2, kBefore, before, 6) /* and of the stage before it */
VKF_CONSTANTS_STRUCT(TokenSampleConstants, VKF_TOKEN_SAMPLE_CONSTANTS)
#endif
