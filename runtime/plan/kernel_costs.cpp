#include "plan/kernel_costs.h"

#include "base/fnv.h"
#include "kernels/catalogue.h"

namespace vkformer {

uint64_t cost_key(const Dispatch& d) {
  const std::string_view name = kernel_info(d.kernel).name;
  uint64_t hash = fnv1a(name.data(), name.size());
  hash = fnv1a(d.spec.data(), d.spec.size() * sizeof d.spec[0], hash);
  hash = fnv1a(d.groups.data(), sizeof d.groups, hash);
  const double work[] = {d.flops, d.bytes, d.reproducible ? 1.0 : 0.0};
  return fnv1a(work, sizeof work, hash);
}

KernelCosts::Table KernelCosts::table() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return table_;
}

void KernelCosts::set(Table table) {
  const std::lock_guard<std::mutex> lock(mutex_);
  table_ = std::move(table);
  changed_ = false;
}

double KernelCosts::of_dispatch(uint64_t key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = table_.dispatches.find(key);
  return found == table_.dispatches.end() ? 0 : found->second;
}

KernelCosts::Rate KernelCosts::of_kernel(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = table_.kernels.find(name);
  return found == table_.kernels.end() ? Rate() : found->second;
}

double KernelCosts::fixed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return table_.fixed_microseconds;
}

void KernelCosts::learn(uint64_t key, double microseconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool known = table_.dispatches.count(key) != 0;
  if (!known && table_.dispatches.size() >= kMostDispatches) return;
  table_.dispatches[key] = microseconds;
  changed_ = true;
}

void KernelCosts::learn(const std::string& kernel, const Rate& rate) {
  const std::lock_guard<std::mutex> lock(mutex_);
  table_.kernels[kernel] = rate;
  changed_ = true;
}

void KernelCosts::learn_fixed(double microseconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  table_.fixed_microseconds = microseconds;
  changed_ = true;
}

bool KernelCosts::changed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return changed_;
}

}  // namespace vkformer
