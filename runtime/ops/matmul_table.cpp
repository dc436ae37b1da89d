#include "ops/matmul_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/matmul_strategy.h"
#include "software/strategies.h"

namespace vkformer {
namespace {

using enum MatmulStrategy;

// Few rows need more invocations than columns give: slices of K, summed in order.
constexpr MatmulChoice kFew{kMostFewRows, kRows, 0, 16, 8};

// The same in one slice: the order of sums does not depend on the rows.
constexpr MatmulChoice kFewInOrder{kMostFewRows, kRows, 0, 16, 1};

// Rows of the product, and the side of its square blocks up to there. A GPU with few registers has
// smaller ones for all rows.
constexpr std::pair<uint32_t, uint8_t> kBlocks[] = {{32, 32}, {256, 64}, {kAnyRows, 128}};

void add_tiled(std::vector<MatmulTableRow>& table, const DeviceCaps& caps) {
  auto block = static_cast<uint8_t>(std::min(32u, caps.gpu.matmul_block));
  for (const auto& [rows, wanted] : kBlocks) {
    if (can_run({rows, kTiled, wanted}, caps)) block = wanted;
    table.push_back({{rows, kTiled, block}});
  }
}

// The unit that does most in one operation, of those that can be used for blocks of `block` rows
// and columns.
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

// Blocks of matrix units; none where no unit of the device fits.
void add_units(std::vector<MatmulTableRow>& table, const DeviceCaps& caps) {
  for (const auto& [rows, block] : kBlocks) {
    std::optional<MatmulChoice> choice = units_choice(caps, block);
    if (!choice) choice = units_choice(caps, 32);
    if (!choice) return;
    choice->max_rows = rows;
    table.push_back({*choice});
  }
}

// Rows in bytes times weights in blocks: a few, by slices of K where that does not change bits.
// More by tiles, which a software device has no use for.
void add_dots(std::vector<MatmulTableRow>& table, const DeviceCaps& caps) {
  if (caps.device_class == DeviceClass::kSoftware) {
    const auto lanes = static_cast<uint8_t>(std::clamp(caps.subgroup_size, 4u, 8u));
    table.push_back({{kAnyRows, kDots, 0, lanes, 1}});
    return;
  }
  const uint8_t slices = caps.sums_in_order ? 1 : 8;
  table.push_back({{kMostFewRows, kDots, 0, 16, slices}});
  for (const uint32_t rows : {32u, kAnyRows}) {
    const uint8_t block = rows == 32 || !can_run({rows, kDotTiles, 64}, caps) ? 32 : 64;
    table.push_back({{rows, kDotTiles, block}});
  }
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

std::vector<MatmulTableRow> matmul_table(const DeviceCaps& caps, Precision precision) {
  const bool software = caps.device_class == DeviceClass::kSoftware;
  std::vector<MatmulTableRow> table;
  if (precision == Precision::kInt8) add_dots(table, caps);
  if (software && has_software_strategies()) {
    const std::vector<MatmulTableRow> others = software_matmul_table(caps);
    table.insert(table.end(), others.begin(), others.end());
    return table;
  }
  table.push_back({caps.sums_in_order ? kFewInOrder : kFew});
  if (precision == Precision::kF16 && caps.matrix() && !software) add_units(table, caps);
  add_tiled(table, caps);
  return table;
}

std::optional<MatmulChoice> tuned_choice(const DeviceCaps& caps, uint32_t m, MatrixFormat format,
                                         Precision precision) {
  if (in_blocks(format)) return std::nullopt;
  for (const MatmulChoice& choice : caps.tuned_matmul[format == MatrixFormat::kF16 ? 1 : 0]) {
    const bool exact = choice.strategy != kUnits || precision == Precision::kF16;
    if (m <= choice.max_rows && exact && can_run(choice, caps)) return choice;
  }
  return std::nullopt;
}

MatmulChoice matmul_choice(const DeviceCaps& caps, uint32_t m, MatrixFormat format,
                           Precision precision) {
  if (const auto tuned = tuned_choice(caps, m, format, precision)) return *tuned;
  const std::vector<MatmulTableRow> table = matmul_table(caps, precision);
  for (const MatmulTableRow& row : table) {
    if (row.covers(m)) return row.choice;
  }
  return table.back().choice;
}

std::vector<MatmulChoice> matmul_candidates(const DeviceCaps& caps, uint32_t m,
                                            Precision precision) {
  DeviceCaps untuned = caps;
  untuned.tuned_matmul = {};
  std::vector<MatmulChoice> list{matmul_choice(untuned, m, MatrixFormat::kF32, precision)};
  const bool software = caps.device_class == DeviceClass::kSoftware && has_software_strategies();
  if (m <= kMostFewRows) {
    for (const auto& [lanes, slices] :
         {std::pair{4, 1}, {8, 1}, {4, 2}, {8, 4}, {16, 4}, {16, 8}, {4, 32}, {4, 64}, {2, 64}}) {
      if (software && slices > 2) continue;
      add_candidate(list, {m, kRows, 0, static_cast<uint8_t>(lanes), static_cast<uint8_t>(slices)},
                    caps);
    }
  }
  for (const MatmulChoice& choice : software_matmul_candidates(m))
    add_candidate(list, choice, caps);
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
