// Who gets the time of a frame.
#include "session/frame_turns.h"

#include <doctest/doctest.h>

#include <map>

namespace vkformer {
namespace {

using Priority = FrameJob::Priority;

// Frames of 10 ms, of which every turn takes all that it is given.
std::map<uint64_t, double> used(FrameTurns& turns, int frames, double& now_ms,
                                double budget = 1000) {
  std::map<uint64_t, double> sums;
  for (int frame = 0; frame < frames; ++frame, now_ms += 10) {
    double left = budget;
    for (const uint64_t number : turns.begin_frame(now_ms)) {
      if (left <= 0) break;
      const double now = turns.budget(number, left, budget);
      turns.took(number, now, 0.5);
      sums[number] += now;
      left -= now;
    }
  }
  return sums;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("jobs of one priority take turns") {
    FrameTurns turns;
    for (uint64_t number : {1, 2, 3}) turns.add({.number = number});
    double now = 0;
    const auto sums = used(turns, 300, now);
    for (uint64_t number : {1, 2, 3}) {
      CHECK(sums.at(number) == doctest::Approx(100 * 1000).epsilon(0.05));
    }
  }

  TEST_CASE("a higher priority comes first, and nobody starves") {
    FrameTurns turns;
    turns.add({.number = 1, .priority = Priority::kBackground});
    turns.add({.number = 2, .priority = Priority::kHigh});
    turns.add({.number = 3, .priority = Priority::kNormal});
    double now = 0;
    CHECK(turns.begin_frame(now).front() == 2);
    const auto sums = used(turns, 1000, now);
    CHECK(sums.at(2) > 0.95 * 1000 * 1000);
    CHECK(sums.at(1) > 1000);
    CHECK(sums.at(3) > 1000);
  }

  TEST_CASE("of a hundred in the background each has a turn within 32 frames") {
    FrameTurns turns;
    turns.add({.number = 1, .priority = Priority::kHigh});
    for (uint64_t number = 2; number <= 101; ++number) {
      turns.add({.number = number, .priority = Priority::kBackground});
    }
    double now = 0;
    (void)used(turns, 64, now);
    const auto sums = used(turns, 32, now);
    CHECK(sums.size() == 101);
  }

  TEST_CASE("a job that would miss its deadline comes before a higher priority") {
    FrameTurns turns;
    turns.add({.number = 1, .priority = Priority::kHigh});
    turns.add({.number = 2, .priority = Priority::kBackground, .deadline_ms = 1000});
    turns.took(2, 10, 0.5);
    CHECK(turns.begin_frame(400).front() == 1);  // half done, in less than half of the time
    CHECK(turns.begin_frame(600).front() == 2);
    turns.took(2, 10, 0.9);
    CHECK(turns.begin_frame(600).front() == 1);
    CHECK(turns.begin_frame(1100).front() == 2);
  }

  TEST_CASE("a newcomer does not make up for the past of the others") {
    FrameTurns turns;
    turns.add({.number = 1});
    double now = 0;
    (void)used(turns, 100, now);
    turns.add({.number = 2});
    const auto sums = used(turns, 100, now);
    CHECK(sums.at(1) == doctest::Approx(50 * 1000).epsilon(0.05));
    CHECK(sums.at(2) == doctest::Approx(50 * 1000).epsilon(0.05));
  }

  TEST_CASE("a job that is removed gets nothing") {
    FrameTurns turns;
    turns.add({.number = 1});
    turns.add({.number = 2});
    turns.remove(1);
    turns.remove(7);
    CHECK(turns.size() == 1);
    CHECK(turns.begin_frame(0) == std::vector<uint64_t>{2});
    CHECK(turns.budget(1, 5, 5) == 0);
    turns.took(1, 5, 1);
  }
}

}  // namespace vkformer
