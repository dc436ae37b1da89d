// Search over tokens: what token_candidates, greedy_select, beam_select and step_advance share.
//
// One storage buffer `search` holds all that a search remembers, in 32-bit words. Letters: B items,
// n beams, R = B * n rows, C the capacity in positions:
//   tokens     (R, C)      token ids; positions 0 ... P-1 are the prompt
//   scores     (R)         f32, sum of log-probabilities of a running beam
//   items      (B, 4)      see VKF_ITEM_*
//   finished   (B, n, 2)   f32 score (already divided by length^penalty), length in positions
//   sequences  (B, n, C)   token ids of the finished hypotheses; with one beam f32, the
//                          log-probabilities of the tokens
#ifndef VKFORMER_PARAMS_SEARCH_H
#define VKFORMER_PARAMS_SEARCH_H
#include "constants.h"
#include "types.h"

#define VKF_MAX_BEAMS 16
#define VKF_MAX_CANDIDATES 64
#define VKF_MAX_EOS 8
#define VKF_NO_TOKEN 0xffffffffu
#define VKF_VOCAB_PART 4096u  // tokens of a row that one workgroup takes, a multiple of 128
#define VKF_VOCAB_PARTS(vocab) (((vocab)-1u) / VKF_VOCAB_PART + 1u)  // of a row of any tokens

#define VKF_ITEM_ACTIVE 0u    // 1 while better hypotheses may still be found
#define VKF_ITEM_FINISHED 1u  // finished hypotheses kept, at most n
#define VKF_ITEM_LENGTH 2u    // positions when the item ended; 0 while it runs
#define VKF_ITEM_STATUS 3u    // VKF_STATUS_*, or 0

#define VKF_STATUS_NAN 1u       // a NaN logit ended it
#define VKF_STATUS_NO_TOKEN 2u  // no token was allowed

#define VKF_EARLY_STOPPING_NO 0u
#define VKF_EARLY_STOPPING_YES 1u
#define VKF_EARLY_STOPPING_NEVER 2u

// Capacities, baked into a recording (push constants).
struct SearchParams {
  uint_t batch;       // B
  uint_t beams;       // n
  uint_t capacity;    // C, positions
  uint_t vocab;       // V
  uint_t candidates;  // K per row and per item: max(2, 1 + number of end tokens) * n; 1 when greedy
  uint_t arg_count;   // indirect dispatches, for step_advance
};

// What a caller may change from run to run (uniform block).
struct SearchSettings {
  uint_t prompt_length;   // P, positions that are not generated
  uint_t max_length;      // positions, prompt included; at most C
  uint_t min_length;      // positions before which no end token may come
  uint_t forced_first;    // token forced at the first generated position, or VKF_NO_TOKEN
  uint_t forced_last;     // token forced at the last possible position, or VKF_NO_TOKEN
  uint_t early_stopping;  // VKF_EARLY_STOPPING_*
  float_t length_penalty;
  uint_t eos_count;
  uvec4_t eos[VKF_MAX_EOS / 4];  // end token e = eos[e / 4][e % 4]
  float_t diversity;  // of beam groups: what a token costs for each beam before that has chosen it
  uint_t unused0;
  uint_t unused1;
  uint_t unused2;
};
#ifdef __cplusplus
static_assert(sizeof(SearchParams) == 24);
static_assert(sizeof(SearchSettings) == 80);
#endif

// What token_candidates does with a row. It takes all of it, or, where the row has more tokens than
// one part, the best of each part, then the best of those.
#define VKF_BEST_OF_ROW 0u
#define VKF_BEST_OF_PART 1u
#define VKF_BEST_OF_PARTS 2u

// Specialization constants (constants.h).
#define VKF_TOKEN_CANDIDATES_CONSTANTS(constant)                                           \
  constant(0, kLocalSize, local_size, 64)                                                  \
      constant(1, kNormalize, normalize, 1) /* 0: log-probabilities come in */             \
      constant(2, kSampled, drawn, 0)       /* 1: the K are sampled without replacement */ \
      constant(3, kBestOf, best_of, 0)      /* VKF_BEST_OF_* */
VKF_CONSTANTS_STRUCT(TokenCandidatesConstants, VKF_TOKEN_CANDIDATES_CONSTANTS)

#define VKF_BEAM_SELECT_CONSTANTS(constant)                                     \
  constant(0, kLocalSize, local_size, 32)                                       \
      constant(1, kPicks, picks, 4)   /* candidates looked at, of n K */        \
      constant(2, kGroups, groups, 1) /* items that are groups of one search */ \
      constant(3, kGroup, group, 0)   /* whose turn it is */                    \
      constant(4, kSampled, drawn, 0) /* 1: candidates are ranked with noise */
VKF_CONSTANTS_STRUCT(BeamSelectConstants, VKF_BEAM_SELECT_CONSTANTS)
#endif
