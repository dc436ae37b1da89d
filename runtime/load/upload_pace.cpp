#include "load/upload_pace.h"

#include <algorithm>

namespace vkformer {
namespace {

constexpr double kNewWeight = 0.3;
constexpr double kFirstRate = 1000;  // bytes a microsecond, before anything was copied

}  // namespace

void UploadPace::take(uint64_t bytes) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double, std::micro> taken = now - let_go_at_;
  if (last_ > 0 && taken.count() > 0) {
    const double rate = static_cast<double>(last_) / taken.count();
    rate_ = rate_ == 0 ? rate : rate_ + kNewWeight * (rate - rate_);
  }
  granted_more_.wait(lock, [this] { return free_ || granted_ > 0; });
  granted_ -= static_cast<double>(bytes);
  last_ = bytes;
  let_go_at_ = std::chrono::steady_clock::now();
}

void UploadPace::grant(double microseconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!(microseconds > 0)) return;
  granted_ = std::min(granted_, 0.0) + microseconds * (rate_ > 0 ? rate_ : kFirstRate);
  granted_more_.notify_all();
}

void UploadPace::let_go() {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_ = true;
  granted_more_.notify_all();
}

}  // namespace vkformer
