#include "base/work_sharing.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace vkformer {

CoreThreads::CoreThreads()
    : count_(std::max(1u, std::thread::hardware_concurrency()) - 1),
      threads_(std::max<size_t>(1, count_)) {}

Helpers CoreThreads::helpers() {
  return {[this](std::function<void()> job) { threads_.run(std::move(job)); }, count_};
}

void share_work(const Helpers& helpers, size_t count, const std::function<void(size_t)>& piece) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;  // under the mutex
  const auto work = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) piece(i);
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      if (thrown == nullptr) thrown = std::current_exception();
    }
  };
  {
    std::list<BackgroundTask> tasks;
    const size_t most = helpers.jobs ? helpers.most : 0;
    while (tasks.size() < most && tasks.size() + 1 < count) {
      tasks.emplace_back(helpers.jobs, work);
    }
    work();
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace vkformer
