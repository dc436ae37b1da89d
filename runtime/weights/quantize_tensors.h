// A checkpoint's matrices in another format, as tensors for a file
// (checkpoint/quantized_tensors.h).
#pragma once

#include "weights/weight_table.h"

namespace vkformer {

struct QuantizedCheckpoint {
  TensorMap tensors;
  int64_t matrices = 0;  // that are in the format now
  uint64_t bytes = 0;    // of all tensors
};

// All tensors of the checkpoint, those in `format` that are matrices of the table and nothing else,
// and large enough for blocks. In q4 and q4m they have an even K. Others keep their bits.
// Precondition: resolve_weights took the table. An error names a tensor that has values the format
// cannot hold.
Result<QuantizedCheckpoint> quantize_checkpoint(const WeightTable& table,
                                                const Checkpoint& checkpoint, MatrixFormat format);

}  // namespace vkformer
