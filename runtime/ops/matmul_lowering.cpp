#include "ops/matmul_lowering.h"

#include <algorithm>

#include "params/activation.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostFewRows = 8;   // rows that matmul_rows and matmul_stream take
constexpr uint32_t kGroupColumns = 8;  // columns of one load of B
constexpr uint32_t kSlabRows = 4;      // rows of a tile of matmul_slabs
constexpr uint32_t kHeldColumns = 32;  // columns of a workgroup of matmul_stationary

uint32_t ceil_div(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

uint32_t format_of(const MatmulProblem& problem) {
  return static_cast<uint32_t>(problem.format);
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

// Whether matmul_slabs takes it: whole slabs, in the order of the table, and no more than it holds.
bool in_slabs(const MatmulProblem& problem, const DeviceCaps& caps) {
  constexpr uint32_t kSlab = kSlabSteps * kPanelColumns;  // elements
  const MatmulParams& p = problem.params;
  if (problem.format != MatrixFormat::kF32 || !in_panels(problem) || aligned_a(p) == 0)
    return false;
  const uint64_t panels = ceil_div(p.n, kPanelColumns);
  const uint64_t end =
      p.b_offset + uint64_t{problem.batch - 1} * p.b_batch_stride + panels * p.b_panel_stride;
  return p.k % kSlabSteps == 0 && p.b_panel_stride == p.k * kPanelColumns &&
         p.b_offset % kSlab == 0 && p.b_batch_stride % kSlab == 0 &&
         end / kSlab <= caps.compiler.max_table_parts &&
         ceil_div(p.m, kSlabRows) <= caps.limits.max_group_count[0];
}

// The steps of K that matmul_stationary has weights of at a time: as many as rows are whole parts
// of, in the order of the table. 0: it does not take the product.
uint32_t held_steps(const MatmulProblem& problem, const DeviceCaps& caps) {
  const MatmulParams& p = problem.params;
  const uint32_t all = p.k | p.a_offset | p.a_row_stride | p.a_batch_stride;
  const uint32_t steps = all % kHeldSteps == 0 ? kHeldSteps : kHeldSteps / 2;
  const uint64_t end =
      p.a_offset + uint64_t{problem.batch - 1} * p.a_batch_stride + uint64_t{p.m} * p.a_row_stride;
  const bool fits = all % steps == 0 && end / steps <= caps.compiler.max_table_parts &&
                    ceil_div(p.n, kHeldColumns) <= caps.limits.max_group_count[1];
  // The sums of a gate lie apart (parts_of_k), where matmul_parts takes a row a group.
  const bool gate = (p.activation & kActivationGate) != 0;
  const uint64_t apart = uint64_t{16} * ceil_div(p.n, 4) * p.m * problem.batch;  // bytes
  const bool fits_apart =
      apart <= caps.limits.max_storage_range && p.m <= caps.limits.max_group_count[1];
  return fits && (!gate || fits_apart) && !problem.rows_are_slots ? steps : 0;
}

uint32_t tiled_block(const MatmulProblem& problem, const MatmulChoice& choice) {
  return problem.params.n <= 32 ? 32 : choice.rows;
}

uint64_t blocks_of(const MatmulProblem& problem, uint32_t block) {
  const MatmulParams& p = problem.params;
  return uint64_t{ceil_div(p.n, block)} * ceil_div(p.m, block) * problem.batch;
}

// Unmeasured. A discrete GPU has some tens of units that want a block each, others a handful.
uint64_t blocks_wanted(const DeviceCaps& caps) {
  return caps.device_class == DeviceClass::kDiscrete ? 24 : 8;
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
  d.set_constants(MatmulRowsConstants{.local_size = lanes * slices,
                                      .rows = rows,
                                      .column_lanes = lanes,
                                      .slices = slices,
                                      .aligned_a = aligned_a(p),
                                      .activation = p.activation,
                                      .format = format_of(problem)});
  d.groups = {ceil_div(p.n, lanes * kGroupColumns), ceil_div(p.m, rows), problem.batch};
  set_live(d, problem, 1, rows);
}

// One row on its own; the numbers of lanes, rows and slices are literals of the kernel.
void launch_single(Dispatch& d, const MatmulProblem& problem) {
  constexpr uint32_t kLanes = 4;
  const MatmulParams& p = problem.params;
  d.set_constants(MatmulRowsConstants{.local_size = kLanes,
                                      .rows = 1,
                                      .column_lanes = kLanes,
                                      .slices = 1,
                                      .aligned_a = aligned_a(p),
                                      .activation = p.activation,
                                      .format = format_of(problem)});
  d.groups = {ceil_div(p.n, kLanes * kGroupColumns), p.m, problem.batch};
  set_live(d, problem, 1, 1);
}

void launch_stream(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps) {
  const MatmulParams& p = problem.params;
  const uint32_t rows = ceil_div(p.m, ceil_div(p.m, kMostFewRows));  // tiles of equal height
  const uint32_t lanes =
      caps.subgroup_size == 4 || caps.subgroup_size == 16 ? caps.subgroup_size : 8;
  d.set_constants(MatmulStreamConstants{.lanes = lanes,
                                        .rows = rows,
                                        .aligned_a = aligned_a(p),
                                        .activation = p.activation,
                                        .format = format_of(problem)});
  d.groups = {ceil_div(p.n, kPanelColumns), ceil_div(p.m, rows), problem.batch};
  set_live(d, problem, 1, rows);
}

void launch_wide(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps,
                 const MatmulChoice& tile, bool shuffles) {
  const MatmulParams& p = problem.params;
  // With shuffles the workgroup is one subgroup; without, a lane group of the usual vector width.
  const uint32_t lanes = shuffles ? caps.subgroup_size : std::clamp(caps.subgroup_size, 4u, 8u);
  // Subgroups beyond 16 are those of GPUs that stand in for a software device, because their own
  // kernels are demoted.
  const uint32_t rows = std::min<uint32_t>(tile.rows, kWideSums / (lanes * tile.lanes));
  d.set_constants(MatmulWideConstants{.lanes = lanes,
                                      .rows = rows,
                                      .groups = tile.lanes,
                                      .aligned_a = aligned_a(p),
                                      .activation = p.activation,
                                      .format = format_of(problem)});
  d.groups = {ceil_div(p.m, rows), ceil_div(p.n, lanes * tile.lanes * kGroupColumns),
              problem.batch};
  set_live(d, problem, 0, rows);
}

// What the kernels with a table have as constants of what follows their sums.
uint32_t terms_of(const MatmulParams& p) {
  const uint32_t added = (p.bias_offset != kMatmulNone ? kTermBias : 0) |
                         (p.c_offset != kMatmulNone ? kTermAddend : 0);
  const bool plain = added == 0 && p.activation == kActivationNone && p.alpha == 1.0f;
  return added | (plain ? 0 : kTermFinish);
}

void launch_slabs(Dispatch& d, const MatmulProblem& problem) {
  const MatmulParams& p = problem.params;
  d.kernel = KernelId::matmul_slabs__f32_f32_f32_tables;
  d.set_constants(MatmulSlabsConstants{.activation = p.activation, .terms = terms_of(p)});
  d.table_binding = 1;
  d.table_part_bytes = kSlabSteps * kPanelColumns * 4;
  d.groups = {ceil_div(p.m, kSlabRows), ceil_div(p.n, kPanelColumns), problem.batch};
  set_live(d, problem, 0, kSlabRows);
}

void launch_stationary(Dispatch& d, const MatmulProblem& problem, uint32_t steps, bool apart) {
  // Holding weights takes as long as products of some 30 rows with them, so that a workgroup has
  // many; but these should stay in a near cache, and every core wants a workgroup.
  constexpr uint32_t kMostRows = 256, kFewestRows = 128, kGroupsWanted = 16;
  constexpr uint32_t kRowsStep = 32;  // every number of rows is a pipeline of its own
  const MatmulParams& p = problem.params;
  const uint32_t across = ceil_div(p.n, kHeldColumns) * problem.batch;
  const uint32_t blocks = std::max(ceil_div(p.m, kMostRows),
                                   std::min(ceil_div(kGroupsWanted, across), p.m / kFewestRows));
  const uint32_t rows =
      blocks <= 1 ? kMostRows : ceil_div(ceil_div(p.m, blocks), kRowsStep) * kRowsStep;
  d.kernel = steps == kHeldSteps ? KernelId::matmul_stationary__f32_any_f32_tables
                                 : KernelId::matmul_stationary__f32_any_f32_tables_short;
  d.set_constants(MatmulStationaryConstants{.activation = apart ? kActivationNone : p.activation,
                                            .terms = apart ? 0 : terms_of(p),
                                            .rows = rows,
                                            .format = format_of(problem)});
  d.table_binding = 0;
  d.table_part_bytes = steps * 4;
  d.groups = {ceil_div(p.m, rows), ceil_div(p.n, kHeldColumns), problem.batch};
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

// Fours of neighbouring elements at multiples of 4, in A (1) and B (2), as matmul_tiled asks for.
uint32_t wide_operands(const MatmulProblem& problem) {
  const MatmulParams& p = problem.params;
  const bool a = p.a_col_stride == 1 && aligned_a(p) != 0;
  const bool b = p.b_col_stride == 1 && p.b_offset % 4 == 0 && p.b_row_stride % 4 == 0 &&
                 p.b_batch_stride % 4 == 0 && p.b_panel_stride % 4 == 0 &&
                 (in_panels(problem) || p.n % 4 == 0);
  return (a ? 1u : 0u) | (b ? 2u : 0u);
}

void launch_tiled(Dispatch& d, const MatmulProblem& problem, const MatmulChoice& choice,
                  uint32_t parts) {
  const MatmulParams& p = problem.params;
  const uint32_t block = tiled_block(problem, choice);
  d.set_constants(MatmulTiledConstants{.local_size = 2 * block,
                                       .block = block,
                                       .tile_m = block == 32 ? 4u : 8u,
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

void launch_units(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps,
                  const MatmulChoice& choice) {
  const MatmulParams& p = problem.params;
  const MatrixUnit& unit = caps.matrix_units[choice.lanes];
  const UnitsGroup group = units_group(choice);
  const uint32_t block = choice.rows;
  d.kernel = KernelId::matmul_units__f32_any_f32_matrix;
  d.set_constants(MatmulUnitsConstants{.local_size = group.count() * caps.subgroup_size,
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

// The tile of matmul_wide where the table's choice for so many rows is none of its own.
MatmulChoice software_tile(uint32_t m, const DeviceCaps& caps) {
  if (!caps.subgroup()) return {kAnyRows, MatmulStrategy::kWide, 14, 2};
  if (m <= 16) return {kAnyRows, MatmulStrategy::kWide, 8, 1};
  return {kAnyRows, MatmulStrategy::kWide, large_tile_rows(caps), 1};
}

// What takes a product that is not in whole slabs.
MatmulChoice unslabbed(const MatmulProblem& problem, const DeviceCaps& caps) {
  constexpr uint32_t kBeyondLiteral = 6;  // rows from which on matmul_stationary beats it
  const uint32_t m = problem.params.m;
  if (m >= kBeyondLiteral && held_steps(problem, caps) > 0) return {m, MatmulStrategy::kStationary};
  const MatmulChoice literal{m, MatmulStrategy::kLiteral, static_cast<uint8_t>(m == 1 ? 1 : 8)};
  return can_run(literal, caps) ? literal : software_tile(m, caps);
}

// Whether halves are multiplied: by matmul_rows and the plain tiles of matmul_wide.
bool in_halves(const MatmulProblem& problem, const DeviceCaps& caps, Precision precision,
               const MatmulChoice& choice) {
  const bool tiled = choice.strategy == MatmulStrategy::kTiled ||
                     choice.strategy == MatmulStrategy::kStrided ||
                     choice.strategy == MatmulStrategy::kUnits;
  return half_arithmetic(caps, precision) && !tiled && !in_blocks(problem.format);
}

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
  launch_rows(d, problem, choice);
}

void launch(Dispatch& d, const MatmulProblem& problem, const DeviceCaps& caps,
            const MatmulChoice& choice, uint32_t parts) {
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
      d.kernel = literal_kernel(problem.format, choice.rows == 1);
      if (choice.rows == 1) return launch_single(d, problem);
      return launch_wide(d, problem, caps, {kAnyRows, MatmulStrategy::kWide, 8, 1}, true);
    case MatmulStrategy::kSlabs:
      return launch_slabs(d, problem);
    case MatmulStrategy::kStationary:
      return launch_stationary(d, problem, held_steps(problem, caps), parts > 0);
    case MatmulStrategy::kStrided:
      return launch_strided(d, problem, caps, choice);
    case MatmulStrategy::kTiled:
      d.kernel = variant_of(
          problem.format, {KernelId::matmul_tiled__f32_f32_f32, KernelId::matmul_tiled__f32_f16_f32,
                           KernelId::matmul_tiled__f32_blocks_f32});
      return launch_tiled(d, problem, choice, parts);
    case MatmulStrategy::kUnits:
      return launch_units(d, problem, caps, choice);
  }
}

// The table's block for a GPU, or a smaller one where that would leave much of it without work.
MatmulChoice tiled_choice(const MatmulProblem& problem, const DeviceCaps& caps) {
  MatmulChoice choice{kAnyRows, MatmulStrategy::kTiled, 32};
  for (const MatmulChoice& row : matmul_table(caps)) {
    if (row.strategy != MatmulStrategy::kTiled || problem.params.m > row.max_rows) continue;
    choice = row;
    break;
  }
  while (choice.rows > 32 && blocks_of(problem, choice.rows) < blocks_wanted(caps))
    choice.rows /= 2;
  return choice;
}

}  // namespace

MatmulChoice pick_matmul(const MatmulProblem& problem, const DeviceCaps& caps,
                         Precision precision) {
  const bool software = caps.device_class == DeviceClass::kSoftware;
  const uint32_t m = problem.params.m;
  if (!packed_like(problem) || problem.params.a_col_stride != 1) {
    if (!software) return tiled_choice(problem, caps);
    MatmulChoice tile = software_tile(m, caps);
    tile.strategy = MatmulStrategy::kStrided;
    return tile;
  }
  const MatmulChoice choice = matmul_choice(caps, m, problem.format, precision);
  const bool tuned = !in_blocks(problem.format) &&
                     !caps.tuned_matmul[problem.format == MatrixFormat::kF16 ? 1 : 0].empty();
  const bool tiled = choice.strategy == MatmulStrategy::kTiled && !tuned;
  return fitting_choice(problem, caps, precision, tiled ? tiled_choice(problem, caps) : choice);
}

MatmulChoice fitting_choice(const MatmulProblem& problem, const DeviceCaps& caps,
                            Precision precision, const MatmulChoice& choice) {
  const uint32_t m = problem.params.m;
  const MatmulChoice tile = software_tile(m, caps);
  if (in_halves(problem, caps, precision, choice)) {
    const bool has =
        choice.strategy == MatmulStrategy::kRows || choice.strategy == MatmulStrategy::kWide;
    return has ? choice : MatmulChoice{kAnyRows, MatmulStrategy::kRows, 0, 8, 1};
  }
  switch (choice.strategy) {
    case MatmulStrategy::kStream:
    case MatmulStrategy::kUnits:
      if (in_panels(problem)) return choice;
      return caps.device_class == DeviceClass::kSoftware ? tile : tiled_choice(problem, caps);
    case MatmulStrategy::kLiteral:  // tiles of it load A by fours
      return choice.rows == 1 || aligned_a(problem.params) != 0 ? choice : tile;
    case MatmulStrategy::kStationary:
      if (held_steps(problem, caps) > 0) return choice;
      return fitting_choice(problem, caps, precision, {m, MatmulStrategy::kSlabs, 4});
    case MatmulStrategy::kSlabs:
      if (in_slabs(problem, caps)) return choice;
      return fitting_choice(problem, caps, precision, unslabbed(problem, caps));
    default:
      return choice;
  }
}

uint32_t parts_of_k(const MatmulProblem& problem, const DeviceCaps& caps,
                    const MatmulChoice& choice) {
  constexpr uint32_t kMostParts = 8, kLeastSteps = 256;  // fewer are not worth the second pass
  const MatmulParams& p = problem.params;
  if (choice.strategy == MatmulStrategy::kStationary) {
    return (p.activation & kActivationGate) != 0 ? 1 : 0;  // Y has no room for a gate's sums
  }
  if (choice.strategy != MatmulStrategy::kTiled) return 0;
  const uint64_t blocks = blocks_of(problem, tiled_block(problem, choice));
  const uint64_t wanted = blocks_wanted(caps);
  if (blocks == 0 || blocks >= wanted || p.m > caps.limits.max_group_count[1]) return 0;
  const uint32_t parts = std::min({static_cast<uint32_t>(wanted / blocks), p.k / kLeastSteps,
                                   kMostParts, caps.limits.max_group_count[2] / problem.batch});
  return parts > 1 ? parts : 0;
}

PartsLayout parts_layout(const MatmulProblem& problem, uint32_t parts) {
  const uint32_t row_stride = ceil_div(problem.params.n, 4) * 4;
  const uint32_t matrix = row_stride * problem.params.m;
  return {row_stride, matrix, uint64_t{4} * problem.batch * parts * matrix};
}

Dispatch launch_matmul(const Node& node, const MatmulProblem& problem, const DeviceCaps& caps,
                       Precision precision, const MatmulChoice& choice, uint32_t parts) {
  Dispatch d;
  d.label = node.label;
  if (in_halves(problem, caps, precision, choice)) {
    launch_half(d, problem, caps, choice);
  } else {
    launch(d, problem, caps, choice, parts);
  }
  MatmulParams params = problem.params;
  if (parts > 0) {
    const PartsLayout layout = parts_layout(problem, parts);
    params.y_offset = 0;
    params.y_row_stride = layout.row_stride;
    params.y_batch_stride = layout.matrix;
  }
  d.set_push(params);
  const double products = static_cast<double>(problem.batch) * problem.params.m * problem.params.n;
  d.flops = 2.0 * products * problem.params.k;
  d.bytes = 4.0 * (std::max(parts, 1u) * products +
                   static_cast<double>(problem.batch) * problem.params.m * problem.params.k) +
            4.0 / kPanelColumns * problem.params.n *
                static_cast<double>(panel_words(problem.format, problem.params.k));
  return d;
}

Access result_access(const Dispatch& product) {
  // Only its rows are a table.
  return product.table_part_bytes > 0 && product.table_binding == 0 ? Access::kReadWrite
                                                                    : Access::kWrite;
}

Dispatch launch_parts(const Node& node, const MatmulProblem& problem, uint32_t parts) {
  constexpr uint32_t kLocalSize = 64;
  const PartsLayout layout = parts_layout(problem, parts);
  MatmulParams p = problem.params;
  p.k = parts;
  p.a_offset = 0;
  p.a_row_stride = layout.row_stride;
  p.a_col_stride = layout.matrix;
  p.a_batch_stride = parts * layout.matrix;
  Dispatch d;
  d.label = node.label;
  d.kernel = KernelId::matmul_parts__f32_any_f32;
  d.set_constants(MatmulPartsConstants{.local_size = kLocalSize, .activation = p.activation});
  d.groups = {ceil_div(p.n, 4 * kLocalSize), p.m, problem.batch};
  set_live(d, problem, 1, 1);
  d.set_push(p);
  const double products = static_cast<double>(problem.batch) * p.m * p.n;
  d.flops = products * parts;
  d.bytes = 4.0 * products * (parts + 1.0);
  return d;
}

}  // namespace vkformer
