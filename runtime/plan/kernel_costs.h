// What dispatches have taken on one device, by kernel and size: what slices of later sessions
// begin with.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "plan/plan.h"

namespace vkformer {

// One kernel with its constants and its size; the same number in every run of one build.
uint64_t cost_key(const Dispatch& dispatch);

class KernelCosts {
 public:
  // Work and time of a kernel over all sizes; work is in operations (slicing.h).
  struct Rate {
    double work = 0;
    double microseconds = 0;
  };
  // All that is known; from one run to the next in a file.
  struct Table {
    double fixed_microseconds = 0;          // of any piece, whatever it does; 0: not known
    std::map<std::string, Rate> kernels;    // by name
    std::map<uint64_t, double> dispatches;  // microseconds of whole dispatches, by cost_key
  };
  // A device runs this many sizes at the most before those that come last are not remembered.
  static constexpr size_t kMostDispatches = 16384;

  // Any thread.
  Table table() const;
  void set(Table table);
  // Microseconds; 0 where nothing is known.
  double of_dispatch(uint64_t key) const;
  Rate of_kernel(const std::string& name) const;
  double fixed() const;
  void learn(uint64_t key, double microseconds);
  void learn(const std::string& kernel, const Rate& rate);
  void learn_fixed(double microseconds);
  // Whether anything was learned since `set`.
  bool changed() const;

 private:
  mutable std::mutex mutex_;
  Table table_;
  bool changed_ = false;
};

}  // namespace vkformer
