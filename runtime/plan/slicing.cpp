#include "plan/slicing.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "kernels/catalogue.h"

namespace vkformer {
namespace {

// Operations that a byte moved counts as; only for estimates of dispatches not measured yet.
constexpr double kFlopsPerByte = 2;
// How much a new measurement of a whole dispatch counts against the older ones.
constexpr double kNewWeight = 0.3;
// A piece shorter than this is mostly its fixed cost, which it teaches.
constexpr double kSmallShare = 0.02;
// The device learns what changed by this part of it: telling takes a lock.
constexpr double kWorthTelling = 0.02;
// Cutting a dispatch pays where the piece is longer than this number of fixed costs.
constexpr double kWorthCutting = 4;

double group_count(const std::array<uint32_t, 3>& groups) {
  return static_cast<double>(groups[0]) * groups[1] * groups[2];
}

// The two axes that a dispatch is cut along, the longest first.
struct CutAxes {
  size_t first = 0;
  size_t second = 0;
  uint32_t rows = 1;     // groups along the first
  uint32_t columns = 1;  // and the second
};

CutAxes cut_axes(const Dispatch& d) {
  std::array<size_t, 3> order = {0, 1, 2};
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return d.groups[a] > d.groups[b]; });
  return {order[0], order[1], d.groups[order[0]], d.groups[order[1]]};
}

// At most `count` steps from step `begin` on: whole rows, or a part of one.
DispatchPart cut(const Dispatch& d, const CutAxes& axes, uint32_t begin, uint32_t count) {
  DispatchPart part{{0, 0, 0}, d.groups, 0};
  const uint32_t row = begin / axes.columns;
  const uint32_t column = begin % axes.columns;
  part.base[axes.first] = row;
  if (column == 0 && count >= axes.columns) {
    part.groups[axes.first] = std::min(count / axes.columns, axes.rows - row);
  } else {
    part.groups[axes.first] = 1;
    part.base[axes.second] = column;
    part.groups[axes.second] = std::min(count, axes.columns - column);
  }
  part.flops = d.flops * group_count(part.groups) / std::max(1.0, group_count(d.groups));
  return part;
}

}  // namespace

bool is_indirect(const Dispatch& d, double max_flops) {
  return d.live_axis >= 0 && (max_flops <= 0 || d.flops <= max_flops);
}

std::vector<DispatchPart> split_dispatch(const Dispatch& d, double max_flops) {
  // The lowering kept the group counts within the device's limits.
  const CutAxes axes = cut_axes(d);
  const uint32_t count = axes.rows;
  const double wanted = max_flops > 0 ? d.flops / max_flops : 1;
  const auto parts = static_cast<uint32_t>(
      std::clamp(std::ceil(wanted), 1.0, static_cast<double>(std::max(1u, count))));
  const uint32_t step = (count + parts - 1) / std::max(1u, parts);
  std::vector<DispatchPart> list;
  for (uint32_t begin = 0; begin < count; begin += step) {
    list.push_back(cut(d, axes, begin * axes.columns, step * axes.columns));
  }
  return list;
}

std::vector<DispatchPart> scattered_parts(const Dispatch& d, uint32_t seed) {
  constexpr uint32_t kMostParts = 4096;
  const CutAxes axes = cut_axes(d);
  const bool many = uint64_t{axes.rows} * axes.columns > kMostParts;
  const uint32_t step = many ? axes.columns : 1;
  std::vector<DispatchPart> list;
  for (uint32_t begin = 0; begin < axes.rows * axes.columns; begin += step) {
    list.push_back(cut(d, axes, begin, step));
  }
  std::shuffle(list.begin(), list.end(), std::mt19937(seed));
  return list;
}

PlanPosition begin_of(const Plan& plan, const PlanPiece& piece) {
  const CutAxes axes = cut_axes(plan.dispatches[piece.dispatch]);
  const std::array<uint32_t, 3>& base = piece.part.base;
  return {piece.dispatch, base[axes.first] * axes.columns + base[axes.second]};
}

std::vector<PlanPiece> all_pieces(const Plan& plan, double max_flops) {
  std::vector<PlanPiece> pieces;
  for (uint32_t i = 0; i < plan.dispatches.size(); ++i) {
    const Dispatch& d = plan.dispatches[i];
    if (is_indirect(d, max_flops)) {
      pieces.push_back({i, {{0, 0, 0}, d.groups, d.flops}});
      continue;
    }
    for (const DispatchPart& part : split_dispatch(d, max_flops)) pieces.push_back({i, part});
  }
  return pieces;
}

SliceCosts::SliceCosts(const Plan& plan, double flops_per_microsecond, KernelCosts& known)
    : known_(known) {
  for (const Dispatch& d : plan.dispatches) {
    const uint64_t key = cost_key(d);
    const double told = known.of_dispatch(key);
    dispatches_.push_back({.work = std::max(1.0, d.flops + kFlopsPerByte * d.bytes),
                           .microseconds = told,
                           .told = told,
                           .key = key,
                           .kernel = d.kernel,
                           .groups = std::max(1.0, group_count(d.groups))});
    const Rate rate = known.of_kernel(std::string(kernel_info(d.kernel).name));
    if (rate.microseconds > 0) kernels_[d.kernel] = rate;
  }
  all_ = {flops_per_microsecond, 1.0};
  if (known.fixed() > 0) fixed_ = known.fixed();
}

double SliceCosts::share(const PlanPiece& piece) const {
  return group_count(piece.part.groups) / dispatches_[piece.dispatch].groups;
}

double SliceCosts::share_microseconds(uint32_t dispatch, double share) const {
  const Learned& d = dispatches_[dispatch];
  if (d.microseconds > 0) return d.microseconds * share;
  const auto kernel = kernels_.find(d.kernel);
  const Rate& rate = kernel == kernels_.end() ? all_ : kernel->second;
  return d.work * share * rate.microseconds / rate.work;
}

double SliceCosts::microseconds(const PlanPiece& piece) const {
  return fixed_ + share_microseconds(piece.dispatch, share(piece));
}

double SliceCosts::total_work() const {
  double sum = 0;
  for (const Learned& d : dispatches_) sum += d.work;
  return sum;
}

double SliceCosts::total_microseconds() const {
  double sum = 0;
  for (uint32_t i = 0; i < dispatches_.size(); ++i) sum += fixed_ + share_microseconds(i, 1.0);
  return sum;
}

double SliceCosts::measured_microseconds() const {
  double sum = 0;
  for (uint32_t i = 0; i < dispatches_.size(); ++i) {
    const Learned& d = dispatches_[i];
    if (d.microseconds > 0) sum += fixed_ + d.microseconds;
  }
  return sum;
}

void SliceCosts::observe(const PlanPiece& piece, double microseconds) {
  if (!(microseconds > 0) || piece.dispatch >= dispatches_.size()) return;
  // The least that any piece has taken; drifts up slowly, in case that one was a fluke.
  fixed_ = std::min(fixed_ * 1.001, microseconds);
  Learned& d = dispatches_[piece.dispatch];
  const double part = share(piece);
  const double own = std::max(microseconds - fixed_, 0.01 * microseconds);
  Rate& rate = kernels_[d.kernel];
  rate.work = rate.work * (1 - kNewWeight) + d.work * part;
  rate.microseconds = rate.microseconds * (1 - kNewWeight) + own;
  // The first estimate loses its weight as measurements come in.
  all_.work = all_.work * (1 - kNewWeight) + d.work * part;
  all_.microseconds = all_.microseconds * (1 - kNewWeight) + own;
  if (part < kSmallShare && d.microseconds > 0) return;
  const double whole = own / part;
  d.microseconds =
      d.microseconds == 0 ? whole : d.microseconds + kNewWeight * (whole - d.microseconds);
  if (std::abs(d.microseconds - d.told) < kWorthTelling * d.told) return;
  d.told = d.microseconds;
  known_.learn(d.key, d.microseconds);
  known_.learn(std::string(kernel_info(d.kernel).name), rate);
  known_.learn_fixed(fixed_);
}

std::vector<PlanPiece> next_slice(const Plan& plan, const SliceCosts& costs,
                                  const SliceLimits& limits, PlanPosition& position) {
  std::vector<PlanPiece> pieces;
  double left = limits.microseconds;
  while (position.dispatch < plan.dispatches.size() && pieces.size() < limits.pieces) {
    const uint32_t index = position.dispatch;
    const Dispatch& d = plan.dispatches[index];
    const CutAxes axes = cut_axes(d);
    const uint32_t steps = axes.rows * axes.columns;
    const uint32_t rest = steps - position.group;
    const double fixed = costs.fixed_microseconds();
    const double step = costs.share_microseconds(index, 1.0 / std::max(1u, steps));
    double count = rest;
    if (fixed + step * rest > left) {
      count = std::max(0.0, std::floor((left - fixed) / step));
      const bool worth = count >= 1 && count * step >= kWorthCutting * fixed;
      if (!worth && !pieces.empty()) break;
      count = std::max(count, 1.0);
    }
    if (limits.max_flops > 0 && d.flops > 0) {
      count = std::min(count, std::max(1.0, std::floor(limits.max_flops * steps / d.flops)));
    }
    pieces.push_back({index, cut(d, axes, position.group, static_cast<uint32_t>(count))});
    left -= costs.microseconds(pieces.back());
    const DispatchPart& part = pieces.back().part;
    const bool whole_rows = part.groups[axes.second] == axes.columns;
    position.group +=
        whole_rows ? part.groups[axes.first] * axes.columns : part.groups[axes.second];
    if (position.group == steps) position = {index + 1, 0};
    if (left <= fixed) break;
  }
  return pieces;
}

}  // namespace vkformer
