#include "ops/matmul_table.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace vkformer {
namespace {

constexpr uint32_t kUnitsDepth = 32;    // of a block of matmul_units
constexpr uint32_t kFewRows = 8;        // at most, of a tile of matmul_rows and matmul_stream
constexpr uint32_t kBeyondSlabs = 32;   // rows from which on matmul_stationary beats matmul_slabs
constexpr uint32_t kStreamedRows = 16;  // two tiles of matmul_stream; more gain nothing

using enum MatmulStrategy;

// Lanes of a workgroup that streams a panel, or half of one, row by row.
uint8_t software_lanes(const DeviceCaps& caps) {
  return static_cast<uint8_t>(std::clamp(caps.subgroup_size, 4u, 8u));
}

// Measured on lavapipe and SwiftShader (bench/results).
std::vector<MatmulChoice> software_table(const DeviceCaps& caps) {
  const MatmulChoice rows{kFewRows, kRows, 0, software_lanes(caps), 1};
  if (!caps.subgroup()) return {rows, {kAnyRows, kWide, 14, 2}};
  if (can_run({kAnyRows, kSlabs, 4}, caps)) {
    return {{kBeyondSlabs - 1, kSlabs, 4}, {kAnyRows, kStationary}};
  }
  if (can_run({1, kLiteral, 1}, caps)) return {{1, kLiteral, 1}, {kAnyRows, kLiteral, 8}};
  const MatmulChoice many{kAnyRows, kWide, large_tile_rows(caps), 1};
  if (can_run({kStreamedRows, kStream}, caps)) return {{kStreamedRows, kStream}, many};
  // Small products take a small tile: it compiles in half the time, which counts at a cold start.
  return {{3, kRows, 0, software_lanes(caps), 1}, {16, kWide, 8, 1}, many};
}

// Unmeasured. Few rows need more invocations than columns give: slices of K, summed in order.
std::vector<MatmulChoice> gpu_table(const DeviceCaps& caps) {
  std::vector<MatmulChoice> table = {
      {4, kRows, 0, 16, 8}, {kFewRows, kRows, 0, 16, 4}, {32, kTiled, 32}, {256, kTiled, 64}};
  const MatmulChoice large{kAnyRows, kTiled, 128};
  table.push_back(can_run(large, caps) ? large : MatmulChoice{kAnyRows, kTiled, 64});
  return table;
}

// The unit that does most in one operation and can be used, of blocks of so many rows and columns.
std::optional<MatmulChoice> units_choice(const DeviceCaps& caps, uint8_t block) {
  std::optional<MatmulChoice> best;
  uint32_t most = 0;
  for (size_t i = 0; i < std::min<size_t>(caps.matrix_units.size(), 255); ++i) {
    const MatrixUnit& u = caps.matrix_units[i];
    const MatmulChoice choice{kAnyRows, kUnits, block, static_cast<uint8_t>(i)};
    if (!can_run(choice, caps) || u.m * u.n * u.k <= most) continue;
    best = choice;
    most = u.m * u.n * u.k;
  }
  return best;
}

// Unmeasured, as gpu_table.
std::vector<MatmulChoice> units_table(const DeviceCaps& caps) {
  std::vector<MatmulChoice> table = gpu_table(caps);
  table.resize(2);  // few rows stream the weight
  constexpr std::pair<uint32_t, uint8_t> kBlocks[] = {{32, 32}, {256, 64}, {kAnyRows, 128}};
  for (const auto& [rows, block] : kBlocks) {
    std::optional<MatmulChoice> choice = units_choice(caps, block);
    if (!choice) choice = units_choice(caps, 32);
    if (!choice) return gpu_table(caps);
    choice->max_rows = rows;
    table.push_back(*choice);
  }
  return table;
}

// Whether blocks of matmul_units are whole shares of whole units, and fit.
bool units_fit(const MatmulChoice& c, const DeviceCaps& caps) {
  if (!caps.matrix() || c.lanes >= caps.matrix_units.size()) return false;
  const MatrixUnit& u = caps.matrix_units[c.lanes];
  const uint32_t block = c.rows;
  if ((block != 32 && block != 64 && block != 128) || u.m == 0 || u.n == 0 || u.k == 0)
    return false;
  const UnitsGroup group = units_group(c);
  const bool whole = block / group.along_m % u.m == 0 && block / group.along_n % u.n == 0 &&
                     kUnitsDepth % u.k == 0 && u.n % 4 == 0 && u.k % 4 == 0;
  // Blocks of A and B in halves, one tile of sums a subgroup, and one word.
  const uint32_t halves = block * (kUnitsDepth + 8) + kUnitsDepth * (block + 8);
  const uint32_t shared = 2 * halves + 4 * group.count() * u.m * u.n + 4;
  const uint32_t invocations = group.count() * caps.subgroup_size;
  return whole && shared <= caps.limits.max_shared_bytes &&
         invocations <= std::min(caps.limits.max_invocations, caps.limits.max_group_size[0]);
}

void add_candidate(std::vector<MatmulChoice>& list, const MatmulChoice& choice,
                   const DeviceCaps& caps) {
  const auto same = [&](MatmulChoice c) {
    c.max_rows = choice.max_rows;
    return c == choice;
  };
  if (can_run(choice, caps) && std::none_of(list.begin(), list.end(), same)) list.push_back(choice);
}

}  // namespace

uint8_t large_tile_rows(const DeviceCaps& caps) {
  return caps.compiler.fast_uniform_loads && !caps.compiler.streams_uniform_loads ? 16 : 32;
}

UnitsGroup units_group(const MatmulChoice& choice) {
  if (choice.rows == 128) return {2, 4};
  return {choice.rows == 64 ? 2u : 1u, 2};
}

std::vector<MatmulChoice> matmul_table(const DeviceCaps& caps, Precision precision) {
  if (caps.device_class == DeviceClass::kSoftware) return software_table(caps);
  const bool units = precision == Precision::kF16 && caps.matrix();
  return units ? units_table(caps) : gpu_table(caps);
}

MatmulChoice matmul_choice(const DeviceCaps& caps, uint32_t m, MatrixFormat format,
                           Precision precision) {
  if (!in_blocks(format)) {
    for (const MatmulChoice& choice : caps.tuned_matmul[format == MatrixFormat::kF16 ? 1 : 0]) {
      const bool exact = choice.strategy != kUnits || precision == Precision::kF16;
      if (m <= choice.max_rows && exact && can_run(choice, caps)) return choice;
    }
  }
  const std::vector<MatmulChoice> table = matmul_table(caps, precision);
  for (const MatmulChoice& choice : table) {
    if (m <= choice.max_rows) return choice;
  }
  return table.back();
}

bool can_run(const MatmulChoice& c, const DeviceCaps& caps) {
  const uint32_t most = caps.limits.max_invocations;
  switch (c.strategy) {
    case kRows:
      // Two quads of every invocation and row in 16 KiB of shared memory.
      return c.lanes > 0 && c.slices > 0 &&
             uint32_t{c.lanes} * c.slices <= std::min(most, caps.limits.max_group_size[0]) &&
             2u * std::min(c.max_rows, kFewRows) * c.lanes * c.slices * 16u <= 16384u;
    case kStream:
      return caps.compiler.streams_uniform_loads && caps.int64();
    case kWide: {
      const uint32_t lanes = caps.subgroup() ? caps.subgroup_size : software_lanes(caps);
      // Registers: a GPU has none for such tiles.
      return caps.device_class == DeviceClass::kSoftware && c.rows > 0 && c.lanes > 0 &&
             lanes <= most && uint32_t{c.rows} * c.lanes * lanes <= kWideSums;
    }
    case kLiteral:
      return (c.rows == 8 || (c.rows == 1 && c.max_rows <= kFewRows)) && caps.literal_tiles();
    case kSlabs:
      return c.rows == 4 && caps.compiler.wants_literals && caps.tables();
    case kStationary:
      return caps.compiler.wants_literals && caps.tables();
    case kTiled:
      return c.rows == 32 || c.rows == 64 ||
             (c.rows == 128 && std::min(most, caps.limits.max_group_size[0]) >= 256);
    case kUnits:
      return units_fit(c, caps);
    case kStrided:
      return false;  // for other layouts; nobody chooses it
  }
  return false;
}

std::vector<MatmulChoice> matmul_candidates(const DeviceCaps& caps, uint32_t m,
                                            Precision precision) {
  DeviceCaps untuned = caps;
  untuned.tuned_matmul = {};
  std::vector<MatmulChoice> list{matmul_choice(untuned, m, MatrixFormat::kF32, precision)};
  const bool software = caps.device_class == DeviceClass::kSoftware;
  if (m <= kFewRows) {
    for (const auto& [lanes, slices] :
         {std::pair{4, 1}, {8, 1}, {4, 2}, {8, 4}, {16, 4}, {16, 8}}) {
      if (software && slices > 2) continue;
      add_candidate(list, {m, kRows, 0, static_cast<uint8_t>(lanes), static_cast<uint8_t>(slices)},
                    caps);
    }
  }
  if (m <= kStreamedRows) add_candidate(list, {m, kStream}, caps);
  add_candidate(list, {m, kLiteral, static_cast<uint8_t>(m == 1 ? 1 : 8)}, caps);
  add_candidate(list, {m, kSlabs, 4}, caps);
  if (m > kFewRows) add_candidate(list, {m, kStationary}, caps);
  for (const auto& [rows, groups] : {std::pair{8, 1}, {16, 1}, {24, 1}, {32, 1}, {8, 2}, {14, 2}}) {
    // A tile of more than twice the rows computes more that nobody wants than it saves.
    if (static_cast<uint32_t>(rows) <= std::max(8u, 2 * m)) {
      add_candidate(list, {m, kWide, static_cast<uint8_t>(rows), static_cast<uint8_t>(groups)},
                    caps);
    }
  }
  if (!software) {
    add_candidate(list, {m, kTiled, 32}, caps);
    add_candidate(list, {m, kTiled, 64}, caps);
    add_candidate(list, {m, kTiled, 128}, caps);
  }
  if (precision != Precision::kF16) return list;
  for (size_t unit = 0; unit < caps.matrix_units.size(); ++unit) {
    for (const uint8_t block : {32, 64, 128}) {
      add_candidate(list, {m, kUnits, block, static_cast<uint8_t>(unit)}, caps);
    }
  }
  return list;
}

}  // namespace vkformer
