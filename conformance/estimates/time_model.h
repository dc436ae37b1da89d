// The model of time: what a dispatch takes. It uses the work that the dispatch's plan states, the
// statistics of its compiled kernel, and the rates of a GPU.
//
//   time = max(arithmetic, bandwidth, latency) + launch
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace vkformer::estimates {

// What a GPU does in a second. A unit is what runs a workgroup: an SM, a compute unit, a core.
struct GpuRates {
  double units = 1;
  double clock = 1;                // of a second
  double issued = 1;               // instructions of an invocation that a unit issues in a clock
  double multiply_adds = 1;        // of f32, of a unit in a clock
  double residents = 0;            // invocations of a unit for 1 of occupancy; 0: no limit
  bool residents_by_size = false;  // subgroups rather than invocations
  double bandwidth = 1;            // bytes
  double latency = 0;              // of a load from memory, in seconds
  double launch = 0;               // of a dispatch that waits for the one before it, in seconds
};

// What a compiler made of a pipeline; instructions of one invocation or subgroup. The hot part is
// the innermost loop with the most multiply-adds, or its block where there is no loop; all 0: none
// has any.
struct CompiledKernel {
  double subgroup_size = 0;  // 0: unknown
  double occupancy = 0;      // in the driver's unit; 0: unknown
  double instructions = 0;
  double hot_instructions = 0;
  double hot_multiply_adds = 0;
  double hot_loads = 0;  // from memory
};

// Seconds.
struct DispatchTime {
  double arithmetic = 0;
  double bandwidth = 0;
  double latency = 0;
  double launch = 0;

  double bound() const;  // the largest of the first three
  double total() const { return bound() + launch; }
};

// `kernel`: null where nothing is known: every operation takes what a multiply-add takes.
DispatchTime time_of(const Dispatch& dispatch, const CompiledKernel* kernel, const GpuRates& gpu);

// What a device's vendor could be given in place of these choices: one field differs in each.
std::vector<GpuTraits> other_traits(const GpuTraits& traits);

// Gives dispatches over live slots of a step the groups of all slots.
void settle_step(Plan& plan);

}  // namespace vkformer::estimates
