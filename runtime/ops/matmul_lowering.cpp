#include "ops/matmul_lowering.h"

#include <algorithm>

namespace vkformer {
namespace {

constexpr uint32_t kMostFewRows = 8;  // rows that matmul_rows takes
// The same on software devices with shuffles, where matmul_wide is faster from here on.
constexpr uint32_t kMostFewRowsShuffled = 3;
constexpr uint32_t kGroupColumns = 8;  // columns of one load of B

uint32_t ceil_div(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

// B as the packed layout has it: unit columns, rows that start on whole groups.
bool packed_like(const MatmulProblem& problem) {
  const MatmulParams& p = problem.params;
  return p.b_col_stride == 1 && p.b_row_stride % kGroupColumns == 0 &&
         p.b_offset % kGroupColumns == 0 && p.b_batch_stride % kGroupColumns == 0 &&
         p.b_panel_stride % kGroupColumns == 0;
}

uint32_t aligned_a(const MatmulParams& p) {
  return p.a_offset % 4 == 0 && p.a_row_stride % 4 == 0 && p.a_batch_stride % 4 == 0 ? 1 : 0;
}

bool half_arithmetic(const DeviceCaps& caps, Precision precision) {
  return precision == Precision::kF16 && caps.fp16();
}

KernelId rows_kernel(bool weight_half, bool half, bool wide_loads) {
  if (half)
    return weight_half ? KernelId::matmul_rows__f32_f16_f32_fp16
                       : KernelId::matmul_rows__f32_f32_f32_fp16;
  if (wide_loads)
    return weight_half ? KernelId::matmul_rows__f32_f16_f32_int64
                       : KernelId::matmul_rows__f32_f32_f32_int64;
  return weight_half ? KernelId::matmul_rows__f32_f16_f32 : KernelId::matmul_rows__f32_f32_f32;
}

KernelId wide_kernel(bool weight_half, bool half, const DeviceCaps& caps) {
  if (half)
    return weight_half ? KernelId::matmul_wide__f32_f16_f32_fp16
                       : KernelId::matmul_wide__f32_f32_f32_fp16;
  if (!caps.subgroup()) {
    return weight_half ? KernelId::matmul_wide__f32_f16_f32 : KernelId::matmul_wide__f32_f32_f32;
  }
  if (weight_half) return KernelId::matmul_wide__f32_f16_f32_subgroup;
  return caps.int64() ? KernelId::matmul_wide__f32_f32_f32_subgroup_int64
                      : KernelId::matmul_wide__f32_f32_f32_subgroup;
}

void set_live(Dispatch& d, const MatmulProblem& problem, int axis, uint32_t rows_per_group) {
  if (!problem.rows_are_slots) return;
  d.live_axis = axis;
  d.slots_per_group = rows_per_group;
}

void launch_rows(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps) {
  const MatmulParams& p = problem.params;
  const bool software = caps.device_class == DeviceClass::kSoftware;
  const uint32_t rows = std::min(p.m, kMostFewRows);
  // Software devices stream a panel (or half of one) row by row; GPUs need more invocations than
  // columns give, so slices of K are summed in a fixed order.
  const uint32_t lanes = software ? std::clamp(caps.subgroup_size, 4u, 8u) : 16u;
  const uint32_t slices = software ? 1u : rows <= 4 ? 8u : 4u;
  d.spec = {lanes * slices, rows, lanes, aligned_a(p), p.activation, slices};
  d.groups = {ceil_div(p.n, lanes * kGroupColumns), ceil_div(p.m, rows), problem.batch};
  set_live(d, problem, 1, rows);
}

// The register tile of matmul_wide by M, as measured (bench/results, matmul on software devices).
struct WideTile {
  uint32_t rows, groups;
};

WideTile wide_tile(uint32_t m, const DeviceCaps& caps, bool shuffles) {
  if (!shuffles) return {14, 2};
  // Small products take a small tile: it compiles in half the time, which counts at a cold start.
  if (m <= 16) return {8, 1};
  if (caps.fast_uniform_loads) return {16, 1};
  return {32, 1};
}

void launch_wide(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps, bool shuffles) {
  const MatmulParams& p = problem.params;
  // With shuffles the workgroup is one subgroup; without, a lane group of the usual vector width.
  const uint32_t lanes = shuffles ? caps.subgroup_size : std::clamp(caps.subgroup_size, 4u, 8u);
  const WideTile tile = wide_tile(p.m, caps, shuffles);
  d.spec = {lanes, tile.rows, tile.groups, aligned_a(p), p.activation};
  d.groups = {ceil_div(p.m, tile.rows), ceil_div(p.n, lanes * tile.groups * kGroupColumns),
              problem.batch};
  set_live(d, problem, 0, tile.rows);
}

void launch_tiled(Dispatch& d, const MatmulProblem& problem) {
  const MatmulParams& p = problem.params;
  const bool small = p.m <= 32 || p.n <= 32;
  const uint32_t block = small ? 32 : 64;
  const uint32_t tile_m = small ? 4 : 8;
  const uint32_t tile_n = 4;
  const uint32_t invocations = block / tile_m * (block / tile_n);
  d.spec = {invocations,
            block,
            block,
            16u,
            p.activation,
            tile_m,
            tile_n,
            p.a_row_stride == 1 && p.a_col_stride != 1 ? 1u : 0u,
            p.b_row_stride == 1 && p.b_col_stride != 1 ? 1u : 0u};
  d.groups = {ceil_div(p.n, block), ceil_div(p.m, block), problem.batch};
  set_live(d, problem, 1, block);
}

}  // namespace

MatmulStrategy pick_matmul(const MatmulProblem& problem, const DeviceCaps& caps) {
  const bool software = caps.device_class == DeviceClass::kSoftware;
  const bool strided = !packed_like(problem) || problem.params.a_col_stride != 1;
  if (strided) return software ? MatmulStrategy::kStrided : MatmulStrategy::kTiled;
  const uint32_t few = software && caps.subgroup() ? kMostFewRowsShuffled : kMostFewRows;
  if (problem.params.m <= few) return MatmulStrategy::kRows;
  return software ? MatmulStrategy::kWide : MatmulStrategy::kTiled;
}

Dispatch launch_matmul(const Node& node, const MatmulProblem& problem, const DeviceCaps& caps,
                       Precision precision, MatmulStrategy strategy) {
  const bool weight_half = problem.weight_dtype == DType::kF16;
  const bool half = half_arithmetic(caps, precision);
  Dispatch d;
  d.label = node.label;
  switch (strategy) {
    case MatmulStrategy::kRows:
      d.kernel = rows_kernel(weight_half, half, caps.int64());
      launch_rows(d, problem, caps);
      break;
    case MatmulStrategy::kWide:
      d.kernel = wide_kernel(weight_half, half, caps);
      launch_wide(d, problem, caps, caps.subgroup() && !half);
      break;
    case MatmulStrategy::kStrided:
      d.kernel = caps.subgroup() ? KernelId::matmul_strided__f32_f32_f32_subgroup
                                 : KernelId::matmul_strided__f32_f32_f32;
      launch_wide(d, problem, caps, caps.subgroup());
      break;
    case MatmulStrategy::kTiled:
      d.kernel =
          weight_half ? KernelId::matmul_tiled__f32_f16_f32 : KernelId::matmul_tiled__f32_f32_f32;
      launch_tiled(d, problem);
      break;
  }
  d.set_push(problem.params);
  const double products = static_cast<double>(problem.batch) * problem.params.m * problem.params.n;
  d.flops = 2.0 * products * problem.params.k;
  d.bytes =
      4.0 * (products + static_cast<double>(problem.batch) * problem.params.m * problem.params.k) +
      (weight_half ? 2.0 : 4.0) * problem.params.n * static_cast<double>(problem.params.k);
  return d;
}

}  // namespace vkformer
