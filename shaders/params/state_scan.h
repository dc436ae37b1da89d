// Push constants of state_scan and of parent_lines.
#ifndef VKFORMER_PARAMS_STATE_SCAN_H
#define VKFORMER_PARAMS_STATE_SCAN_H
#include "constants.h"
#include "types.h"

// What parent_lines gives a slot. The low 12 bits are the slot with the next token of its row. The
// bits above them are the line of the state that it goes on from.
#define VKF_NEXT_SLOT(parent) ((parent)&0xfffu)
#define VKF_PARENT_LINE(parent) ((parent) >> 12u)
#define VKF_NO_SLOT 0xfffu
#define VKF_LINE_FRESH 0xfffffu      // no line: it begins a row
#define VKF_LINE_CONTINUED 0xffffeu  // no line: it is the next of another slot
#define VKF_MOST_LINES 0xffff0u

struct ParentLinesParams {
  uint_t positions;  // C, positions that the ancestry has room for
  uint_t lines;      // L, lines of a row's states
  uint_t beams;      // rows of an item
  uint_t runs;       // 1: slots may be of one row
};

struct StateScanParams {
  uint_t tokens;    // T
  uint_t first;     // token that this launch begins with
  uint_t count;     // tokens of this launch
  uint_t width;     // W, elements of a row of X
  uint_t q_offset;  // columns of X: of the first key head's q and k, the first head's v and rates
  uint_t k_offset;
  uint_t v_offset;
  uint_t a_offset;
  uint_t b_offset;     // where kDelta
  uint_t heads;        // H
  uint_t sharing;      // heads that have one head of q and k
  uint_t value_width;  // Ev
  uint_t lines;        // L of States (R, L, H, E, Ev)
  uint_t beams;        // rows of an item
  float_t q_scale;
  float_t norm_epsilon;  // added to the squared length of q and k, where kNormed
  float_t least_rate;    // limits of a rate after softplus, unless kDelta
  float_t most_rate;
};
#ifdef __cplusplus
static_assert(sizeof(ParentLinesParams) == 16);
static_assert(sizeof(StateScanParams) == 72);
#endif

// Specialization constants (constants.h).
#define VKF_STATE_SCAN_CONSTANTS(constant)                                                      \
  constant(0, kLocalSize, local_size, 64) /* columns kSplit */                                  \
      constant(1, kSplit, split, 1)       /* invocations that share a column, a power of two */ \
      constant(2, kWidth, width, 64)      /* E */                                               \
      constant(3, kTokens, tokens, 8)     /* tokens staged at once */                           \
      constant(4, kDelta, delta, 0)       /* 1: the delta rule */                               \
      constant(5, kNormed, normed, 0)     /* 1: q and k get length 1 */                         \
      constant(6, kStore, store, 0)       /* 1: States is bound */
VKF_CONSTANTS_STRUCT(StateScanConstants, VKF_STATE_SCAN_CONSTANTS)
#endif
