// When something was last used by the device.
#pragma once

#include <atomic>
#include <cstdint>

namespace vkformer {

// The value of the last submit of something that several threads may submit. It only rises, so that
// a thread which notes its submit late does not hide another's later one.
class LastValue {
 public:
  uint64_t load() const { return value_.load(); }
  void raise_to(uint64_t value) {
    uint64_t seen = value_.load();
    while (seen < value && !value_.compare_exchange_weak(seen, value)) {
    }
  }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace vkformer
