// embedding: y = table[id] * scale * row_scale + position_table[position]. The scales do not touch
// the positions. ids (...), table (V, D), position_table (P, D), P positions -> y (..., D).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct EmbeddingOptions {
  double scale = 1.0;
  const Array* position_table = nullptr;  // (P, D); absent: no positions
  const Array* position_ids = nullptr;    // the shape of ids; absent: index along its last axis
  int64_t position_offset = 0;            // added to that index, in tokens
  const Array* row_scales = nullptr;      // the shape of ids; absent: ones
};

// table (V, D), ids (...) -> (..., D). An error if an id or a position is not a row of its table.
Result<Array> embedding(const Array& table, const Array& ids, const EmbeddingOptions& options = {});

}  // namespace vkformer::reference
