// Command buffers with copies between buffers, each used for one submit. They have what a pass
// copies from and to host memory at the begin and the end of its submit. May be called from any
// thread.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vulkan/buffer_copy.h"
#include "vulkan/timeline.h"

namespace vkformer {

// Appends one copy; the caller orders it against other commands.
void record_copy(const Context& context, VkCommandBuffer commands, const BufferCopy& copy);
// Says that a submit of this timeline value makes the copies.
void mark_used(std::span<const BufferCopy> copies, uint64_t value);

class CopyCommands {
 public:
  // Whether copies come before the kernels of a submit, or after them.
  enum class When : uint8_t { kBeforeKernels, kAfterKernels };

  CopyCommands(Context& context, Timeline& timeline);
  // Precondition: nothing is in flight.
  ~CopyCommands();
  CopyCommands(const CopyCommands&) = delete;
  CopyCommands& operator=(const CopyCommands&) = delete;

  // A command buffer that is free again once `submitted` has named its timeline value, and that
  // value is reached.
  struct Recorded;
  Result<Recorded*> record(std::span<const BufferCopy> copies, When when);
  static SubmitChunk chunk(const Recorded& recorded);
  // `value` of the submit that has the commands; 0 if it failed and they will not run.
  void submitted(Recorded& recorded, uint64_t value);

 private:
  Result<Recorded*> take();

  Context& context_;
  Timeline& timeline_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Recorded>> all_;
};

}  // namespace vkformer
