#include "ops/matmul_strategy.h"

#include <algorithm>

#include "ops/matmul_dots.h"
#include "params/activation.h"
#include "software/strategies.h"

namespace vkformer {
namespace {

constexpr uint32_t kUnitsDepth = 32;  // of a block of matmul_units

KernelId rows_kernel(const MatmulCall& call) {
  const MatrixFormat format = call.problem.format;
  if (call.caps.int64()) {
    return variant_of(
        format, {KernelId::matmul_rows__f32_f32_f32_int64, KernelId::matmul_rows__f32_f16_f32_int64,
                 KernelId::matmul_rows__f32_blocks_f32_int64});
  }
  return variant_of(format, {KernelId::matmul_rows__f32_f32_f32, KernelId::matmul_rows__f32_f16_f32,
                             KernelId::matmul_rows__f32_blocks_f32});
}

bool rows_run(const MatmulChoice& c, const DeviceCaps& caps) {
  const uint32_t most = std::min(caps.limits.max_invocations, caps.limits.max_group_size[0]);
  // Two quads of every invocation and row in 16 KiB of shared memory.
  return c.lanes > 0 && c.slices > 0 && uint32_t{c.lanes} * c.slices <= most &&
         2u * rows_of_pass(caps, std::min(c.max_rows, kMostFewRows), kMostFewRows) * c.lanes *
                 c.slices * 16u <=
             16384u;
}

bool rows_take(const MatmulCall& call, const MatmulChoice&) {
  return packed_like(call.problem);
}

void launch_rows(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t) {
  const MatmulParams& p = call.problem.params;
  const bool packed = in_blocks(call.problem.format);
  const uint32_t most = packed ? call.caps.gpu.matmul_packed_rows : kMostFewRows;
  const uint32_t rows = rows_of_pass(call.caps, p.m, most);
  const uint32_t lanes = choice.lanes;
  const uint32_t slices = choice.slices;
  d.kernel = rows_kernel(call);
  d.set_constants(MatmulRowsConstants{.local_size = lanes * slices,
                                      .rows = rows,
                                      .column_lanes = lanes,
                                      .slices = slices,
                                      .norm = call.problem.norm,
                                      .ahead = loads_ahead(call.caps, rows),
                                      .aligned_a = aligned_a(p),
                                      .activation = p.activation,
                                      .format = format_of(call.problem)});
  d.groups = {ceil_div(p.m, rows), ceil_div(p.n, lanes * kGroupColumns), call.problem.batch};
  set_live(d, call.problem, 0, rows);
}

bool tiled_runs(const MatmulChoice& c, const DeviceCaps& caps) {
  const uint32_t most = std::min(caps.limits.max_invocations, caps.limits.max_group_size[0]);
  if (c.rows != 16 && c.rows != 32 && c.rows != 64 && c.rows != 128) return false;
  return c.rows <= caps.gpu.matmul_block && 2u * c.rows <= most;
}

bool tiled_takes(const MatmulCall&, const MatmulChoice&) {
  return true;  // any strides, any format
}

KernelId tiled_kernel(const MatmulCall& call) {
  const MatrixFormat format = call.problem.format;
  if (call.halves && call.caps.gpu.half_blocks) {
    return format == MatrixFormat::kF16 ? KernelId::matmul_tiled__f32_f16_f32_fp16
                                        : KernelId::matmul_tiled__f32_f32_f32_fp16;
  }
  return variant_of(format,
                    {KernelId::matmul_tiled__f32_f32_f32, KernelId::matmul_tiled__f32_f16_f32,
                     KernelId::matmul_tiled__f32_blocks_f32});
}

// Fours of neighboring elements at multiples of 4, in A (1) and B (2), and whole steps of K (4),
// as matmul_tiled asks for.
uint32_t wide_operands(const MatmulProblem& problem) {
  const MatmulParams& p = problem.params;
  const bool a = p.a_col_stride == 1 && aligned_a(p) != 0;
  const bool b = p.b_col_stride == 1 && p.b_offset % 4 == 0 && p.b_row_stride % 4 == 0 &&
                 p.b_batch_stride % 4 == 0 && p.b_panel_stride % 4 == 0 &&
                 (in_panels(problem) || p.n % 4 == 0);
  return (a ? 1u : 0u) | (b ? 2u : 0u) | (p.k > 0 && p.k % 8 == 0 ? 4u : 0u);
}

void launch_tiled(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t parts) {
  const MatmulProblem& problem = call.problem;
  const MatmulParams& p = problem.params;
  const uint32_t block = tiled_block(problem, choice);
  d.kernel = tiled_kernel(call);
  d.set_constants(MatmulTiledConstants{.local_size = 2 * block,
                                       .block = block,
                                       .tile_m = tile_rows_of_invocation(block),
                                       .tile_n = block == 128 ? 8u : 4u,
                                       .activation = parts > 0 ? kActivationNone : p.activation,
                                       .along_m = p.a_row_stride == 1 && p.a_col_stride != 1,
                                       .along_k = p.b_row_stride == 1 && p.b_col_stride != 1,
                                       .wide = wide_operands(problem),
                                       .parts = std::max(parts, 1u),
                                       .format = format_of(problem)});
  d.groups = {ceil_div(p.n, block), ceil_div(p.m, block), problem.batch * std::max(parts, 1u)};
  set_live(d, problem, 1, block);
}

uint32_t tiled_parts(const MatmulProblem& problem, const DeviceCaps& caps,
                     const MatmulChoice& choice) {
  constexpr uint32_t kMostParts = 8, kLeastSteps = 256;  // fewer are not worth the second pass
  if (caps.sums_in_order) return 0;
  const MatmulParams& p = problem.params;
  const uint64_t blocks = blocks_of(problem, tiled_block(problem, choice));
  const uint64_t wanted = blocks_wanted(caps);
  if (blocks == 0 || blocks >= wanted || p.m > caps.limits.max_group_count[1]) return 0;
  const uint32_t parts = std::min({static_cast<uint32_t>(wanted / blocks), p.k / kLeastSteps,
                                   kMostParts, caps.limits.max_group_count[2] / problem.batch});
  return parts > 1 ? parts : 0;
}

// Whether blocks are whole shares of whole units, and fit.
bool units_run(const MatmulChoice& c, const DeviceCaps& caps) {
  if (!caps.matrix() || c.lanes >= caps.matrix_units.size()) return false;
  const MatrixUnit& u = caps.matrix_units[c.lanes];
  const uint32_t block = c.rows;
  if ((block != 32 && block != 64 && block != 128) || u.m == 0 || u.n == 0 || u.k == 0)
    return false;
  const UnitsGroup group = units_group(c, caps);
  const bool whole = block / group.along_m % u.m == 0 && block / group.along_n % u.n == 0 &&
                     kUnitsDepth % u.k == 0 && u.n % 4 == 0 && u.k % 4 == 0;
  // Blocks of A and B in halves, one tile of sums a subgroup, and a vector of marks.
  const uint32_t halves = 2 * block * (kUnitsDepth + 8);
  const uint32_t shared = 2 * halves + 4 * group.count() * u.m * u.n + 16;
  const uint32_t invocations = group.count() * caps.unit_lanes;
  return whole && group.count() <= caps.max_unit_subgroups &&
         shared <= caps.limits.max_shared_bytes &&
         invocations <= std::min(caps.limits.max_invocations, caps.limits.max_group_size[0]);
}

bool units_take(const MatmulCall& call, const MatmulChoice&) {
  return packed_like(call.problem) && in_panels(call.problem);
}

void launch_units(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t) {
  const MatmulProblem& problem = call.problem;
  const MatmulParams& p = problem.params;
  const MatrixUnit& unit = call.caps.matrix_units[choice.lanes];
  const UnitsGroup group = units_group(choice, call.caps);
  const uint32_t block = choice.rows;
  d.kernel = KernelId::matmul_units__f32_any_f32_matrix;
  d.set_constants(MatmulUnitsConstants{.local_size = group.count() * call.caps.unit_lanes,
                                       .block_m = block,
                                       .block_n = block,
                                       .aligned_a = aligned_a(p),
                                       .activation = p.activation,
                                       .unit_m = unit.m,
                                       .unit_n = unit.n,
                                       .unit_k = unit.k,
                                       .format = format_of(problem),
                                       .subgroups_m = group.along_m,
                                       .subgroups_n = group.along_n});
  d.groups = {ceil_div(p.n, block), ceil_div(p.m, block), problem.batch};
  set_live(d, problem, 1, block);
}

}  // namespace

uint32_t rows_of_pass(const DeviceCaps& caps, uint32_t m, uint32_t most) {
  const bool software = caps.device_class == DeviceClass::kSoftware;
  const uint32_t rows =
      software ? kMostFewRows : std::min({caps.gpu.matmul_rows, most, kMostFewRows});
  return ceil_div(m, ceil_div(m, rows));
}

const MatmulStrategyRow& strategy_row(MatmulStrategy strategy) {
  static constexpr MatmulStrategyRow kRowsRow{rows_run, rows_take, launch_rows};
  static constexpr MatmulStrategyRow kTiledRow{tiled_runs, tiled_takes, launch_tiled, tiled_parts};
  static constexpr MatmulStrategyRow kUnitsRow{units_run, units_take, launch_units};
  switch (strategy) {
    case MatmulStrategy::kRows:
      return kRowsRow;
    case MatmulStrategy::kTiled:
      return kTiledRow;
    case MatmulStrategy::kUnits:
      return kUnitsRow;
    case MatmulStrategy::kDots:
      return dots_row();
    case MatmulStrategy::kDotTiles:
      return dot_tiles_row();
    default:
      return software_strategy_row(strategy);
  }
}

bool packed_like(const MatmulProblem& problem) {
  const MatmulParams& p = problem.params;
  return p.a_col_stride == 1 && p.b_col_stride == 1 && p.b_row_stride % kGroupColumns == 0 &&
         p.b_offset % kGroupColumns == 0 && p.b_batch_stride % kGroupColumns == 0 &&
         p.b_panel_stride % kGroupColumns == 0;
}

bool in_panels(const MatmulProblem& problem) {
  const MatmulParams& p = problem.params;
  if (in_blocks(problem.format)) return true;
  return p.b_col_stride == 1 && p.b_row_stride == kPanelColumns &&
         p.b_offset % kPanelColumns == 0 && p.b_batch_stride % kPanelColumns == 0 &&
         p.b_panel_stride % kPanelColumns == 0;
}

uint32_t aligned_a(const MatmulParams& p) {
  return p.a_offset % 4 == 0 && p.a_row_stride % 4 == 0 && p.a_batch_stride % 4 == 0 ? 1 : 0;
}

void set_live(Dispatch& d, const MatmulProblem& problem, int axis, uint32_t rows_per_group) {
  if (!problem.rows_are_slots) return;
  d.live_axis = axis;
  d.slots_per_group = rows_per_group;
}

KernelId variant_of(MatrixFormat format, const MatmulVariants& variants) {
  if (in_blocks(format)) return variants.blocks;
  return format == MatrixFormat::kF16 ? variants.f16 : variants.f32;
}

uint32_t loads_ahead(const DeviceCaps& caps, uint32_t rows) {
  const bool software = caps.device_class == DeviceClass::kSoftware;
  return software || rows > 1 ? 1 : caps.gpu.matmul_ahead;
}

uint32_t tiled_block(const MatmulProblem& problem, const MatmulChoice& choice) {
  return problem.params.n <= 32 ? std::min<uint32_t>(choice.rows, 32) : choice.rows;
}

uint64_t blocks_of(const MatmulProblem& problem, uint32_t block) {
  const MatmulParams& p = problem.params;
  return uint64_t{ceil_div(p.n, block)} * ceil_div(p.m, block) * problem.batch;
}

// One for each of its units. Where the driver does not say how many it has, a discrete GPU is taken
// to have some tens, others a handful.
uint64_t blocks_wanted(const DeviceCaps& caps) {
  if (caps.compute_units > 0) return caps.compute_units;
  return caps.device_class == DeviceClass::kDiscrete ? 24 : 8;
}

UnitsGroup units_group(const MatmulChoice& choice, const DeviceCaps& caps) {
  // Of a lane. Those of subgroups of 8 and 16 (Intel) have 128 registers, others 255 or more.
  const uint32_t most_sums = caps.unit_lanes == 8 || caps.unit_lanes == 16 ? 32 : 64;
  const uint32_t sums = choice.rows * uint32_t{choice.rows} / std::max(1u, caps.unit_lanes);
  UnitsGroup group{choice.rows == 32 ? 1u : 2u, choice.rows == 128 ? 4u : 2u};
  while (sums > most_sums * group.count() && 2 * group.count() <= caps.max_unit_subgroups) {
    (group.along_m < group.along_n ? group.along_m : group.along_n) *= 2;
  }
  return group;
}

}  // namespace vkformer
