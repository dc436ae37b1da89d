#include "vkformer/frame_scheduler.h"

#include <chrono>
#include <functional>
#include <map>

#include "base/check.h"
#include "base/guarded.h"
#include "base/message.h"
#include "session/frame_turns.h"
#include "session/sliced_run.h"

namespace vkformer {
namespace {

// Less of a frame than this part is not worth a slice.
constexpr double kLeastLeft = 0.1;

double milliseconds_now() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

class FrameSchedulerState {
 public:
  using Step = std::function<Result<Advance>(Session& session, double microseconds)>;

  Result<uint64_t> add(Session& session, const FrameJob& job) {
    for (const auto& [number, known] : sessions_) {
      if (known != &session) continue;
      return invalid_argument(message(
          {"[session] is job ", number, " of this scheduler already; remove that one first"}));
    }
    if (!(job.deadline_ms >= 0)) {
      return invalid_argument(message({"[deadline_ms] is ", job.deadline_ms,
                                       ", but must be 0 (none) or milliseconds from now"}));
    }
    const double now = milliseconds_now();
    const uint64_t number = ++last_;
    sessions_[number] = &session;
    turns_.add({.number = number,
                .priority = job.priority,
                .deadline_ms = job.deadline_ms > 0 ? now + job.deadline_ms : 0,
                .began_ms = now});
    return number;
  }

  void remove(uint64_t job) {
    sessions_.erase(job);
    turns_.remove(job);
  }

  Result<std::vector<FrameProgress>> frame(double microseconds, const Step& step) {
    VKF_CHECK(check_budget(microseconds));
    std::vector<FrameProgress> list;
    double left = microseconds;
    for (const uint64_t number : turns_.begin_frame(milliseconds_now())) {
      if (left < kLeastLeft * microseconds) break;
      const double budget = turns_.budget(number, left, microseconds);
      Result<Advance> advance = step(*sessions_.at(number), budget);
      const bool over = !advance || advance->progress == Advance::Progress::kDone;
      if (advance) {
        turns_.took(number, advance->expected_microseconds, advance->fraction);
        left -= advance->expected_microseconds;
      }
      list.push_back({number, std::move(advance)});
      if (over) remove(number);
    }
    return list;
  }

  size_t jobs() const { return turns_.size(); }

 private:
  FrameTurns turns_;
  std::map<uint64_t, Session*> sessions_;
  uint64_t last_ = 0;
};

FrameScheduler::FrameScheduler() : impl_(std::make_unique<FrameSchedulerState>()) {}
FrameScheduler::FrameScheduler(FrameScheduler&&) noexcept = default;
FrameScheduler& FrameScheduler::operator=(FrameScheduler&&) noexcept = default;
FrameScheduler::~FrameScheduler() = default;

Result<uint64_t> FrameScheduler::add(Session& session, const FrameJob& job) {
  return guarded([&] { return impl_->add(session, job); });
}

void FrameScheduler::remove(uint64_t job) {
  impl_->remove(job);
}

Result<std::vector<FrameProgress>> FrameScheduler::advance(double microseconds) {
  return guarded([&] {
    return impl_->frame(microseconds,
                        [](Session& session, double budget) { return session.advance(budget); });
  });
}

Result<std::vector<FrameProgress>> FrameScheduler::record(VkCommandBuffer_T* commands,
                                                          double microseconds) {
  return guarded([&] {
    return impl_->frame(microseconds, [&](Session& session, double budget) {
      return session.record(commands, budget);
    });
  });
}

size_t FrameScheduler::jobs() const {
  return impl_->jobs();
}

}  // namespace vkformer
