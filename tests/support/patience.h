// A bound for loops that ask until the GPU is done. It is one of time, since how often a loop asks
// says nothing about how long it waits.
#pragma once

#include <chrono>

namespace vkformer::testing {

class Patience {
 public:
  bool left() const { return std::chrono::steady_clock::now() - begin_ < std::chrono::minutes(2); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace vkformer::testing
