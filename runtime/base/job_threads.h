// Threads that do jobs in turn. A thread starts when a job comes and all others are busy; it sleeps
// when there is nothing to do.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vkformer {

class JobThreads {
 public:
  explicit JobThreads(size_t most) : most_(most) {}
  // Waits for the job that each thread has begun; the others are never done.
  ~JobThreads();
  JobThreads(const JobThreads&) = delete;
  JobThreads& operator=(const JobThreads&) = delete;

  // Throws where there is no memory, or where no thread can be started and none runs. `job` does
  // not throw and does not destroy this object.
  void run(std::function<void()> job);

 private:
  void work();

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  size_t sleeping_ = 0;
  bool over_ = false;
};

}  // namespace vkformer
