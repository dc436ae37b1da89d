#include "base/job_threads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <vector>

#include "base/background_task.h"
#include "base/work_sharing.h"

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

  TEST_CASE("shared work is done once each, with helpers, without, and with some that never come") {
    JobThreads threads(3);
    const BackgroundTask::Jobs never = [](const std::function<void()>&) {};
    const BackgroundTask::Jobs real = [&](std::function<void()> job) {
      threads.run(std::move(job));
    };
    for (const Helpers& helpers : {Helpers{}, Helpers{real, 3}, Helpers{never, 8}}) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{1000}}) {
        std::vector<std::atomic<int>> done(count);
        share_work(helpers, count, [&](size_t i) { ++done[i]; });
        CHECK(std::all_of(done.begin(), done.end(), [](const auto& times) { return times == 1; }));
      }
    }
  }

  TEST_CASE("what a piece of shared work throws reaches the caller, and the rest is not begun") {
    JobThreads threads(2);
    const Helpers helpers{[&](std::function<void()> job) { threads.run(std::move(job)); }, 2};
    std::atomic<int> begun{0};
    const auto piece = [&](size_t) {
      ++begun;
      throw std::bad_alloc();
    };
    CHECK_THROWS_AS(share_work(helpers, 1000, piece), std::bad_alloc);
    CHECK(begun <= 3);
  }
}

}  // namespace vkformer::testing
