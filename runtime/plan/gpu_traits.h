// What kernels may ask of a GPU's registers, by its vendor and its driver's compiler: a table of
// data with the reason beside each row. Software devices have plan/compiler_traits.h in its place.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace vkformer {

struct GpuTraits {
  uint32_t matmul_block = 128;  // rows and columns of a block of matmul_tiled, at most
  // The same where weights are stored in blocks, which take registers until they are unpacked.
  uint32_t matmul_packed_block = 128;
  uint32_t matmul_rows = 4;         // rows of a pass of matmul_rows, at most
  uint32_t matmul_packed_rows = 4;  // the same where weights are stored in blocks
  // Rows of a pass of matmul_dots, at most, and where a weight's scales are of 16 steps of K each.
  uint32_t matmul_dot_rows = 4;
  uint32_t matmul_dot_rows_of_16 = 4;
  // Runs of 4 steps of K that matmul_rows loads together where it has one row. With more of them
  // under way it waits less often, and needs more registers.
  uint32_t matmul_ahead = 1;
  uint32_t attention_queries = 4;  // of an invocation of attention_blocks, at most
  // Floats of the sums of one invocation of attention_blocks, at most.
  uint32_t attention_sums = 32;
  // Whether matmul_tiled gains by sums of few products in halves, where precision allows them.
  bool half_blocks = false;

  bool operator==(const GpuTraits&) const = default;
};

struct GpuTraitsRow {
  uint32_t vendor = 0;           // VkPhysicalDeviceProperties::vendorID
  std::string_view driver_part;  // of the driver's name; empty: any driver
  GpuTraits traits;
  std::string_view reason;
};

// The first row that fits a device counts.
std::span<const GpuTraitsRow> gpu_traits_rows();

// Of a vendor and a driver's name; the defaults where no row fits.
GpuTraits gpu_traits(uint32_t vendor, std::string_view driver);

}  // namespace vkformer
