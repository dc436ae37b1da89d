#include "plan/gpu_traits.h"

namespace vkformer {
namespace {

constexpr uint32_t kMesa =
    0x10005;  // VK_VENDOR_ID_MESA, of Honeykrisp, Mesa's driver of Apple's GPUs
constexpr uint32_t kAmd = 0x1002, kApple = 0x106b, kArm = 0x13b5, kBroadcom = 0x14e4;
constexpr uint32_t kImagination = 0x1010, kIntel = 0x8086, kNvidia = 0x10de, kQualcomm = 0x5143;

// 64 registers of an invocation.
constexpr GpuTraits kOf64Registers{.matmul_block = 32,
                                   .matmul_packed_block = 32,
                                   .matmul_rows = 2,
                                   .matmul_packed_rows = 1,
                                   .matmul_dot_rows = 1,
                                   .matmul_dot_rows_of_16 = 1,
                                   .attention_queries = 1};
constexpr GpuTraits kOfBroadcom{.matmul_block = 16,
                                .matmul_packed_block = 16,
                                .matmul_rows = 1,
                                .matmul_packed_rows = 1,
                                .matmul_dot_rows = 1,
                                .matmul_dot_rows_of_16 = 1,
                                .attention_queries = 1};
constexpr GpuTraits kOfApple{
    .matmul_block = 64, .matmul_dot_rows = 2, .matmul_dot_rows_of_16 = 2, .attention_queries = 2};
constexpr std::string_view kWhyApple =
    "128 registers of an invocation: blocks of 128 spill, and swap 265 of them a step; 4 rows of "
    "integer products spill 43";

// What the compilers of Mesa 26.2 report for the kernels (docs/gpus.md), which were compiled, not
// run, but where a row says so. Drivers that are not Mesa's are taken to have as many registers,
// which belong to the hardware.
constexpr GpuTraitsRow kRows[] = {
    {kNvidia,
     "NVIDIA",
     {.matmul_block = 64, .matmul_ahead = 2},
     "run on an H200: its compiler gives blocks of 128 half of the registers, 288 bytes of sums go "
     "to "
     "memory, and they take four times as long as blocks of 64"},
    {kNvidia, "", {.matmul_ahead = 2}, "Mesa's: 255 registers of an invocation, nothing spills"},
    {kAmd,
     "",
     {.matmul_ahead = 2, .half_blocks = true},
     "256 registers of an invocation: nothing spills; packed halves take 3 in 5 of the "
     "instructions"},
    {kIntel,
     "",
     {.matmul_block = 64,
      .matmul_packed_block = 32,
      .matmul_packed_rows = 3,
      .matmul_dot_rows = 2,
      .matmul_dot_rows_of_16 = 1,
      .attention_queries = 2},
     "128 registers of a thread: blocks of 128 spill 150 of them, blocks of 64 of packed weights "
     "9, "
     "6 rows a pass 38, 4 of packed weights 11 and of integer products 77"},
    {kApple, "", kOfApple, kWhyApple},
    {kMesa, "Honeykrisp", kOfApple, kWhyApple},
    {kQualcomm,
     "",
     {.matmul_block = 64, .matmul_dot_rows = 2, .matmul_dot_rows_of_16 = 2, .attention_sums = 16},
     "blocks of 128 spill 5 registers on Adreno 660; workgroups of 64 and 2 queries leave 4 waves; "
     "4 rows of integer products spill 105"},
    {kArm, "", kOf64Registers,
     "64 registers of an invocation: blocks of 64 spill, and 2 rows of packed weights 40"},
    {kBroadcom, "", kOfBroadcom,
     "32 registers of an invocation: on V3D 7.1 blocks of 32 spill 22 and 2 rows a pass 2"},
    {kImagination, "", kOf64Registers, "unknown"},
};

}  // namespace

std::span<const GpuTraitsRow> gpu_traits_rows() {
  return kRows;
}

GpuTraits gpu_traits(uint32_t vendor, std::string_view driver) {
  for (const GpuTraitsRow& row : kRows) {
    if (row.vendor == vendor && driver.find(row.driver_part) != driver.npos) return row.traits;
  }
  return {};
}

}  // namespace vkformer
