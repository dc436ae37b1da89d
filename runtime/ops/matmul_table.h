// The table of choices for matrix products with packed weights: by class of device and, within it,
// by rows. The tuner (measure/tuning.h) puts rows of its own in their place.
//
// A choice depends on M and the weight's dtype alone. Where `slices` is 1, as in the table of
// software devices, all strategies add a row up in one order, so it has the same bits whatever
// shares its batch; with several, the number of rows decides on the order.
#pragma once

#include "base/matrix_format.h"
#include "plan/device_caps.h"

namespace vkformer {

// The rows for a device, by ascending max_rows; the last one holds for any number. What was tuned
// is left out. With f16 products GPUs of the matrix tier take their units for all but a few rows.
std::vector<MatmulChoice> matmul_table(const DeviceCaps& caps,
                                       Precision precision = Precision::kF32);

// What holds for a product of M rows: tuned, of weights in f32 and f16, or by the table.
MatmulChoice matmul_choice(const DeviceCaps& caps, uint32_t m, MatrixFormat format,
                           Precision precision = Precision::kF32);

// How a workgroup of matmul_units is made up: of how many subgroups along M and N.
struct UnitsGroup {
  uint32_t along_m = 1, along_n = 2;
  uint32_t count() const { return along_m * along_n; }
};
UnitsGroup units_group(const MatmulChoice& choice);

// Groups of 8 sums that a tile of matmul_wide may have: they pass through 16 KiB of shared memory.
inline constexpr uint32_t kWideSums = 512;

// Rows of matmul_wide's tile for large products on a software device with subgroups. Mesa 23 to 25
// takes seconds to compile 32.
uint8_t large_tile_rows(const DeviceCaps& caps);

// Whether a device has the kernel, and its limits allow the tile.
bool can_run(const MatmulChoice& choice, const DeviceCaps& caps);

// What is worth trying for products of M rows on that device, the table's own choice first.
std::vector<MatmulChoice> matmul_candidates(const DeviceCaps& caps, uint32_t m,
                                            Precision precision = Precision::kF32);

}  // namespace vkformer
