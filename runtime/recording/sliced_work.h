// Work of a session that is carried out slice by slice, each within a budget of GPU time. It is the
// units of a pass or a generation in order, cut where the budget ends. What pieces cost is learned
// from the slices that have run.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "vkformer/session.h"
#include "vulkan/slice_stream.h"

namespace vkformer {

// A recording and what is known of its cost; both outlive the work.
struct SlicedUnit {
  const Recording* recording = nullptr;
  SliceCosts* costs = nullptr;
  int64_t times = 1;  // how often it runs in a row
};

// What is carried out in slices.
struct SlicedPlan {
  std::vector<SlicedUnit> units;  // in order
  // Before the first piece.
  std::vector<SliceWrite> writes = {};
  std::vector<BufferCopy> before = {};
  std::vector<SliceImage> images = {};
  // Of results, in every slice in which a unit has run to its end, there.
  std::vector<BufferCopy> after = {};
};

// The part of a budget that slices aim at to begin with; it then follows what they take.
inline constexpr double kUsualFill = 0.85;

// What pieces of the plan will cost there, as far as the device knows or can estimate.
SliceCosts costs_of(VulkanDevice& device, const Plan& plan);

class SlicedWork {
 public:
  // On any thread; submits nothing.
  static Result<std::unique_ptr<SlicedWork>> create(std::shared_ptr<VulkanDevice> device);

  // Begins anew, once what was submitted before has run.
  void start(SlicedPlan plan);
  // An error while something is left to submit.
  Status check_submitted() const;
  // Drops what was not submitted yet and waits for the rest.
  Status clear();

  // After collect: the next slice, of at most `microseconds` by our estimate, at least one piece.
  // It goes to our own queue, or into a command buffer of the application.
  Result<Advance> advance(double microseconds, const SubmitSemaphores& semaphores);
  Result<Advance> append(VkCommandBuffer_T* commands, double microseconds);
  // The latest slice, which was appended, never runs: it is still to come.
  Status drop_last();
  // Learns from the slices that have run.
  Status collect();
  // Whether everything that was begun has run on the GPU, as far as is known.
  bool idle() const { return under_way_.empty() && !unknown_; }
  // Whether slices that the application submits can be seen to have run.
  bool timed() const { return stream_->timed(); }
  // Whether a unit has run to its end since start, and left its results.
  bool ended_round() const { return at_.round_ended; }
  // Omits what was not submitted yet.
  void skip_rest();
  Status wait() { return stream_->wait(); }

 private:
  // Where the next slice begins.
  struct Cursor {
    size_t unit = 0;
    int64_t round = 0;
    PlanPosition position;
    double work = 0;           // before it, of total_
    bool inputs = true;        // whether it begins with what comes before the first piece
    bool round_ended = false;  // whether a unit has run to its end before it
  };

  // Pieces on their way, with the costs that learn from them.
  struct UnderWay {
    uint64_t slice = 0;
    double budget = 0;  // microseconds
    bool ends_round = false;
    bool appended = false;  // to a command buffer of the application
    Cursor from;            // where it begins
    std::vector<std::pair<SliceCosts*, PlanPiece>> pieces;
  };

  explicit SlicedWork(std::shared_ptr<VulkanDevice> device) : device_(std::move(device)) {}
  // A slice from `at` on; moves `at` past it.
  Slice next(double microseconds, Cursor& at, UnderWay& pieces) const;
  // What a slice that was submitted or appended leaves.
  void advance_to(const Cursor& at, UnderWay under_way);
  Advance state() const;

  std::shared_ptr<VulkanDevice> device_;
  std::unique_ptr<SliceStream> stream_;
  SlicedPlan plan_;
  Cursor at_;
  double total_ = 0;
  double fill_ = kUsualFill;
  bool unknown_ = false;  // nothing will tell when slices that were appended have run
  double last_microseconds_ = 0;
  double expected_ = 0;  // of the latest slice, microseconds
  std::deque<UnderWay> under_way_;
};

}  // namespace vkformer
