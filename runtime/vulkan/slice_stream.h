// Slices of prepared recordings on their way through the queue. They are recorded anew each time,
// into command buffers of our own or of the application, and timed piece by piece.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "vulkan/buffer_copy.h"
#include "vulkan/recording.h"

namespace vkformer {

// Consecutive pieces of one prepared recording.
struct SlicePart {
  const Recording* recording = nullptr;
  std::vector<PlanPiece> pieces;
};

// Words to be written to a buffer before the pieces run.
struct SliceWrite {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0;               // bytes, a multiple of 4
  std::span<const std::byte> bytes;  // a multiple of 4; alive until the slice is recorded
};

// A picture in an image of the application, to be copied to a buffer before the pieces run.
struct SliceImage {
  uint64_t image = 0;   // VkImage
  int32_t layout = 0;   // VkImageLayout in which it is and is left
  uint32_t width = 0;   // pixels of 4 bytes
  uint32_t height = 0;  // pixels
  uint32_t mip_level = 0;
  uint32_t array_layer = 0;
  const Buffer* to = nullptr;
  uint64_t offset = 0;  // bytes, a multiple of 4
};

struct Slice {
  std::vector<SliceWrite> writes;
  std::vector<BufferCopy> before;  // of what the host wrote
  std::vector<SliceImage> images;
  std::vector<SlicePart> parts;
  std::vector<BufferCopy> after;  // of what the host will read
  size_t copied_after = 0;        // parts that run before these copies
};

// Measured times of a slice that the GPU has finished.
struct SliceTimes {
  uint64_t slice = 0;       // as append and submit numbered it
  double microseconds = 0;  // from the begin of its first piece to the end of its last
  // Microseconds each, in order, up to the begin of the next; empty without timestamps.
  std::vector<double> pieces;
};

// What a submit of our own waits for and signals besides our timeline; values are those of timeline
// semaphores, 0 for binary ones.
struct SubmitSemaphores {
  std::vector<uint64_t> wait_handles, wait_values;
  std::vector<uint64_t> signal_handles, signal_values;
};

class SliceStream {
 public:
  // Pieces that one slice may have.
  static constexpr size_t kMostPieces = 256;

  // On any thread; submits nothing.
  static Result<std::unique_ptr<SliceStream>> create(std::shared_ptr<VulkanDevice> device);
  // Waits until the device is done with what submit() submitted. What append() appended must have
  // run, or never run.
  ~SliceStream();
  SliceStream(const SliceStream&) = delete;
  SliceStream& operator=(const SliceStream&) = delete;

  // Submits the slice and returns its number, from 1 on. Where the device has no timestamps, waits
  // for it and takes the time by the clock.
  Result<uint64_t> submit(const Slice& slice, const SubmitSemaphores& semaphores);
  // Appends the slice to a command buffer of the application, not null, outside a render pass.
  // After an error in the middle the command buffer is of no use.
  Result<uint64_t> append(VkCommandBuffer_T* commands, const Slice& slice);
  // Whether the device has timestamps. Without them, append cannot tell when its slices have run.
  bool timed() const;
  // Times of slices that finished since the last call, oldest first. Does not wait.
  Result<std::vector<SliceTimes>> finished();
  // Waits for what submit() submitted.
  Status wait();
  // Gives up a slice that was appended and never runs.
  void forget(uint64_t slice);
  // Gives up the times of all slices. What was submitted must have run; what was appended must have
  // run, or never run.
  void forget_all();

 private:
  struct Impl;
  explicit SliceStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vkformer
