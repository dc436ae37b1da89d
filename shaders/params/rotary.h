// Push constants of rotary.
#ifndef VKFORMER_PARAMS_ROTARY_H
#define VKFORMER_PARAMS_ROTARY_H
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
  uint_t again_heads;      // heads that follow the row once more, turned by `again_limit` at most
  uint_t again_limit;      // tokens
};
#ifdef __cplusplus
static_assert(sizeof(RotaryParams) == 44);
#endif
#endif
