// parent_lines: in a decoding step, which line of recurrent states each live slot's token goes on
// from. It is line (position - 1) mod L of the row that owns the position before.
//
//   ancestry (R, C), state (words) -> parents (slots of any step), U32
//
// Every row has L lines and writes the one of its position. So a step reads what its parent beam
// left and copies nothing, and a row can go back by L - 2 tokens. A step may have several tokens of
// a row, in any slots. The first has a line, and each the slot of the next one
// (params/state_scan.h). Operators with such states (causal_conv, state_scan) bind the result as a
// uniform block.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct ParentLinesAttrs {
  uint32_t positions = 1;  // C, positions that the ancestry has room for
  uint32_t lines = 2;      // L
  uint32_t beams = 1;      // rows of an item
  enum class Runs : uint8_t { kNo, kYes } runs = Runs::kNo;  // slots may be of one row
};

// Adds the node to a decoding step's graph and returns the parents; ancestry (R, C) or more words,
// U32, state the DecodeState and slot rows.
Result<TensorId> add_parent_lines(Graph& graph, TensorId ancestry, TensorId state,
                                  const ParentLinesAttrs& attrs);

// What an operator with such states binds: of a prompt `states` and `state`, of a step all three,
// of a full pass nothing.
struct StateTensors {
  TensorId states = kNoTensor;   // (R, L, ...)
  TensorId state = kNoTensor;    // DecodeState and slot rows
  TensorId parents = kNoTensor;  // of parent_lines
};

// Why these do not fit operator `op` with x in this graph, if so: x is (slots, W) in a step, else
// (B, T, W).
Status check_state_tensors(OpId op, const Graph& graph, const TensorDesc& x,
                           const StateTensors& tensors);

Status lower_parent_lines(LowerContext& context, const Node& node);

}  // namespace vkformer
