// recurrence: a GRU or LSTM layer (Cho et al. 2014; Hochreiter and Schmidhuber 1997), and one step
// of it, recurrent_cell.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

enum class CellKind : uint8_t { kGru, kLstm };

// What both need of the state's side.
struct RecurrenceInputs {
  Array weight;                    // W_hh (G Hd, Hd)
  const Array* bias = nullptr;     // b_hh (G Hd), or zeros
  const Array* initial = nullptr;  // (B, St), or zeros; St is Hd, or 2 Hd: [h | cell]
};

// gates (B, T, G Hd): W_ih x + b_ih -> states (B, T, St).
Result<Array> recurrence(const Array& gates, const RecurrenceInputs& inputs, CellKind cell);

// One step: gates, states (R, G Hd), carry (R, Hd) -> [h | the carry after it] (R, 2 Hd).
Result<Array> recurrent_cell(const Array& gates, const Array& states, const Array& carry,
                             CellKind cell);

}  // namespace vkformer::reference
