// Push constants of rotary.
#ifndef VKFORMER_PARAMS_ROTARY_H
#define VKFORMER_PARAMS_ROTARY_H
#include "constants.h"
#include "types.h"

struct RotaryParams {
  uint_t rows;             // R
  uint_t width;            // W, elements of a row
  uint_t heads;            // heads that are turned
  uint_t head_width;       // E
  uint_t pairs;            // of columns turned in a head: half the rotary width
  uint_t table_rows;       // P, positions that the table knows
  uint_t tokens;           // T: row r stands at token r % T
  uint_t position_offset;  // tokens, added to the position
  uint_t positions_at;     // element of Positions that belongs to row 0
};

// Push constants of rotary_append; heads of queries and keys have the width E.
struct RotaryAppendParams {
  uint_t heads;        // H
  uint_t kv_heads;     // Hkv
  uint_t head_width;   // E
  uint_t pairs;        // of columns turned in a head: half the rotary width
  uint_t table_rows;   // P, positions that the table knows
  uint_t again_heads;  // queries that follow once more, turned by `again_limit` at most
  uint_t again_limit;  // tokens
  uint_t lines;        // keys that a cache row has room for
  uint_t positions;    // C, positions of a row
  uint_t sinks;        // K, first keys that stay
  uint_t value_width;  // Ev
  uint_t row_stride;   // elements of a row of X
};
#ifdef __cplusplus
static_assert(sizeof(RotaryParams) == 36);
static_assert(sizeof(RotaryAppendParams) == 48);
#endif

// Specialization constants (constants.h).
#define VKF_ROTARY_CONSTANTS(constant)                                                    \
  constant(0, kLocalSize, local_size, 64) constant(1, kHeadsPerGroup, heads_per_group, 1) \
      constant(2, kInterleaved, interleaved, 0) constant(3, kHasPositions, has_positions, 0)
VKF_CONSTANTS_STRUCT(RotaryConstants, VKF_ROTARY_CONSTANTS)

#define VKF_ROTARY_APPEND_CONSTANTS(constant)                                             \
  constant(0, kLocalSize, local_size, 64) constant(1, kHeadsPerGroup, heads_per_group, 1) \
      constant(2, kInterleaved, interleaved, 0)
VKF_CONSTANTS_STRUCT(RotaryAppendConstants, VKF_ROTARY_APPEND_CONSTANTS)
#endif
