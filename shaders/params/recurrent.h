// Push constants of the recurrent models' kernels: recurrence, recurrent_cell, move_columns,
// additive_attention.
#ifndef VKFORMER_PARAMS_RECURRENT_H
#define VKFORMER_PARAMS_RECURRENT_H
#include "constants.h"
#include "types.h"

struct RecurrenceParams {
  uint_t rows;         // B
  uint_t tokens;       // T
  uint_t first;        // token of this dispatch's first step
  uint_t count;        // steps of this dispatch
  uint_t bias_offset;  // 32-bit words in the weight's binding; ~0: no bias
  uint_t has_initial;  // 0: the state before token 0 is zeros
  uint_t unused[2];
};

struct RecurrentCellParams {
  uint_t rows;
  uint_t width;   // Hd
  uint_t offset;  // of row 0 in the gate inputs, in elements
  uint_t stride;  // from one row of the gate inputs to the next, in elements
};

struct MoveColumnsParams {
  uint_t rows;
  uint_t width;     // columns that are moved
  uint_t x_offset;  // of row 0 in x, in elements; a load's column in a state line
  uint_t x_stride;  // from one row of x to the next, in elements
  uint_t y_offset;  // of row 0 in y, in elements; a store's column in a state line
  uint_t y_stride;  // from one row of y to the next, in elements
  uint_t lines;     // C, positions of a row in the ancestry; loads and stores only
  uint_t beams;     // rows of an item; loads only
};

// How a position is scored, and what of it is wanted.
#ifdef __cplusplus
#define VKF_RECURRENT inline constexpr uint32_t
#else
#define VKF_RECURRENT const uint
#endif
VKF_RECURRENT kScoreAdditive = 0u;  // v . tanh(q + k)
VKF_RECURRENT kScoreDot = 1u;       // q . k
VKF_RECURRENT kScoreLocation = 2u;  // q itself, by position
VKF_RECURRENT kWindowNone = 0u;
VKF_RECURRENT kWindowMonotonic = 1u;   // centered at the query's own position
VKF_RECURRENT kWindowPredictive = 2u;  // centered where the query says; with a Gaussian
#undef VKF_RECURRENT

struct AdditiveAttentionParams {
  uint_t rows;                  // B * T, or slots
  uint_t queries;               // T, queries of an item; in a step, rows of an item
  uint_t keys;                  // S
  uint_t first;                 // position of an item's first query
  uint_t q_stride;              // from one row of q to the next, in elements
  uint_t kv_stride;             // from one key to the next, in elements
  uint_t value_width;           // C; the values are the last columns of a row of kv
  uint_t v_offset;              // of v in aux, in words
  uint_t has_mask;              // 1: aux begins with a key mask (B, ceil(S/32))
  uint_t window;                // kWindow*
  uint_t reach;                 // D, positions to each side of the center
  uint_t raw_scores;            // 1: only the scores, -inf where masked
  float_t inverse_temperature;  // multiplies the scores before the softmax
  uint_t unused[3];
};
#ifdef __cplusplus
static_assert(sizeof(RecurrenceParams) == 32);
static_assert(sizeof(RecurrentCellParams) == 16);
static_assert(sizeof(MoveColumnsParams) == 32);
static_assert(sizeof(AdditiveAttentionParams) == 64);
#endif

// Specialization constants (constants.h).
#define VKF_RECURRENCE_CONSTANTS(constant)                                        \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* Hd */ \
      constant(2, kLstm, lstm, 0)                                                 \
          constant(3, kFormat, format, 0) /* MatrixFormat, where the weight is in blocks */
VKF_CONSTANTS_STRUCT(RecurrenceConstants, VKF_RECURRENCE_CONSTANTS)

#define VKF_RECURRENT_CELL_CONSTANTS(constant)                            \
  constant(0, kLocalSize, local_size, 64) constant(1, kChunk, chunk, 256) \
      constant(2, kLstm, lstm, 0)
VKF_CONSTANTS_STRUCT(RecurrentCellConstants, VKF_RECURRENT_CELL_CONSTANTS)

#define VKF_MOVE_COLUMNS_CONSTANTS(constant)                              \
  constant(0, kLocalSize, local_size, 64) constant(1, kChunk, chunk, 256) \
      constant(2, kFrom, from, 1) /* 0: zeros, 1: x; VKF_STEP: 1 stores, 2 loads */
VKF_CONSTANTS_STRUCT(MoveColumnsConstants, VKF_MOVE_COLUMNS_CONSTANTS)

#define VKF_ADDITIVE_ATTENTION_CONSTANTS(constant)                                             \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* A, columns of q */ \
      constant(2, kScore, score, 0)    /* kScore* of recurrent.h */                            \
      constant(3, kStaged, staged, 64) /* A, or 1 where q is read by position */
VKF_CONSTANTS_STRUCT(AdditiveAttentionConstants, VKF_ADDITIVE_ATTENTION_CONSTANTS)
#endif
