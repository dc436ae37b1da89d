// Slices: as much of a plan as fits in a budget of GPU time. Dispatches are cut between workgroups
// where one alone is too long; what a workgroup costs is learned from measured pieces. Results do
// not depend on where the cuts fall, since workgroups do not depend on each other.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "plan/kernel_costs.h"
#include "plan/plan.h"

namespace vkformer {

// Workgroups of one dispatch: those from `base` on, as many as `groups` says, along each axis.
struct DispatchPart {
  std::array<uint32_t, 3> base = {0, 0, 0};
  std::array<uint32_t, 3> groups = {1, 1, 1};
  double flops = 0;
};

// A command buffer, a slice and a submit hold at most this many of the longest dispatches.
inline constexpr double kDispatchesPerSubmit = 4;

// Whether the GPU says how many workgroups a dispatch over live slots has. One longer than
// `max_flops` is recorded at its capacity instead, so that it can be split. Its kernel passes over
// slots beyond the live ones, or makes rows of them that nobody reads.
bool is_indirect(const Dispatch& dispatch, double max_flops);

// Splits a dispatch longer than `max_flops` along its largest group axis, so that no single one
// nears a watchdog.
std::vector<DispatchPart> split_dispatch(const Dispatch& dispatch, double max_flops);

// Every workgroup of a dispatch alone, or every step of its longest axis where they are many, in an
// order that `seed` decides. For tests: no result depends on that order.
std::vector<DispatchPart> scattered_parts(const Dispatch& dispatch, uint32_t seed);

// Where the next slice begins. A dispatch is cut along its longest axis and, where one step of that
// is too long, along the second. `group` counts steps of both, the second axis running faster.
struct PlanPosition {
  uint32_t dispatch = 0;
  uint32_t group = 0;

  bool operator==(const PlanPosition&) const = default;
};

// Workgroups of one dispatch. A part of an indirect dispatch (is_indirect) is recorded at its
// capacity.
struct PlanPiece {
  uint32_t dispatch = 0;
  DispatchPart part;

  bool starts() const { return part.base == std::array<uint32_t, 3>{}; }
  bool is_whole(const Dispatch& of) const { return starts() && part.groups == of.groups; }
};

// Where the piece begins.
PlanPosition begin_of(const Plan& plan, const PlanPiece& piece);

// Every piece of the plan, cut only where a dispatch exceeds `max_flops`.
std::vector<PlanPiece> all_pieces(const Plan& plan, double max_flops);

// What pieces of one plan cost: a fixed time each, plus a share of their dispatch's own time.
class SliceCosts {
 public:
  // `known`: what earlier passes on the device took; it learns from this one, too, and outlives
  // it. `flops_per_microsecond`: a cautious first estimate of what it does not know.
  SliceCosts(const Plan& plan, double flops_per_microsecond, KernelCosts& known);

  // Expected microseconds of `share` (0 to 1) of that dispatch, without the fixed part.
  double share_microseconds(uint32_t dispatch, double share) const;
  double fixed_microseconds() const { return fixed_; }
  // Share of its dispatch that a piece is.
  double share(const PlanPiece& piece) const;
  double microseconds(const PlanPiece& piece) const;
  // Operations of the piece, or what its bytes count as.
  double work(const PlanPiece& piece) const {
    return dispatches_[piece.dispatch].work * share(piece);
  }
  double total_work() const;
  // Expected microseconds of the whole plan.
  double total_microseconds() const;
  // The part of that which goes by measurements.
  double measured_microseconds() const;
  // What a piece really took.
  void observe(const PlanPiece& piece, double microseconds);

 private:
  struct Learned {
    double work = 0;          // of the whole dispatch, in flops and equivalents
    double microseconds = 0;  // of the whole dispatch; 0: not measured
    double told = 0;          // what the device knows of it
    uint64_t key = 0;         // cost_key
    KernelId kernel{};
    double groups = 1;  // in all
  };
  using Rate = KernelCosts::Rate;

  std::vector<Learned> dispatches_;
  std::map<KernelId, Rate> kernels_;
  Rate all_;
  KernelCosts& known_;
  double fixed_ = 10;  // microseconds; sinks to the least that any piece has taken
};

// What a slice must keep to.
struct SliceLimits {
  double microseconds = 0;  // expected, in all; a single piece may exceed it
  double max_flops = 0;     // of a piece; a single workgroup may exceed it
  size_t pieces = 0;
};

// Pieces from `position` on that keep to the limits, at least one; moves `position` past them. At
// the end of the plan position.dispatch is the number of dispatches.
std::vector<PlanPiece> next_slice(const Plan& plan, const SliceCosts& costs,
                                  const SliceLimits& limits, PlanPosition& position);

}  // namespace vkformer
