#include "ops/matmul_lowering.h"

#include <algorithm>

namespace vkformer {
namespace {

constexpr uint32_t kMostFewRows = 8;   // rows that matmul_rows and matmul_stream take
constexpr uint32_t kGroupColumns = 8;  // columns of one load of B
constexpr size_t kFormatConstant = 9;  // number of kFormat, in the variants that have one

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

// Whole panels, as weights/pack.h makes them: any column of the last one may be read.
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

bool half_arithmetic(const DeviceCaps& caps, Precision precision) {
  return precision == Precision::kF16 && caps.fp16();
}

// The variants of a strategy by how the weight is stored.
struct Variants {
  KernelId f32, f16, blocks;
};

KernelId variant_of(MatrixFormat format, const Variants& variants) {
  if (in_blocks(format)) return variants.blocks;
  return format == MatrixFormat::kF16 ? variants.f16 : variants.f32;
}

KernelId rows_kernel(MatrixFormat format, bool wide_loads) {
  if (wide_loads) {
    return variant_of(
        format, {KernelId::matmul_rows__f32_f32_f32_int64, KernelId::matmul_rows__f32_f16_f32_int64,
                 KernelId::matmul_rows__f32_blocks_f32_int64});
  }
  return variant_of(format, {KernelId::matmul_rows__f32_f32_f32, KernelId::matmul_rows__f32_f16_f32,
                             KernelId::matmul_rows__f32_blocks_f32});
}

KernelId wide_kernel(MatrixFormat format, const DeviceCaps& caps) {
  if (!caps.subgroup()) {
    return variant_of(format,
                      {KernelId::matmul_wide__f32_f32_f32, KernelId::matmul_wide__f32_f16_f32,
                       KernelId::matmul_wide__f32_blocks_f32});
  }
  return variant_of(format, {caps.int64() ? KernelId::matmul_wide__f32_f32_f32_subgroup_int64
                                          : KernelId::matmul_wide__f32_f32_f32_subgroup,
                             KernelId::matmul_wide__f32_f16_f32_subgroup,
                             KernelId::matmul_wide__f32_blocks_f32_subgroup});
}

KernelId literal_kernel(MatrixFormat format, bool single) {
  if (single) {
    return variant_of(format,
                      {KernelId::matmul_single__f32_f32_f32, KernelId::matmul_single__f32_f16_f32,
                       KernelId::matmul_single__f32_blocks_f32});
  }
  return variant_of(format, {KernelId::matmul_literal__f32_f32_f32_subgroup,
                             KernelId::matmul_literal__f32_f16_f32_subgroup,
                             KernelId::matmul_literal__f32_blocks_f32_subgroup});
}

void set_live(Dispatch& d, const MatmulProblem& problem, int axis, uint32_t rows_per_group) {
  if (!problem.rows_are_slots) return;
  d.live_axis = axis;
  d.slots_per_group = rows_per_group;
}

void launch_rows(Dispatch& d, const MatmulProblem& problem, const MatmulChoice& choice) {
  const MatmulParams& p = problem.params;
  const uint32_t rows = std::min(p.m, kMostFewRows);
  const uint32_t lanes = choice.lanes;
  const uint32_t slices = choice.slices;
  d.spec = {lanes * slices, rows, lanes, aligned_a(p), p.activation, slices};
  d.groups = {ceil_div(p.n, lanes * kGroupColumns), ceil_div(p.m, rows), problem.batch};
  set_live(d, problem, 1, rows);
}

// One row on its own, with the numbers of launch_rows in the SPIR-V.
void launch_single(Dispatch& d, const MatmulProblem& problem) {
  launch_rows(d, problem, {kAnyRows, MatmulStrategy::kRows, 0, 4, 1});
  d.spec[1] = 1;
  d.groups[1] = problem.params.m;
  set_live(d, problem, 1, 1);
}

void launch_stream(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps) {
  const MatmulParams& p = problem.params;
  const uint32_t rows = ceil_div(p.m, ceil_div(p.m, kMostFewRows));  // tiles of equal height
  const uint32_t lanes =
      caps.subgroup_size == 4 || caps.subgroup_size == 16 ? caps.subgroup_size : 8;
  d.spec = {lanes, rows, 1, aligned_a(p), p.activation};
  d.groups = {ceil_div(p.n, kPanelColumns), ceil_div(p.m, rows), problem.batch};
  set_live(d, problem, 1, rows);
}

void launch_wide(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps,
                 const MatmulChoice& tile, bool shuffles) {
  const MatmulParams& p = problem.params;
  // With shuffles the workgroup is one subgroup; without, a lane group of the usual vector width.
  const uint32_t lanes = shuffles ? caps.subgroup_size : std::clamp(caps.subgroup_size, 4u, 8u);
  d.spec = {lanes, tile.rows, tile.lanes, aligned_a(p), p.activation};
  d.groups = {ceil_div(p.m, tile.rows), ceil_div(p.n, lanes * tile.lanes * kGroupColumns),
              problem.batch};
  set_live(d, problem, 0, tile.rows);
}

void launch_strided(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps,
                    const MatmulChoice& tile) {
  if (can_run({kAnyRows, MatmulStrategy::kLiteral, 8}, caps)) {
    d.kernel = KernelId::matmul_strided__f32_f32_f32_subgroup_literal;
    return launch_wide(d, problem, caps, {kAnyRows, MatmulStrategy::kWide, 8, 1}, true);
  }
  d.kernel = caps.subgroup() ? KernelId::matmul_strided__f32_f32_f32_subgroup
                             : KernelId::matmul_strided__f32_f32_f32;
  launch_wide(d, problem, caps, tile, caps.subgroup());
}

void launch_tiled(Dispatch& d, const MatmulProblem& problem, const MatmulChoice& choice) {
  const MatmulParams& p = problem.params;
  const bool small = choice.rows <= 32 || p.n <= 32;
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

void launch_units(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps,
                  const MatmulChoice& choice) {
  const MatmulParams& p = problem.params;
  const MatrixUnit& unit = caps.matrix_units[choice.lanes];
  const UnitsGroup group = units_group(choice);
  const uint32_t block = choice.rows;
  const uint32_t invocations = group.count() * caps.subgroup_size;
  d.kernel = KernelId::matmul_units__f32_any_f32_matrix;
  d.spec = {
      invocations,   block,        block,  aligned_a(p), p.activation,
      unit.m,        unit.n,       unit.k, invocations,  static_cast<uint32_t>(problem.format),
      group.along_m, group.along_n};
  d.groups = {ceil_div(p.n, block), ceil_div(p.m, block), problem.batch};
  set_live(d, problem, 1, block);
}

// The tile of matmul_wide where the table's choice for so many rows is none of its own.
MatmulChoice software_tile(uint32_t m, const DeviceCaps& caps) {
  if (!caps.subgroup()) return {kAnyRows, MatmulStrategy::kWide, 14, 2};
  if (m <= 16) return {kAnyRows, MatmulStrategy::kWide, 8, 1};
  return {kAnyRows, MatmulStrategy::kWide, large_tile_rows(caps), 1};
}

// Halves are multiplied by matmul_rows and the plain tiles of matmul_wide, f32 and f16 weights
// only.
void launch_half(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps,
                 const MatmulChoice& choice) {
  const bool weight_half = problem.format == MatrixFormat::kF16;
  if (choice.strategy == MatmulStrategy::kWide) {
    d.kernel = weight_half ? KernelId::matmul_wide__f32_f16_f32_fp16
                           : KernelId::matmul_wide__f32_f32_f32_fp16;
    launch_wide(d, problem, caps, {kAnyRows, MatmulStrategy::kWide, 14, 2}, false);
    return;
  }
  d.kernel = weight_half ? KernelId::matmul_rows__f32_f16_f32_fp16
                         : KernelId::matmul_rows__f32_f32_f32_fp16;
  const MatmulChoice software{kAnyRows, MatmulStrategy::kRows, 0, 8, 1};
  launch_rows(d, problem, choice.strategy == MatmulStrategy::kRows ? choice : software);
}

void launch(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps, bool half,
            const MatmulChoice& choice) {
  const bool tiled = choice.strategy == MatmulStrategy::kTiled ||
                     choice.strategy == MatmulStrategy::kStrided ||
                     choice.strategy == MatmulStrategy::kUnits;
  if (half && !tiled && !in_blocks(problem.format)) return launch_half(d, problem, caps, choice);
  switch (choice.strategy) {
    case MatmulStrategy::kRows:
      d.kernel = rows_kernel(problem.format, caps.int64());
      return launch_rows(d, problem, choice);
    case MatmulStrategy::kStream:
      d.kernel = variant_of(problem.format, {KernelId::matmul_stream__f32_f32_f32_int64,
                                             KernelId::matmul_stream__f32_f16_f32_int64,
                                             KernelId::matmul_stream__f32_blocks_f32_int64});
      return launch_stream(d, problem, caps);
    case MatmulStrategy::kWide:
      d.kernel = wide_kernel(problem.format, caps);
      return launch_wide(d, problem, caps, choice, caps.subgroup());
    case MatmulStrategy::kLiteral:
      if (choice.rows > 1 && aligned_a(problem.params) == 0) {  // its tiles load A by fours
        return launch(d, problem, caps, half, software_tile(problem.params.m, caps));
      }
      d.kernel = literal_kernel(problem.format, choice.rows == 1);
      if (choice.rows == 1) return launch_single(d, problem);
      return launch_wide(d, problem, caps, {kAnyRows, MatmulStrategy::kWide, 8, 1}, true);
    case MatmulStrategy::kStrided:
      return launch_strided(d, problem, caps, choice);
    case MatmulStrategy::kTiled:
      d.kernel = variant_of(
          problem.format, {KernelId::matmul_tiled__f32_f32_f32, KernelId::matmul_tiled__f32_f16_f32,
                           KernelId::matmul_tiled__f32_blocks_f32});
      return launch_tiled(d, problem, choice);
    case MatmulStrategy::kUnits:
      return launch_units(d, problem, caps, choice);
  }
}

}  // namespace

MatmulChoice pick_matmul(const MatmulProblem& problem, const DeviceCaps& caps,
                         Precision precision) {
  const bool software = caps.device_class == DeviceClass::kSoftware;
  const uint32_t m = problem.params.m;
  const MatmulChoice tiled{kAnyRows, MatmulStrategy::kTiled,
                           static_cast<uint8_t>(m <= 32 ? 32 : 64)};
  if (!packed_like(problem) || problem.params.a_col_stride != 1) {
    if (!software) return tiled;
    MatmulChoice tile = software_tile(m, caps);
    tile.strategy = MatmulStrategy::kStrided;
    return tile;
  }
  const MatmulChoice choice = matmul_choice(caps, m, problem.format, precision);
  const bool needs_panels =
      choice.strategy == MatmulStrategy::kStream || choice.strategy == MatmulStrategy::kUnits;
  if (!needs_panels || in_panels(problem)) return choice;
  return software ? software_tile(m, caps) : tiled;
}

Dispatch launch_matmul(const Node& node, const MatmulProblem& problem, const DeviceCaps& caps,
                       Precision precision, const MatmulChoice& choice) {
  Dispatch d;
  d.label = node.label;
  launch(d, problem, caps, half_arithmetic(caps, precision), choice);
  d.set_push(problem.params);
  if (in_blocks(problem.format) && choice.strategy != MatmulStrategy::kUnits) {
    d.spec.resize(kFormatConstant);
    d.spec.push_back(static_cast<uint32_t>(problem.format));
  }
  const double products = static_cast<double>(problem.batch) * problem.params.m * problem.params.n;
  d.flops = 2.0 * products * problem.params.k;
  d.bytes =
      4.0 * (products + static_cast<double>(problem.batch) * problem.params.m * problem.params.k) +
      4.0 / kPanelColumns * problem.params.n *
          static_cast<double>(panel_words(problem.format, problem.params.k));
  return d;
}

}  // namespace vkformer
