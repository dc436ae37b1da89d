#include "conformance/estimates/time_model.h"

#include <algorithm>
#include <cmath>

#include "conformance/kernels.h"

namespace vkformer::estimates {
namespace {

constexpr double kLoadBytes = 16;  // the widest load of an invocation

// Invocations of a workgroup.
double local_size(const Dispatch& d, double subgroup_size) {
  const auto names = conformance::constants_of(d.kernel);
  for (size_t i = 0; i < std::min(names.size(), d.spec.size()); ++i) {
    if (names[i] == "local_size") return d.spec[i];
  }
  // Kernels of a fixed size are small.
  return std::max(1.0, subgroup_size);
}

// How much of the work one workgroup has, and of those how many run one after the other.
struct Spread {
  double groups = 1;
  double size = 1;       // invocations of a group
  double on_a_unit = 1;  // groups of the busiest unit

  double invocations() const { return groups * size; }
};

Spread spread_of(const Dispatch& d, const CompiledKernel* kernel, const GpuRates& gpu) {
  Spread spread;
  spread.groups = std::max(1.0, double{1} * d.groups[0] * d.groups[1] * d.groups[2]);
  spread.size = local_size(d, kernel ? kernel->subgroup_size : 1);
  spread.on_a_unit = std::ceil(spread.groups / gpu.units);
  return spread;
}

// Of the busiest unit: the hot part by the multiply-adds that there are, the rest once.
double arithmetic_of(const Dispatch& d, const CompiledKernel* kernel, const GpuRates& gpu,
                     const Spread& spread) {
  const double multiply_adds = d.flops / 2;
  // Without a compiler's word there are no groups to count: work is shared out evenly.
  if (kernel == nullptr) return multiply_adds / (gpu.units * gpu.multiply_adds * gpu.clock);
  const bool hot = kernel->hot_multiply_adds > 0;
  double slots =
      hot ? multiply_adds * kernel->hot_instructions / kernel->hot_multiply_adds : d.flops;
  slots += spread.invocations() * (kernel->instructions - kernel->hot_instructions);
  const double share = spread.on_a_unit / spread.groups;
  const double issue = slots * share / (gpu.issued * gpu.clock);
  return std::max(issue, hot ? multiply_adds * share / (gpu.multiply_adds * gpu.clock) : 0);
}

// Loads of an invocation that wait for one another. These are one a round of the hot loop where
// that loads from memory, else as many as its share of the bytes takes.
double chain_of(const Dispatch& d, const CompiledKernel& kernel, const Spread& spread) {
  const double bytes = d.bytes / spread.invocations();
  if (kernel.hot_multiply_adds <= 0) return std::max(1.0, bytes / kLoadBytes);
  if (kernel.hot_loads <= 0) return 1;
  const double rounds = d.flops / 2 / spread.invocations() / kernel.hot_multiply_adds;
  return std::max(1.0, rounds);
}

double latency_of(const Dispatch& d, const CompiledKernel* kernel, const GpuRates& gpu,
                  const Spread& spread) {
  if (kernel == nullptr || kernel->occupancy <= 0 || gpu.residents <= 0) return 0;
  const double size = gpu.residents_by_size ? std::max(1.0, kernel->subgroup_size) : 1;
  const double residents = kernel->occupancy * gpu.residents * size;
  // A group that fills more than a unit holds runs alone.
  const double at_once = std::max(1.0, std::floor(residents / spread.size));
  return std::ceil(spread.on_a_unit / at_once) * chain_of(d, *kernel, spread) * gpu.latency;
}

}  // namespace

double DispatchTime::bound() const {
  return std::max({arithmetic, bandwidth, latency});
}

DispatchTime time_of(const Dispatch& d, const CompiledKernel* kernel, const GpuRates& gpu) {
  const Spread spread = spread_of(d, kernel, gpu);
  return {.arithmetic = arithmetic_of(d, kernel, gpu, spread),
          .bandwidth = d.bytes / gpu.bandwidth,
          .latency = latency_of(d, kernel, gpu, spread),
          .launch = gpu.launch};
}

std::vector<GpuTraits> other_traits(const GpuTraits& traits) {
  std::vector<GpuTraits> list;
  const auto add = [&](uint32_t GpuTraits::*field, std::initializer_list<uint32_t> values) {
    for (const uint32_t value : values) {
      if (value == traits.*field) continue;
      list.push_back(traits);
      list.back().*field = value;
    }
  };
  add(&GpuTraits::matmul_block, {32, 64, 128});
  add(&GpuTraits::matmul_rows, {2, 4, 8});
  add(&GpuTraits::attention_queries, {1, 2, 4});
  return list;
}

void settle_step(Plan& plan) {
  for (Dispatch& d : plan.dispatches) {
    if (d.live_axis < 0) continue;
    d.groups[static_cast<size_t>(d.live_axis)] =
        (plan.row_capacity + d.slots_per_group - 1) / d.slots_per_group;
    d.live_axis = -1;
  }
}

}  // namespace vkformer::estimates
