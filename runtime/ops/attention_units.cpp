#include "ops/attention_units.h"

#include <algorithm>

#include "ops/attention_strategy.h"
#include "ops/score_kinds.h"

namespace vkformer {
namespace {

constexpr uint32_t kLeastWidth = 32, kMostUnitWidth = 128;  // of E and Ev
constexpr uint32_t kLeastQueries = 9;  // as for products: fewer would leave most of a unit idle
constexpr uint32_t kUnitKeys = 32;     // of a tile
constexpr uint32_t kMostSubgroups = 4;

uint32_t padded(uint32_t width, uint32_t unit) {
  return (width + unit - 1) / unit * unit;
}

// What the kernel knows: no relative positions, no sparse terms, no sink scores, no report.
bool units_know(const AttentionAttrs& a) {
  const auto fits = [](uint32_t width) { return width >= kLeastWidth && width <= kMostUnitWidth; };
  return fits(a.head_width) && fits(a.value_width) && a.relative.kinds == 0 &&
         a.report == AttentionAttrs::Report::kValues &&
         (score_kinds(a.terms) & VKF_KIND_SPARSE) == 0 && (a.terms.flags & VKF_TERM_SINKS) == 0;
}

// As the shaders lay it out: tiles of queries and keys in halves, scores, sums, and four words. If
// scores do not stay in the units, weights in halves and one number a row are added.
uint32_t shared_bytes(const AttentionAttrs& a, const AttentionUnits& u) {
  const uint32_t depth = padded(a.head_width, u.unit.k);
  const uint32_t columns = padded(a.value_width, u.unit.n);
  uint32_t halves = u.rows() * (depth + 8) + kUnitKeys * (std::max(depth, columns) + 8);
  uint32_t floats = u.rows() * (kUnitKeys + 4) + u.rows() * u.unit.n + 4;
  if (!u.in_units) {
    halves += u.rows() * (kUnitKeys + 8);
    floats += u.rows();
  }
  return 2 * halves + 4 * floats;
}

// Every lane has an equal part of a row of scores.
bool shares_rows(const DeviceCaps& caps, const AttentionUnits& u) {
  return (u.parts & (u.parts - 1)) == 0 && caps.unit_lanes % u.parts == 0 &&
         u.unit.m * u.parts % caps.unit_lanes == 0;
}

bool can_use(const DeviceCaps& caps, const AttentionAttrs& a, const AttentionUnits& u) {
  const MatrixUnit& unit = u.unit;
  if (unit.m == 0 || unit.m > 64 || unit.n == 0 || unit.k == 0) return false;
  const bool whole =
      kUnitKeys % unit.n == 0 && kUnitKeys % unit.k == 0 && unit.n % 4 == 0 && unit.k % 4 == 0;
  return whole && (u.in_units || shares_rows(caps, u)) &&
         shared_bytes(a, u) <= caps.limits.max_shared_bytes &&
         u.subgroups <= caps.max_unit_subgroups &&
         u.subgroups * caps.unit_lanes <=
             std::min(caps.limits.max_invocations, caps.limits.max_group_size[0]);
}

}  // namespace

KernelId AttentionUnits::kernel() const {
  return in_units ? KernelId::attention_units_nv__f32_f32_f32_matrix2
                  : KernelId::attention_units__f32_f32_f32_matrix;
}

// Unmeasured, as all tables of GPUs. The unit that does most in one operation; more subgroups share
// the tiles of keys and values, as long as there are queries for them.
std::optional<AttentionUnits> attention_units(const DeviceCaps& caps, const AttentionAttrs& a,
                                              Precision precision) {
  if (precision != Precision::kF16 || !caps.matrix() || !units_know(a)) return std::nullopt;
  if (caps.device_class == DeviceClass::kSoftware || a.queries < kLeastQueries) return std::nullopt;
  std::optional<AttentionUnits> best;
  uint32_t most = 0;
  for (const MatrixUnit& unit : caps.matrix_units) {
    const uint32_t work = unit.m * unit.n * unit.k;
    if (work <= most) continue;
    for (uint32_t subgroups = kMostSubgroups; subgroups > 0; subgroups /= 2) {
      if (subgroups > 1 && subgroups / 2 * unit.m >= a.queries) continue;
      const uint32_t lanes = unit.m == 0 ? 1 : caps.unit_lanes / unit.m;
      // Weights become factors as they are, so a unit's sums must have the shape of its factors.
      const bool in_units = caps.matrix2() && unit.n == unit.k &&
                            !caps.is_demoted(KernelId::attention_units_nv__f32_f32_f32_matrix2);
      const AttentionUnits units{unit, subgroups, in_units ? 1 : std::max(2u, lanes), in_units};
      if (!can_use(caps, a, units) || caps.is_demoted(units.kernel())) continue;
      best = units;
      most = work;
      break;
    }
  }
  return best;
}

SpecConstants attention_units_spec(const DeviceCaps& caps, const AttentionAttrs& a,
                                   const AttentionUnits& u) {
  if (u.in_units) {
    return constants(AttentionUnitsNvConstants{.local_size = u.subgroups * caps.unit_lanes,
                                               .subgroups = u.subgroups,
                                               .unit_m = u.unit.m,
                                               .unit_n = u.unit.n,
                                               .width = a.head_width,
                                               .value_width = a.value_width,
                                               .kinds = score_kinds(a.terms),
                                               .softcap = softcap_bits(a.softcap),
                                               .quads = elements_of_load(a) >= 4});
  }
  return constants(AttentionUnitsConstants{.local_size = u.subgroups * caps.unit_lanes,
                                           .subgroups = u.subgroups,
                                           .lanes = caps.unit_lanes,
                                           .parts = u.parts,
                                           .unit_m = u.unit.m,
                                           .unit_n = u.unit.n,
                                           .unit_k = u.unit.k,
                                           .width = a.head_width,
                                           .value_width = a.value_width,
                                           .kinds = score_kinds(a.terms),
                                           .softcap = softcap_bits(a.softcap),
                                           .quads = elements_of_load(a) >= 4});
}

}  // namespace vkformer
