// recurrence: a GRU or LSTM layer over all tokens of every row (the cells: ops/recurrent_cell.h).
// It reads what the gates get of the inputs, W_ih x + b_ih, which one matrix product computes
// before.
//
//   gates (B, T, G Hd), weight W_hh (G Hd, Hd) with b_hh, initial (B, St)
//     -> y (B, T, St): the state after every token, St = Hd, or 2 Hd: [h | cell] of an LSTM
//
// Narrow layers run in one kernel, many tokens to a dispatch; wide ones as a product and a cell per
// token. Which one depends on Hd alone.
#pragma once

#include "ops/matmul.h"
#include "ops/recurrent_cell.h"

namespace vkformer {

// The widest layer of one kernel.
inline constexpr uint32_t kMostFusedRecurrence = 256;

struct RecurrenceAttrs {
  CellKind cell = CellKind::kGru;
};

struct RecurrenceInputs {
  TensorId gates = kNoTensor;    // (B, T, G Hd)
  LinearWeight weight;           // (Hd, G Hd), with a bias or without
  TensorId initial = kNoTensor;  // (B, St), or absent: zeros
};

// y's description, or why the inputs do not fit: gates (B, T, G Hd), initial (B, St) or null.
Result<TensorDesc> check_recurrence(const TensorDesc& gates, const LinearWeight& weight,
                                    const TensorDesc* initial, const RecurrenceAttrs& attrs);
// Adds the layer and returns y (B, T, St).
Result<TensorId> add_recurrence(Graph& graph, const RecurrenceInputs& inputs,
                                const RecurrenceAttrs& attrs);

Status lower_recurrence(LowerContext& context, const Node& node);

}  // namespace vkformer
