#include "session/frame_turns.h"

#include <algorithm>
#include <tuple>

namespace vkformer {
namespace {

// Frames without a turn after which a job gets one before all others.
constexpr uint64_t kMostFramesWithout = 16;
// The part of a frame that such a turn takes.
constexpr double kLeastShare = 0.125;

}  // namespace

void FrameTurns::add(Job job) {
  // A newcomer takes turns with the others from now on; it does not catch up with their past.
  for (const Job& other : jobs_) {
    if (other.priority == job.priority) job.used = std::max(job.used, other.used);
  }
  job.last_turn = frame_;
  jobs_.push_back(job);
}

void FrameTurns::remove(uint64_t number) {
  std::erase_if(jobs_, [&](const Job& job) { return job.number == number; });
}

FrameTurns::Job* FrameTurns::find(uint64_t number) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const Job& job) { return job.number == number; });
  return found == jobs_.end() ? nullptr : &*found;
}

const FrameTurns::Job* FrameTurns::find(uint64_t number) const {
  return const_cast<FrameTurns*>(this)->find(number);
}

bool FrameTurns::starves(const Job& job) const {
  return frame_ - job.last_turn > kMostFramesWithout;
}

// Whether it would miss its deadline at the speed that it has had.
bool FrameTurns::is_late(const Job& job, double now_ms) const {
  if (job.deadline_ms <= 0) return false;
  const double gone = now_ms - job.began_ms;
  const double whole = job.deadline_ms - job.began_ms;
  return whole <= 0 || job.fraction < gone / whole;
}

std::vector<uint64_t> FrameTurns::begin_frame(double now_ms) {
  ++frame_;
  std::vector<std::tuple<bool, bool, FrameJob::Priority, double, uint64_t>> order;
  for (const Job& job : jobs_) {
    order.emplace_back(!starves(job), !is_late(job, now_ms), job.priority, job.used, job.number);
  }
  std::sort(order.begin(), order.end());
  std::vector<uint64_t> numbers;
  for (const auto& one : order) numbers.push_back(std::get<4>(one));
  return numbers;
}

double FrameTurns::budget(uint64_t number, double left, double whole) const {
  const Job* job = find(number);
  if (job == nullptr) return 0;
  return starves(*job) ? std::min(left, kLeastShare * whole) : left;
}

void FrameTurns::took(uint64_t number, double microseconds, double fraction) {
  Job* job = find(number);
  if (job == nullptr) return;
  job->used += microseconds;
  job->fraction = fraction;
  if (microseconds > 0) job->last_turn = frame_;
}

}  // namespace vkformer
