// What frames took, and the graph of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "overlay/canvas.h"

namespace sample {

struct FrameTime {
  double total = 0.0;  // milliseconds of the clock, from recording until the GPU is done
  double slice = 0.0;  // of them on the GPU, for inference; 0 without
  bool guest = false;  // the frame held a slice of inference
};

class FrameTimes {
 public:
  // `budget`: milliseconds a frame may take.
  explicit FrameTimes(double budget) : budget_(budget) {}
  void add(const FrameTime& time) { times_.push_back(time); }
  const std::vector<FrameTime>& all() const { return times_; }
  double budget() const { return budget_; }

  enum class Which : uint8_t { kWithout, kWith };
  // Of frames with or without inference: their number, and a share of their times. A "p" of 0.5 is
  // the median. 0 if there are none.
  size_t count(Which which) const;
  double total(Which which, double p) const;
  double slice(double p) const;
  size_t over_budget() const;

  // Draws the last frames into `panel`, `unit` pixels to a 360th of the picture's height.
  void draw(Canvas& canvas, const Box& panel, float unit, const std::string& title) const;

 private:
  void draw_bars(Canvas& canvas, const Box& plot, float unit) const;
  std::vector<FrameTime> times_;
  double budget_;
};

}  // namespace sample
