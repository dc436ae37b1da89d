// Values of submits that several threads note of one recording.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "vulkan/recorder.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("the value of a recording's last submit only rises") {
    LastValue last;
    last.raise_to(7);
    last.raise_to(5);
    CHECK(last.load() == 7);
    std::atomic<int> lowered{0};
    std::vector<std::thread> threads;
    for (uint64_t begin = 0; begin < 4; ++begin) {
      threads.emplace_back([&, begin] {
        for (uint64_t value = begin; value < 20000; value += 4) {
          last.raise_to(value);
          if (last.load() < value) ++lowered;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(lowered == 0);
    CHECK(last.load() == 19999);
  }
}

}  // namespace vkformer::testing
