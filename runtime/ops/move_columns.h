// move_columns: copies a run of columns of every row of one tensor. The other side has other
// columns or strides, or is the cache of a generation's states. It joins time steps and states of
// recurrent models; the rest of the destination stays as it is.
//
//   x (R, any) by offset and stride -> y (R, any) by offset and stride
//   step: cache (rows, 2, line) -> y (slots, W); x (slots, W) -> cache
//
// A cache has two lines for each row. A step reads the line that the position before left in its
// parent row, and writes its own (shaders/include/parent_row.glsl). So beams copy nothing. Both
// lines of an item's first row hold the state that a generation starts from.
#pragma once

#include "ops/op.h"

namespace vkformer {

// Where row r of a tensor's part begins: offset + r * stride, in elements.
struct RowPlace {
  uint32_t offset = 0;
  uint32_t stride = 0;
};

// A cache of states in a decoding step.
struct StateCache {
  TensorId cache = kNoTensor;     // (rows, 2, line)
  TensorId ancestry = kNoTensor;  // (R, C) words and more, U32
  TensorId state = kNoTensor;     // DecodeState and slot rows (words), U32
  uint32_t capacity = 0;          // C
  uint32_t beams = 1;             // rows of an item
};

// An error if part (rows, width) by `place` does not stay inside t (...).
Status check_row_place(const TensorDesc& t, const char* role, const RowPlace& place, int64_t rows,
                       int64_t width);
// An error if `columns` columns from `column` on do not fit into the cache (rows, 2, line).
Status check_state_cache(const TensorDesc& cache, const TensorDesc& ancestry, uint32_t column,
                         int64_t columns);

// A new tensor y (R, ..., W) of that shape, from x's (R, W) by `from`; x kNoTensor: zeros.
Result<TensorId> add_columns(Graph& graph, TensorId x, const RowPlace& from, Shape shape);
// Writes x (R, W) into y's (R, W) by `to`; x's leading dimensions are rows.
Status add_place_columns(Graph& graph, TensorId x, TensorId y, const RowPlace& to);

// In a decoding step: y (slots, W), the columns from `column` on of every slot's last state.
Result<TensorId> add_load_state(Graph& graph, const StateCache& cache, uint32_t column,
                                int64_t width);
// In a decoding step: x (slots, W) becomes the columns from `column` on of every slot's state.
Status add_store_state(Graph& graph, TensorId x, const StateCache& cache, uint32_t column);

Status lower_move_columns(LowerContext& context, const Node& node);

}  // namespace vkformer
