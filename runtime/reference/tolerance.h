// How far a GPU result may be from the double-precision reference. It is one table, by storage type
// and by the number of terms that an element sums. Every operator test and every check of
// conformance takes its bounds from here.
#pragma once

#include <cstdint>

#include "vkformer/tensor.h"

namespace vkformer::reference {

// |actual - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

struct ToleranceRow {
  DType dtype;          // what the operands were stored in or multiplied in
  int64_t most_terms;   // the row holds for sums of up to this many terms
  Tolerance tolerance;  // for elements of the order of 1
};

// Accumulation is f32 everywhere: sums of n terms in a tree of lanes lose about sqrt(n) half units
// in the last place. F16 rows hold where products are rounded to half (precision f16). Operands
// merely stored as halves are rounded before both sides compute and use the F32 rows.
inline constexpr ToleranceRow kTolerances[] = {
    {DType::kF32, 1, {1e-6, 2e-6}},         {DType::kF32, 64, {2e-6, 4e-6}},
    {DType::kF32, 1024, {5e-6, 1e-5}},      {DType::kF32, 16384, {2e-5, 2e-5}},
    {DType::kF32, INT64_MAX, {1e-4, 5e-5}}, {DType::kF16, 64, {4e-3, 4e-3}},
    {DType::kF16, 1024, {1e-2, 1e-2}},      {DType::kF16, INT64_MAX, {3e-2, 3e-2}},
};

// The row for `dtype` (F32 for every type without rows) and a sum of `terms` terms.
inline Tolerance tolerance_for(DType dtype, int64_t terms) {
  const DType listed = dtype == DType::kF16 ? DType::kF16 : DType::kF32;
  for (const ToleranceRow& row : kTolerances) {
    if (row.dtype == listed && terms <= row.most_terms) return row.tolerance;
  }
  return {};
}

}  // namespace vkformer::reference
