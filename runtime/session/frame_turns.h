// Who gets the time of a frame, and how much: the decisions of a FrameScheduler, without sessions.
#pragma once

#include <cstdint>
#include <vector>

#include "vkformer/frame_scheduler.h"

namespace vkformer {

class FrameTurns {
 public:
  struct Job {
    uint64_t number = 0;
    FrameJob::Priority priority = FrameJob::Priority::kNormal;
    double deadline_ms = 0;  // on the clock of `begin_frame`; 0: none
    // Kept by FrameTurns.
    double used = 0;         // microseconds, of its turns among those of its priority
    uint64_t last_turn = 0;  // frame
    double fraction = 0;     // done
    double began_ms = 0;
  };

  void add(Job job);
  void remove(uint64_t number);
  // Jobs in the order of their turns in the frame that begins now.
  std::vector<uint64_t> begin_frame(double now_ms);
  // The budget of the next turn, of `left` microseconds of the frame's `whole`.
  double budget(uint64_t number, double left, double whole) const;
  // What the turn came to.
  void took(uint64_t number, double microseconds, double fraction);
  size_t size() const { return jobs_.size(); }

 private:
  bool starves(const Job& job) const;
  bool is_late(const Job& job, double now_ms) const;
  Job* find(uint64_t number);
  const Job* find(uint64_t number) const;

  std::vector<Job> jobs_;
  uint64_t frame_ = 0;
};

}  // namespace vkformer
