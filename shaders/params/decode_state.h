// State of a running generation, in GPU memory so that decoding never re-records: which slots are
// live, which position is being processed. Slots are rows packed to the front. A row is a beam of a
// batch item (row = item * beams + beam) and owns a line of the key/value cache.
#ifndef VKFORMER_PARAMS_DECODE_STATE_H
#define VKFORMER_PARAMS_DECODE_STATE_H
#include "types.h"

// Read as a uniform block (16 KiB guaranteed): `uniform State { DecodeState state; uvec4
// slot_rows[VKF_SLOT_QUADS]; };` with row of slot s = slot_rows[s / 4][s % 4]. Written as a storage
// block of the same layout.
#define VKF_STATE_WORDS 16u
#define VKF_SLOT_QUADS 1020
#define VKF_MAX_SLOTS 4080u

// A slot's entry: its row in the low 12 bits, and above them its start: how much shorter its prompt
// is than the longest one. Token histories of a batch end together, so the row's own position is
// position - start. Its cache lines, its ancestry and its positional terms count by that. So they
// do not depend on what else is in the batch.
#define VKF_SLOT_ROW_BITS 12u
#define VKF_SLOT_ROW(entry) ((entry)&4095u)
#define VKF_SLOT_START(entry) ((entry) >> VKF_SLOT_ROW_BITS)

struct DecodeState {
  uint_t live_items;  // batch items still generating
  uint_t live_slots;  // live_items * beams
  uint_t position;    // of the token that this step feeds in; it attends to keys 0 ... position
  uint_t steps;       // steps that did work since the start
  uvec4_t unused[3];
};
#ifdef __cplusplus
static_assert(sizeof(DecodeState) == 64);
#endif
#endif
