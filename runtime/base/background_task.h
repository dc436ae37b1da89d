// One piece of work beside the calling thread: on its own thread, or by somebody's job system.
// Where neither takes it, whoever waits for it does it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "vkformer/result.h"

namespace vkformer {

class BackgroundTask {
 public:
  // As JobRunner in device.h.
  using Jobs = std::function<void(std::function<void()> job)>;

  // Starts at once, on its own thread where `jobs` is empty; `work` does not throw.
  BackgroundTask(const Jobs& jobs, std::function<void()> work);
  // Waits for work that has begun; what has not begun never will.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // Why nobody took the work: neither a thread nor a job could be begun. Then `wait` does it.
  const std::optional<Error>& refused() const { return refused_; }
  bool done() const;
  // Whether it is done, after so long at the most. As with wait, what nobody has begun by then is
  // done here.
  bool wait_for(std::chrono::milliseconds longest);
  // Waits. Work that nobody has begun is done here: a host whose job system runs on the waiting
  // thread would wait forever.
  void wait();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
  std::optional<Error> refused_;
};

}  // namespace vkformer
