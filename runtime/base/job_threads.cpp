#include "base/job_threads.h"

#include <utility>

namespace vkformer {

JobThreads::~JobThreads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobThreads::run(std::function<void()> job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  jobs_.push_back(std::move(job));
  if (jobs_.size() > sleeping_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (...) {
      // The threads that there are do it later.
      if (threads_.empty()) {
        jobs_.pop_back();
        throw;
      }
    }
  }
  changed_.notify_one();
}

void JobThreads::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++sleeping_;
    changed_.wait(lock, [this] { return over_ || !jobs_.empty(); });
    --sleeping_;
    if (over_) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it holds goes before the lock is taken
    lock.lock();
  }
}

}  // namespace vkformer
