// rotary: turns pairs of columns by their token's position (Su et al., 2021, "RoFormer").
//
//   (u, v) -> (u cos - v sin, v cos + u sin)
//   x (..., W), table (P, r) -> y (..., W)
//
// The leading `heads` heads of width E of each row are turned, in their first r columns; all other
// columns are copied, so that a merged [q | k | v] row goes through with heads = H + Hkv. The table
// comes from the host (rotary_table.h): r/2 cosines, then r/2 sines for each position, already
// scaled.
//
// With `again_heads` a row of y is longer by so many heads: the first ones once more, turned by
// their position or `again_limit`, whichever is less (the queries of attention_step.h's sinks).
//
// The position of row i is position_offset + i % T; or position_offset + what `positions` says; or,
// in a decoding step that passes `state`, position_offset + DecodeState::position - the slot's
// start. A position beyond the table turns its pairs into NaN.
#pragma once

#include "ops/op.h"

namespace vkformer {

// Which columns of a head make pair i < r/2.
enum class RotaryPairs : uint8_t {
  kHalves,       // i and i + r/2
  kInterleaved,  // 2i and 2i + 1
};

struct RotaryAttrs {
  uint32_t heads = 1;         // heads that are turned, from the first column of a row on
  uint32_t head_width = 0;    // E
  uint32_t rotary_width = 0;  // r, even, at most E; 0: E
  RotaryPairs pairs = RotaryPairs::kHalves;
  uint32_t tokens = 0;           // T; 0: x's last dimension but one
  uint32_t position_offset = 0;  // tokens
  // Which element of `positions` belongs to row 0; a plane of ids that holds the positions of
  // R rows behind R ids has R here.
  uint32_t positions_at = 0;
  uint32_t again_heads = 0;  // at most `heads`, of rows that are whole heads
  uint32_t again_limit = 0;  // tokens
};

struct RotaryInputs {
  TensorId x = kNoTensor;          // (..., W), F32
  TensorId table = kNoTensor;      // (P, r), F32: cosines, then sines
  TensorId positions = kNoTensor;  // U32, at least positions_at + rows of x elements, or absent
  TensorId state = kNoTensor;      // DecodeState and slot rows (words), in a decoding step
};

// The output's description (..., W + again_heads E), or why the inputs do not fit: x (..., W),
// table (P, r).
Result<TensorDesc> check_rotary(const TensorDesc& x, const TensorDesc& table,
                                const RotaryAttrs& attrs);
// Do the positions fit? positions (at least positions_at + rows of x), x (..., W).
Status check_rotary_positions(const TensorDesc& positions, const TensorDesc& x,
                              const RotaryAttrs& attrs);
// Does the decoding state fit? state (words), x (slots, W).
Status check_rotary_state(const TensorDesc& state, const TensorDesc& x);

// Adds the node to the graph and returns y (..., W + again_heads E).
Result<TensorId> add_rotary(Graph& graph, const RotaryInputs& inputs, RotaryAttrs attrs);

Status lower_rotary(LowerContext& context, const Node& node);

}  // namespace vkformer
