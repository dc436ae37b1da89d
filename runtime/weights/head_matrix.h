// Some rows of every head of a file's matrix, as a matrix for each head (ops/head_linear.h).
//
// Threading: pure functions.
#pragma once

#include <string>

#include "weights/weight_table.h"

namespace vkformer {

// Makes a row with a matrix for each head (WeightRow::make, WeightRow::experts). The file has
// `rows` rows for every head, (H rows, width). [first, first + count) of them are its matrix.
struct HeadMatrix {
  std::string file;  // the tensor's name
  int64_t heads = 0;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t first = 0;
  int64_t count = 0;
  // (N, K) is (count, width), or its transpose with kYes.
  enum class Transposed : uint8_t { kNo, kYes } transposed = Transposed::kNo;

  int64_t outputs() const { return transposed == Transposed::kYes ? width : count; }  // N
  int64_t inputs() const { return transposed == Transposed::kYes ? count : width; }   // K
  // (H, N, K). An error names a tensor that the file lacks or that has another shape.
  Result<MadeMatrix> operator()(const Checkpoint& checkpoint) const;
};

// What makes the row, or null where that is something else.
const HeadMatrix* head_matrix_of(const WeightRow& row);

}  // namespace vkformer
