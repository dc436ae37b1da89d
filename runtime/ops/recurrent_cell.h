// recurrent_cell: one step of a GRU or LSTM. It reads the gates' parts from the input (W_ih x +
// b_ih) and from the state (W_hh h + b_hh), both computed before.
//
//   gates (R, G Hd), states (R, G Hd), carry (R, Hd), in place -> h (R, Hd)
//
// GRU (Cho et al. 2014, the reset gate after the product), gates r, z, n, G = 3:
//   n = tanh(gates_n + r states_n), h = (1 - z) n + z carry; carry becomes h
// LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000), gates i, f, g, o, G = 4:
//   carry becomes f carry + i tanh(g); h = o tanh(carry)
#pragma once

#include "ops/op.h"

namespace vkformer {

enum class CellKind : uint8_t { kGru, kLstm };

// G: matrices of width Hd that are stacked in a cell's weights.
inline uint32_t gates_of(CellKind cell) {
  return cell == CellKind::kLstm ? 4 : 3;
}
// Vectors of width Hd that a cell remembers: h, and the LSTM's cell.
inline uint32_t states_of(CellKind cell) {
  return cell == CellKind::kLstm ? 2 : 1;
}

struct RecurrentCellAttrs {
  CellKind cell = CellKind::kGru;
  // Where row r of `gates` begins: offset + r * stride, in elements; a stride of 0 is G Hd.
  uint32_t offset = 0;
  uint32_t stride = 0;
};

struct RecurrentCellInputs {
  TensorId gates = kNoTensor;   // (R, G Hd) by offset and stride
  TensorId states = kNoTensor;  // (R, G Hd)
  TensorId carry = kNoTensor;   // (R, Hd), overwritten
};

// h's description, or why the inputs do not fit: gates (R, G Hd) by offset and stride, states (R, G
// Hd), carry (R, Hd).
Result<TensorDesc> check_recurrent_cell(const TensorDesc& gates, const TensorDesc& states,
                                        const TensorDesc& carry, const RecurrentCellAttrs& attrs);
// Adds the node and returns h (R, Hd).
Result<TensorId> add_recurrent_cell(Graph& graph, const RecurrentCellInputs& inputs,
                                    RecurrentCellAttrs attrs);

Status lower_recurrent_cell(LowerContext& context, const Node& node);

}  // namespace vkformer
