// embedding: y = table[id] * scale * row scale + positions[position] + types[type].
//
//   ids (..., T), table (V, D) by strides, positions (P, D) -> y (..., T, D)
//
// Fusion (ops/fusion.h) puts a layer norm of the sum into the node.
//
// The position of row r is position_offset + r % T, or position_offset + what a second plane of ids
// says. In a decoding step that passes `state`, it is position_offset + DecodeState::position - the
// slot's start. Token types are rows that follow the positions. The last plane of ids chooses them;
// in a decoding step it is always the first type. An id, a position or a type without a row gives a
// row of NaN and never a read outside the table.
#pragma once

#include "base/matrix_format.h"
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
  uint32_t panel_stride = 0;  // elements
  // Of a table in blocks (params/weight_blocks.h) the strides are but the panel's, in 32-bit words.
  MatrixFormat format = MatrixFormat::kF32;  // kF32 also stands for what the table's dtype says
  // Rows of each tensor of a table in slices, but for the last one, which has the rest; 0: it is
  // one tensor.
  uint32_t slice_rows = 0;
  float scale = 1.0f;            // multiplies the table's row
  uint32_t tokens = 0;           // T; 0: the last dimension of ids
  uint32_t position_offset = 0;  // tokens
  // kPlane: ids is (planes, ..., T), ids first, then positions. kNone: the position table has
  // nothing but token types.
  enum class Positions : uint8_t { kCounted, kPlane, kNone } from = Positions::kCounted;
  // In a decoding step, the id of padding, where positions come from the ids: it gets the row
  // before position 0 instead of its position. ~0: none.
  uint32_t pad_id = ~0u;
  // Rows of the position table, its last ones, that are token types; 0: none. Without a state, ids
  // has a last plane (planes, ..., T) with the types.
  uint32_t types = 0;
  // kPlane: ids has one more plane, its last, with the bits of a scale (F32) of each row of the
  // table that is looked up.
  enum class RowScales : uint8_t { kNone, kPlane } row_scales = RowScales::kNone;
  float norm_epsilon = 0;  // of the norm that fusion put into the node, else unused
};

// Of a node's inputs: the gain and bias (2, D) of that norm, or absent.
inline constexpr size_t kEmbeddingNorm = 4;
// The first of a table's slices beyond the one that is input 1.
inline constexpr size_t kEmbeddingSlices = kEmbeddingNorm + 1;

struct EmbeddingInputs {
  TensorId ids = kNoTensor;    // (..., T), or planes of that, U32
  TensorId table = kNoTensor;  // V * D elements by strides: F32, F16 in pairs per word, or U32
  std::vector<TensorId> slices = {};  // of the table, after the first, which is `table`
  TensorId positions = kNoTensor;     // (P + types, D), F32, or absent
  TensorId state = kNoTensor;         // DecodeState, where positions come from it; needs positions
};

// Planes of ids that a full pass needs: ids, positions and types where they are not counted, and
// scales of rows.
uint32_t embedding_planes(const EmbeddingAttrs& attrs);

// The output's description, or why the inputs do not fit: ids (..., T) or planes of that, table
// (V, D) by strides.
Result<TensorDesc> check_embedding(const TensorDesc& ids, const TensorDesc& table,
                                   const EmbeddingAttrs& attrs);
// Does the position table fit? positions (P + types, D).
Status check_embedding_positions(const TensorDesc& positions, const EmbeddingAttrs& attrs);

// Adds the node to the graph and returns y (..., T, D).
Result<TensorId> add_embedding(Graph& graph, const EmbeddingInputs& inputs, EmbeddingAttrs attrs);

// Whether one kernel of the device does a node's lookup and the layer norm of its sum.
bool embedding_takes_norm(const Graph& graph, const Node& embedding, const DeviceCaps& caps);

Status lower_embedding(LowerContext& context, const Node& node);

}  // namespace vkformer
