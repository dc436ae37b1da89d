// A plan recorded once into command buffers, replayed by VulkanDevice::submit as often as wanted.
#pragma once

#include <memory>
#include <vector>

#include "plan/slicing.h"
#include "vulkan/device.h"

struct VkCommandBuffer_T;  // what a VkCommandBuffer points at

namespace vkformer {

inline constexpr uint64_t kIndirectCommandBytes = 12;  // of one VkDispatchIndirectCommand

// What a recording needs besides its plan.
struct RecordingInputs {
  // For each Plan::buffers entry that is external or constant, its memory; arena entries are
  // ignored. The buffers must outlive the recording.
  std::vector<BufferSpan> memory;
  // For decoding steps: one VkDispatchIndirectCommand per dispatch whose live_axis >= 0,
  // in dispatch order, packed. The GPU writes it (and the host before the first step).
  BufferSpan indirect_args;
  // A dispatch that a command buffer begins with, so that what comes before it can be submitted
  // apart; 0: none.
  uint32_t cut = 0;
  // Write a timestamp around every dispatch; read with dispatch_times.
  enum class Profile : uint8_t { kOff, kOn } profile = Profile::kOff;
};

// The whole of a recording, the dispatches before RecordingInputs::cut, or those from it on.
enum class RecordingPart : uint8_t { kAll, kBeforeCut, kAfterCut };

class Recording {
 public:
  // Makes pipelines, the arena and descriptor sets, and records. Long dispatches are split
  // (slicing.h, split_dispatch); what is recorded can be submitted any number of times in a row.
  static Result<Recording> create(std::shared_ptr<VulkanDevice> device, Plan plan,
                                  const RecordingInputs& inputs);
  // The same without command buffers: for append and for slices only.
  static Result<Recording> prepare(std::shared_ptr<VulkanDevice> device, Plan plan,
                                   const RecordingInputs& inputs);
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;
  ~Recording();

  // Appends the whole plan to a command buffer that is being recorded outside a
  // render pass. Whoever submits it keeps this object until it has run.
  Status append(VkCommandBuffer_T* commands);

  const Plan& plan() const;
  // Workgroups recorded directly, over all dispatches (indirect ones count 0).
  uint64_t direct_workgroups() const;
  uint32_t dispatch_count() const;
  uint32_t barrier_count() const;
  uint64_t arena_bytes() const;
  // Arena memory of plan buffer `index`, for tests that look inside.
  BufferSpan arena_span(uint32_t index) const;
  // Memory of any plan buffer.
  BufferSpan span_of(uint32_t index) const;
  // Fills the whole arena with a word, for tests that poison it.
  Status fill_arena(uint32_t word) const;
  // Nanoseconds per plan dispatch of the last finished submit; empty without profiling or where
  // the device has no timestamps.
  Result<std::vector<double>> dispatch_times() const;
  // The same of one part, with the device clock's time when each dispatch began.
  struct Span {
    double start_ns = 0;  // since a moment of the device's own
    double ns = 0;
  };
  Result<std::vector<Span>> dispatch_spans(RecordingPart part) const;

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit Recording(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vkformer
