#include "base/job_threads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/background_task.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("jobs run on no more threads than are allowed, all of them and once") {
    std::atomic<int> running{0}, most{0}, done{0};
    {
      JobThreads threads(3);
      std::mutex mutex;
      std::condition_variable all;
      for (int i = 0; i < 200; ++i) {
        threads.run([&] {
          const int now = ++running;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          --running;
          if (++done < 200) return;
          const std::lock_guard<std::mutex> lock(mutex);
          all.notify_all();
        });
      }
      std::unique_lock<std::mutex> lock(mutex);
      all.wait(lock, [&] { return done == 200; });
    }
    CHECK(done == 200);
    CHECK(most <= 3);
  }

  TEST_CASE("what no thread has begun is done by who waits, or never") {
    JobThreads threads(1);
    const BackgroundTask::Jobs jobs = [&](std::function<void()> job) {
      threads.run(std::move(job));
    };
    std::mutex gate;
    std::atomic<bool> begun{false}, second{false}, third{false};
    gate.lock();
    {
      BackgroundTask blocks(jobs, [&] {
        begun = true;
        const std::lock_guard<std::mutex> lock(gate);
      });
      while (!begun) std::this_thread::yield();
      BackgroundTask waited(jobs, [&] { second = true; });
      {
        const BackgroundTask given_up(jobs, [&] { third = true; });
      }
      waited.wait();
      CHECK(second);
      CHECK_FALSE(blocks.done());
      gate.unlock();
    }
    CHECK_FALSE(third);
  }
}

}  // namespace vkformer::testing
