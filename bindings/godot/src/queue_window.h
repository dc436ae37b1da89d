// Who may submit to the engine's queue, and when.
//
// The engine submits from its render thread without telling anybody. So all of vkformer's submits
// happen while that thread is inside of our frame step: the window is open then, one submitter at a
// time. A thread that loads weights or prepares a pass waits for the next window.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace vkf_godot {

class QueueWindow {
 public:
  // By the render thread, around its step.
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Lets those that wait already go first, for at most that time.
  void close(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return waiting_ == 0; });
    changed_.wait(lock, [&] { return !taken_; });
    open_ = false;
  }
  // From now on nobody waits for a window: the engine does not draw any more.
  void open_for_good() {
    const std::lock_guard lock(mutex_);
    open_ = for_good_ = true;
    changed_.notify_all();
  }

  // By whoever submits.
  void lock() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.wait(lock, [&] { return (open_ || for_good_) && !taken_; });
    --waiting_;
    taken_ = true;
  }
  void unlock() {
    const std::lock_guard lock(mutex_);
    taken_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool for_good_ = false;
  bool taken_ = false;
  int waiting_ = 0;
};

}  // namespace vkf_godot
