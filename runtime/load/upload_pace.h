// Lets the loading thread copy the weights that the frames have room for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace vkformer {

class UploadPace {
 public:
  // On the loading thread: waits until a piece of that size may be copied. The time since the last
  // piece was let go is what it took, with what was done to it on the host.
  void take(uint64_t bytes);
  // A frame's share. What an earlier frame left over is gone; what one copy took too much is not.
  void grant(double microseconds);
  // From now on nothing waits.
  void let_go();

 private:
  std::mutex mutex_;
  std::condition_variable granted_more_;
  double granted_ = 0;  // bytes
  double rate_ = 0;     // bytes a microsecond; 0: nothing was copied yet
  uint64_t last_ = 0;   // bytes of the last piece
  std::chrono::steady_clock::time_point let_go_at_;
  bool free_ = false;
};

}  // namespace vkformer
