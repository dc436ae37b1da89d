// Work in pieces, done by the calling thread and by jobs beside it.
#pragma once

#include <cstddef>
#include <functional>

#include "base/background_task.h"
#include "base/job_threads.h"

namespace vkformer {

// Who may work beside the calling thread: at most `most` jobs at once; 0: nobody.
struct Helpers {
  BackgroundTask::Jobs jobs;
  size_t most = 0;
};

// A thread for every other core of the machine, for work without a device, whose owner would say
// how many threads it may have.
class CoreThreads {
 public:
  CoreThreads();
  Helpers helpers();

 private:
  const size_t count_;
  JobThreads threads_;
};

// Calls piece(0) ... piece(count - 1), each once and in any order, and returns when all are done.
// What a piece throws is thrown here after the others that have begun; the rest is not begun then.
// A job that starts too late does nothing, so that this ends even if no job ever runs.
void share_work(const Helpers& helpers, size_t count, const std::function<void(size_t)>& piece);

}  // namespace vkformer
