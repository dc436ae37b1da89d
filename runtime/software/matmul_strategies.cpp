#include <algorithm>

#include "params/activation.h"
#include "software/strategies.h"

namespace vkformer {
namespace {

using enum MatmulStrategy;

// Groups of 8 sums that a tile of matmul_wide may have: they pass through 16 KiB of shared memory.
constexpr uint32_t kWideSums = 512;
constexpr uint32_t kStreamedRows = 16;  // two tiles of matmul_stream; more gain nothing
constexpr uint32_t kSlabRows = 4;       // rows of a tile of matmul_slabs
constexpr uint32_t kHeldColumns = 32;   // columns of a workgroup of matmul_stationary
constexpr uint32_t kBeyondSlabs = 32;   // rows from which on matmul_stationary beats matmul_slabs
constexpr uint32_t kBeyondLiteral = 6;  // rows from which on it beats matmul_literal

// Lanes of a workgroup that streams a panel, or half of one, row by row.
uint8_t software_lanes(const DeviceCaps& caps) {
  return static_cast<uint8_t>(std::clamp(caps.subgroup_size, 4u, 8u));
}

// Rows of matmul_wide's tile for large products on a device with subgroups. Mesa 23 to 25 takes
// seconds to compile 32.
uint8_t large_tile_rows(const DeviceCaps& caps) {
  return caps.compiler.fast_uniform_loads && !caps.compiler.streams_uniform_loads ? 16 : 32;
}

bool stream_runs(const MatmulChoice&, const DeviceCaps& caps) {
  return caps.compiler.streams_uniform_loads && caps.int64();
}

bool stream_takes(const MatmulCall& call, const MatmulChoice&) {
  return !call.halves && packed_like(call.problem) && in_panels(call.problem) &&
         !is_gguf_format(call.problem.format);
}

void launch_stream(Dispatch& d, const MatmulCall& call, const MatmulChoice&, uint32_t) {
  const MatmulParams& p = call.problem.params;
  const uint32_t rows = ceil_div(p.m, ceil_div(p.m, kMostFewRows));  // tiles of equal height
  const uint32_t size = call.caps.subgroup_size;
  const uint32_t lanes = size == 4 || size == 16 ? size : 8;
  d.kernel = variant_of(call.problem.format, {KernelId::matmul_stream__f32_f32_f32_int64,
                                              KernelId::matmul_stream__f32_f16_f32_int64,
                                              KernelId::matmul_stream__f32_blocks_f32_int64});
  d.set_constants(MatmulStreamConstants{.lanes = lanes,
                                        .rows = rows,
                                        .aligned_a = aligned_a(p),
                                        .activation = p.activation,
                                        .format = format_of(call.problem)});
  d.groups = {ceil_div(p.n, kPanelColumns), ceil_div(p.m, rows), call.problem.batch};
  set_live(d, call.problem, 1, rows);
}

KernelId wide_kernel(const MatmulCall& call) {
  const MatrixFormat format = call.problem.format;
  if (call.halves) {
    return format == MatrixFormat::kF16 ? KernelId::matmul_wide__f32_f16_f32_fp16
                                        : KernelId::matmul_wide__f32_f32_f32_fp16;
  }
  if (!call.caps.subgroup()) {
    return variant_of(format,
                      {KernelId::matmul_wide__f32_f32_f32, KernelId::matmul_wide__f32_f16_f32,
                       KernelId::matmul_wide__f32_blocks_f32});
  }
  return variant_of(format, {call.caps.int64() ? KernelId::matmul_wide__f32_f32_f32_subgroup_int64
                                               : KernelId::matmul_wide__f32_f32_f32_subgroup,
                             KernelId::matmul_wide__f32_f16_f32_subgroup,
                             KernelId::matmul_wide__f32_blocks_f32_subgroup});
}

bool wide_runs(const MatmulChoice& c, const DeviceCaps& caps) {
  const uint32_t lanes = caps.subgroup() ? caps.subgroup_size : software_lanes(caps);
  // Registers: a GPU has none for such tiles.
  return caps.device_class == DeviceClass::kSoftware && c.rows > 0 && c.lanes > 0 &&
         lanes <= caps.limits.max_invocations && uint32_t{c.rows} * c.lanes * lanes <= kWideSums;
}

bool wide_takes(const MatmulCall& call, const MatmulChoice&) {
  return packed_like(call.problem);
}

// A tile of `rows` x (8 `groups` for every lane). With shuffles the workgroup is one subgroup;
// without, a lane group of the usual vector width.
void launch_tile(Dispatch& d, const MatmulCall& call, uint32_t most_rows, uint32_t groups,
                 bool shuffles) {
  const MatmulParams& p = call.problem.params;
  const uint32_t size = call.caps.subgroup_size;
  const uint32_t lanes = shuffles ? size : std::clamp(size, 4u, 8u);
  // Subgroups beyond 16 are those of GPUs that stand in for a software device, because their own
  // kernels are demoted.
  const uint32_t rows = std::min(most_rows, kWideSums / (lanes * groups));
  d.set_constants(MatmulWideConstants{.lanes = lanes,
                                      .rows = rows,
                                      .groups = groups,
                                      .aligned_a = aligned_a(p),
                                      .activation = p.activation,
                                      .format = format_of(call.problem)});
  d.groups = {ceil_div(p.m, rows), ceil_div(p.n, lanes * groups * kGroupColumns),
              call.problem.batch};
  set_live(d, call.problem, 0, rows);
}

void launch_wide(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t) {
  d.kernel = wide_kernel(call);
  if (call.halves) return launch_tile(d, call, 14, 2, false);
  launch_tile(d, call, choice.rows, choice.lanes, call.caps.subgroup());
}

bool literal_runs(const MatmulChoice& c, const DeviceCaps& caps) {
  return (c.rows == 8 || (c.rows == 1 && c.max_rows <= kMostFewRows)) && caps.literal_tiles();
}

bool literal_takes(const MatmulCall& call, const MatmulChoice& choice) {
  // Tiles load A by fours.
  return !call.halves && packed_like(call.problem) &&
         (choice.rows == 1 || aligned_a(call.problem.params) != 0);
}

// One row on its own; the numbers of lanes, rows and slices are literals of the kernel.
void launch_single(Dispatch& d, const MatmulProblem& problem) {
  constexpr uint32_t kLanes = 4;
  const MatmulParams& p = problem.params;
  d.kernel = variant_of(problem.format,
                        {KernelId::matmul_single__f32_f32_f32, KernelId::matmul_single__f32_f16_f32,
                         KernelId::matmul_single__f32_blocks_f32});
  d.set_constants(MatmulRowsConstants{.local_size = kLanes,
                                      .rows = 1,
                                      .column_lanes = kLanes,
                                      .slices = 1,
                                      .aligned_a = aligned_a(p),
                                      .activation = p.activation,
                                      .format = format_of(problem)});
  d.groups = {p.m, ceil_div(p.n, kLanes * kGroupColumns), problem.batch};
  set_live(d, problem, 0, 1);
}

void launch_literal(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t) {
  if (choice.rows == 1) return launch_single(d, call.problem);
  d.kernel = variant_of(call.problem.format, {KernelId::matmul_literal__f32_f32_f32_subgroup,
                                              KernelId::matmul_literal__f32_f16_f32_subgroup,
                                              KernelId::matmul_literal__f32_blocks_f32_subgroup});
  launch_tile(d, call, 8, 1, true);
}

// What the kernels with a table have as constants of what follows their sums.
uint32_t terms_of(const MatmulParams& p) {
  const uint32_t added = (p.bias_offset != kMatmulNone ? kTermBias : 0) |
                         (p.c_offset != kMatmulNone ? kTermAddend : 0);
  const bool plain = added == 0 && p.activation == kActivationNone && p.alpha == 1.0f;
  return added | (plain ? 0 : kTermFinish);
}

bool slabs_run(const MatmulChoice& c, const DeviceCaps& caps) {
  return c.rows == kSlabRows && caps.compiler.wants_literals && caps.tables();
}

// Whole slabs, in the order of the table, and no more than it holds.
bool slabs_take(const MatmulCall& call, const MatmulChoice&) {
  constexpr uint32_t kSlab = kSlabSteps * kPanelColumns;  // elements
  const MatmulProblem& problem = call.problem;
  const MatmulParams& p = problem.params;
  if (call.halves || problem.format != MatrixFormat::kF32 || !packed_like(problem) ||
      !in_panels(problem) || aligned_a(p) == 0) {
    return false;
  }
  const uint64_t panels = ceil_div(p.n, kPanelColumns);
  const uint64_t end =
      p.b_offset + uint64_t{problem.batch - 1} * p.b_batch_stride + panels * p.b_panel_stride;
  return p.k % kSlabSteps == 0 && p.b_panel_stride == p.k * kPanelColumns &&
         p.b_offset % kSlab == 0 && p.b_batch_stride % kSlab == 0 &&
         end / kSlab <= call.caps.compiler.max_table_parts &&
         ceil_div(p.m, kSlabRows) <= call.caps.limits.max_group_count[0];
}

void launch_slabs(Dispatch& d, const MatmulCall& call, const MatmulChoice&, uint32_t) {
  const MatmulParams& p = call.problem.params;
  d.kernel = KernelId::matmul_slabs__f32_f32_f32_tables;
  d.set_constants(MatmulSlabsConstants{.activation = p.activation, .terms = terms_of(p)});
  d.table_binding = 1;
  d.table_part_bytes = kSlabSteps * kPanelColumns * 4;
  d.groups = {ceil_div(p.m, kSlabRows), ceil_div(p.n, kPanelColumns), call.problem.batch};
  set_live(d, call.problem, 0, kSlabRows);
}

// The steps of K that matmul_stationary has weights of at a time. Rows are whole parts of that
// many, in the order of the table. 0: it does not take the product.
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

bool stationary_runs(const MatmulChoice&, const DeviceCaps& caps) {
  return caps.compiler.wants_literals && caps.tables();
}

bool stationary_takes(const MatmulCall& call, const MatmulChoice&) {
  return !call.halves && packed_like(call.problem) && held_steps(call.problem, call.caps) > 0;
}

void launch_stationary(Dispatch& d, const MatmulCall& call, const MatmulChoice&, uint32_t parts) {
  // Holding weights takes as long as products of some 30 rows with them, so that a workgroup has
  // many. But these should stay in a near cache, and every core wants a workgroup.
  constexpr uint32_t kMostRows = 256, kFewestRows = 128, kGroupsWanted = 16;
  constexpr uint32_t kRowsStep = 32;  // every number of rows is its own pipeline
  const MatmulProblem& problem = call.problem;
  const MatmulParams& p = problem.params;
  const uint32_t steps = held_steps(problem, call.caps);
  const bool apart = parts > 0;
  const uint32_t across = ceil_div(p.n, kHeldColumns) * problem.batch;
  const uint32_t blocks = std::max(ceil_div(p.m, kMostRows),
                                   std::min(ceil_div(kGroupsWanted, across), p.m / kFewestRows));
  const uint32_t rows =
      blocks <= 1 ? kMostRows : ceil_div(ceil_div(p.m, blocks), kRowsStep) * kRowsStep;
  d.kernel = steps == kHeldSteps ? KernelId::matmul_stationary__f32_any_f32_tables
                                 : KernelId::matmul_stationary__f32_any_f32_tables_short;
  // Kernels that finish add a 0, which makes 0 of -0; in reproducible precision this one does too.
  const uint32_t always = call.reproducible ? kTermFinish : 0;
  d.set_constants(MatmulStationaryConstants{.activation = apart ? kActivationNone : p.activation,
                                            .terms = apart ? 0 : terms_of(p) | always,
                                            .rows = rows,
                                            .format = format_of(problem)});
  d.table_binding = 0;
  d.table_part_bytes = steps * 4;
  d.groups = {ceil_div(p.m, rows), ceil_div(p.n, kHeldColumns), problem.batch};
}

// Y has no room for a gate's sums.
uint32_t stationary_parts(const MatmulProblem& problem, const DeviceCaps&, const MatmulChoice&) {
  return (problem.params.activation & kActivationGate) != 0 ? 1 : 0;
}

bool strided_runs(const MatmulChoice&, const DeviceCaps& caps) {
  return caps.device_class == DeviceClass::kSoftware;
}

bool strided_takes(const MatmulCall& call, const MatmulChoice&) {
  return call.problem.format == MatrixFormat::kF32;
}

void launch_strided(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t) {
  if (call.caps.literal_tiles()) {
    d.kernel = KernelId::matmul_strided__f32_f32_f32_subgroup_literal;
    return launch_tile(d, call, 8, 1, true);
  }
  d.kernel = call.caps.subgroup() ? KernelId::matmul_strided__f32_f32_f32_subgroup
                                  : KernelId::matmul_strided__f32_f32_f32;
  launch_tile(d, call, choice.rows, choice.lanes, call.caps.subgroup());
}

// The rows for packed weights, which are the first of the table.
std::vector<MatmulTableRow> packed_rows(const DeviceCaps& caps) {
  if (!caps.subgroup()) return {{{kMostFewRows, kRows, 0, software_lanes(caps), 1}}};
  std::vector<MatmulTableRow> table;
  if (can_run({kAnyRows, kSlabs, kSlabRows}, caps)) {
    table = {{{kBeyondSlabs - 1, kSlabs, kSlabRows}},
             {{kAnyRows, kStationary}, kBeyondLiteral},
             {{kAnyRows, kSlabs, kSlabRows}}};
  }
  if (can_run({1, kLiteral, 1}, caps)) {
    table.push_back({{1, kLiteral, 1}});
    table.push_back({{kAnyRows, kLiteral, 8}});
  }
  if (!table.empty()) return table;
  if (can_run({kStreamedRows, kStream}, caps)) return {{{kStreamedRows, kStream}}};
  return {{{3, kRows, 0, software_lanes(caps), 1}}};
}

}  // namespace

const MatmulStrategyRow& software_strategy_row(MatmulStrategy strategy) {
  static constexpr MatmulStrategyRow kStreamRow{stream_runs, stream_takes, launch_stream};
  static constexpr MatmulStrategyRow kWideRow{wide_runs, wide_takes, launch_wide};
  static constexpr MatmulStrategyRow kLiteralRow{literal_runs, literal_takes, launch_literal};
  static constexpr MatmulStrategyRow kSlabsRow{slabs_run, slabs_take, launch_slabs};
  static constexpr MatmulStrategyRow kStationaryRow{stationary_runs, stationary_takes,
                                                    launch_stationary, stationary_parts};
  static constexpr MatmulStrategyRow kStridedRow{strided_runs, strided_takes, launch_strided};
  switch (strategy) {
    case kStream:
      return kStreamRow;
    case kLiteral:
      return kLiteralRow;
    case kSlabs:
      return kSlabsRow;
    case kStationary:
      return kStationaryRow;
    case kStrided:
      return kStridedRow;
    default:
      return kWideRow;
  }
}

bool has_software_strategies() {
  return true;
}

std::vector<MatmulTableRow> software_matmul_table(const DeviceCaps& caps) {
  std::vector<MatmulTableRow> table = packed_rows(caps);
  // What takes the other products: any alignment, then any strides.
  for (const MatmulStrategy strategy : {kWide, kStrided}) {
    if (!caps.subgroup()) {
      table.push_back({{kAnyRows, strategy, 14, 2}});
      continue;
    }
    // Small products take a small tile: it compiles in half the time, which counts at a cold start.
    table.push_back({{16, strategy, 8, 1}});
    table.push_back({{kAnyRows, strategy, large_tile_rows(caps), 1}});
  }
  return table;
}

std::vector<MatmulChoice> software_matmul_candidates(uint32_t m) {
  std::vector<MatmulChoice> list;
  if (m <= kStreamedRows) list.push_back({m, kStream});
  list.push_back({m, kLiteral, static_cast<uint8_t>(m == 1 ? 1 : 8)});
  list.push_back({m, kSlabs, kSlabRows});
  if (m > kMostFewRows) list.push_back({m, kStationary});
  for (const auto& [rows, groups] : {std::pair{8, 1}, {16, 1}, {24, 1}, {32, 1}, {8, 2}, {14, 2}}) {
    // A tile of more than twice the rows computes more that nobody wants than it saves.
    if (static_cast<uint32_t>(rows) <= std::max(8u, 2 * m)) {
      list.push_back({m, kWide, static_cast<uint8_t>(rows), static_cast<uint8_t>(groups)});
    }
  }
  return list;
}

}  // namespace vkformer
