// One plan with its own memory, submitted again and again: what benchmarks measure.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "recording/recorded_graph.h"
#include "vkformer/export.h"

namespace vkformer {

// Milliseconds of one submit.
struct RunTime {
  double wall = 0;    // from before the submit until the wait returns
  double device = 0;  // the dispatches by timestamps; the wall clock where there are none
};

class VKFORMER_API TimedPlan {
 public:
  // Makes memory for every external buffer of the plan and records it. Fails before anything is
  // allocated where the whole exceeds the device's memory.
  static Result<TimedPlan> create(std::shared_ptr<VulkanDevice> device, Plan plan,
                                  RecordingInputs::Profile profile);

  const Plan& plan() const { return plan_; }
  const Recording& recording() const { return graph_->recording(); }

  // Sets the content of an external buffer; it may be shorter than the buffer.
  Status upload(uint32_t buffer, std::span<const std::byte> bytes);
  // FNV-1a (Fowler, Noll and Vo) of the first `bytes` bytes, as 16 hexadecimal digits.
  Result<std::string> hash(uint32_t buffer, uint64_t bytes) const;
  // One hash of all buffers that some dispatch writes and the caller can read.
  Result<std::string> hash_outputs() const;
  // The numbers of those buffers.
  std::vector<uint32_t> outputs() const;
  Result<std::vector<float>> read_floats(uint32_t buffer, uint64_t count) const;

  Result<RunTime> run() const;
  // `repeats` runs after a warm-up; a GPU's clock wants longer (measure/wake.h).
  Result<std::vector<RunTime>> run_warm(int repeats) const;

 private:
  TimedPlan(std::shared_ptr<VulkanDevice> device, Plan plan)
      : device_(std::move(device)),
        plan_(std::move(plan)),
        memory_(std::make_unique<PassMemory>(device_)) {}
  const Buffer& buffer(uint32_t index) const { return memory_->buffer(plan_.buffers[index].name); }
  Status hash_into(uint32_t buffer, uint64_t bytes, uint64_t& state) const;

  std::shared_ptr<VulkanDevice> device_;
  Plan plan_;
  std::unique_ptr<PassMemory> memory_;  // does not move: the recording points at it
  std::optional<RecordedGraph> graph_;
};

// Median and least of one field over the runs. Precondition: not empty.
VKFORMER_API double median_time(std::span<const RunTime> times, double RunTime::*field);
VKFORMER_API double least_time(std::span<const RunTime> times, double RunTime::*field);

}  // namespace vkformer
