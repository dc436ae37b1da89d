// Which strategy and tile a matrix product gets: by class of device and, within it, by rows. The
// tuner (measure/tuning.h) replaces them with its own choices.
//
// A choice depends on M and the operands' layout and format alone. Where `slices` is 1, as in the
// table of software devices, all strategies add a row up in one order. So a row has the same bits
// whatever shares its batch. With several slices, the number of rows decides on the order.
#pragma once

#include <optional>
#include <vector>

#include "base/matrix_format.h"
#include "plan/device_caps.h"

namespace vkformer {

// A row of the table: a choice for products of min_rows to choice.max_rows rows.
struct MatmulTableRow {
  MatmulChoice choice;
  uint32_t min_rows = 1;

  bool covers(uint32_t m) const { return min_rows <= m && m <= choice.max_rows; }
};

// The rows of a device, the cheapest first: a product gets the first row that covers its M and
// whose strategy takes it (matmul_strategy.h). The last one takes every product. What was tuned is
// omitted. With int8 products the first rows are those of weights in blocks. With f16 products GPUs
// of the matrix tier take their units for all but a few rows.
std::vector<MatmulTableRow> matmul_table(const DeviceCaps& caps,
                                         Precision precision = Precision::kF32);

// What holds for a packed weight of any layout and a product of M rows. It is tuned, of weights in
// f32 and f16, or by the table.
MatmulChoice matmul_choice(const DeviceCaps& caps, uint32_t m, MatrixFormat format,
                           Precision precision = Precision::kF32);
// The tuned choice alone.
std::optional<MatmulChoice> tuned_choice(const DeviceCaps& caps, uint32_t m, MatrixFormat format,
                                         Precision precision);

// What is worth trying for products of M rows on that device, the table's own choice first.
std::vector<MatmulChoice> matmul_candidates(const DeviceCaps& caps, uint32_t m,
                                            Precision precision = Precision::kF32);

}  // namespace vkformer
