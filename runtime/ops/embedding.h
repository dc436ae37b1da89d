// embedding: y = table[id] * scale + positions[position].
//
//   ids (..., T), table (V, D) by strides, positions (P, D) -> y (..., T, D)
//
// The position of row r is position_offset + r % T; in a decoding step that passes `state` it is
// position_offset + DecodeState::position. An id or a position without a row gives a row of NaN and
// never a read outside the table.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct EmbeddingAttrs {
  uint32_t vocabulary = 0;  // V, rows of the table
  uint32_t width = 0;       // D
  // Where table[v][d] lies: element v * row_stride + d * col_stride. 0, 0 stands for D, 1; a table
  // tied to an output layer that is stored (D, V) has 1, V.
  uint32_t row_stride = 0;  // elements
  uint32_t col_stride = 0;  // elements
  // From 64 rows of the table to the next 64, where it is a packed weight (panels of 64 columns);
  // 0: 64 * row_stride.
  uint32_t panel_stride = 0;     // elements
  float scale = 1.0f;            // multiplies the table's row
  uint32_t tokens = 0;           // T; 0: the last dimension of ids
  uint32_t position_offset = 0;  // tokens
};

struct EmbeddingInputs {
  TensorId ids = kNoTensor;        // (..., T), U32
  TensorId table = kNoTensor;      // V * D elements by strides: F32, or F16 in pairs per word
  TensorId positions = kNoTensor;  // (P, D), F32, or absent
  TensorId state = kNoTensor;      // DecodeState, where positions come from it; needs positions
};

// The output's description, or why the inputs do not fit: ids (..., T), table (V, D) by strides.
Result<TensorDesc> check_embedding(const TensorDesc& ids, const TensorDesc& table,
                                   const EmbeddingAttrs& attrs);
// Does the position table fit? positions (P, D).
Status check_embedding_positions(const TensorDesc& positions, const EmbeddingAttrs& attrs);

// Adds the node to the graph and returns y (..., T, D).
Result<TensorId> add_embedding(Graph& graph, const EmbeddingInputs& inputs, EmbeddingAttrs attrs);

Status lower_embedding(LowerContext& context, const Node& node);

}  // namespace vkformer
