// FrameScheduler: several sessions share the GPU time of a frame.
//
// Threading: one thread at a time, the one that calls the sessions. Lifetime: the scheduler refers
// to sessions and does not own them. A session stays where it is, and lives, until it is removed or
// the scheduler is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/session.h"

namespace vkformer {

class FrameSchedulerState;

// How a job stands against the others.
struct FrameJob {
  // All that is left of a frame goes to the next priority. Those of one priority take turns.
  enum class Priority : uint8_t { kHigh, kNormal, kBackground } priority = Priority::kNormal;
  // Milliseconds from now in which it shall end; 0: whenever. While the job's own share would miss
  // it, it comes before every priority.
  double deadline_ms = 0;
};

// What became of a job in one frame.
struct FrameProgress {
  uint64_t job = 0;
  Result<Advance> advance;  // an error ended what the session had started
};

class VKFORMER_API FrameScheduler {
 public:
  FrameScheduler();
  FrameScheduler(FrameScheduler&&) noexcept;
  FrameScheduler& operator=(FrameScheduler&&) noexcept;
  ~FrameScheduler();

  // What the session has started, or starts next; gives the job's number. A session is one job at a
  // time.
  Result<uint64_t> add(Session& session, const FrameJob& job = {});
  // The job is not carried on. What the session has started is still started: finish or cancel it.
  // A number that is no job's is passed over.
  void remove(uint64_t job);
  // Hands the microseconds of one frame out, in submits of the sessions' own, and says what became
  // of each job that got some. A job whose progress is kDone, or that failed, is removed. However
  // many of higher priority there are, of up to 100 jobs each gets time once in 32 frames.
  Result<std::vector<FrameProgress>> advance(double microseconds);
  // The same into a command buffer of the application; see Session::record.
  Result<std::vector<FrameProgress>> record(VkCommandBuffer_T* commands, double microseconds);
  // Jobs that are not done.
  size_t jobs() const;

 private:
  std::unique_ptr<FrameSchedulerState> impl_;
};

}  // namespace vkformer
