// rotary: turns pairs of columns by their token's position (Su et al., 2021, "RoFormer").
//
//   (u, v) -> (u cos - v sin, v cos + u sin)
//   x (..., W), table (P, r) -> y (..., W)
//
// The leading `heads` heads of width E of each row are rotated, in their first r columns. All other
// columns are copied, so that a merged [q | k | v] row goes through with heads = H + Hkv. The table
// comes from the host (rotary_table.h): r/2 cosines, then r/2 sines for each position, already
// scaled.
//
// The position of row i is position_offset + i % T, or position_offset + what `positions` says. A
// position beyond the table turns its pairs into NaN. A decoding step has rotary_append.h.
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
  // R rows after R ids has R here.
  uint32_t positions_at = 0;
};

struct RotaryInputs {
  TensorId x = kNoTensor;          // (..., W), F32
  TensorId table = kNoTensor;      // (P, r), F32: cosines, then sines
  TensorId positions = kNoTensor;  // U32, at least positions_at + rows of x elements, or absent
};

// The output's description (..., W), or why the inputs do not fit: x (..., W),
// table (P, r).
Result<TensorDesc> check_rotary(const TensorDesc& x, const TensorDesc& table,
                                const RotaryAttrs& attrs);
// Do the positions fit? positions (at least positions_at + rows of x), x (..., W).
Status check_rotary_positions(const TensorDesc& positions, const TensorDesc& x,
                              const RotaryAttrs& attrs);

// Adds the node to the graph and returns y (..., W).
Result<TensorId> add_rotary(Graph& graph, const RotaryInputs& inputs, RotaryAttrs attrs);

Status lower_rotary(LowerContext& context, const Node& node);

}  // namespace vkformer
