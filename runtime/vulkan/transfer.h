// Synchronous copies between host memory and buffers that the host cannot see, through one staging
// buffer.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "vulkan/command_buffers.h"
#include "vulkan/memory.h"
#include "vulkan/timeline.h"

namespace vkformer {

class Transfer {
 public:
  static Result<std::unique_ptr<Transfer>> create(Context& context, MemoryPool& memory,
                                                  Timeline& timeline);
  // Precondition: nothing is in flight.
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Of the staging buffer, which the first copy makes.
  uint64_t staging_bytes() const;

  // Offsets and sizes in bytes, multiples of 4, inside the buffer.
  Status upload(VkBuffer to, uint64_t offset, std::span<const std::byte> data);
  Status download(VkBuffer from, uint64_t offset, std::span<std::byte> data);
  Status fill(VkBuffer to, uint64_t offset, uint64_t bytes, uint32_t word);

 private:
  Transfer(Context& context, MemoryPool& memory, Timeline& timeline)
      : context_(context), memory_(memory), timeline_(timeline) {}
  Status make_staging();
  Status submit_and_wait();

  Context& context_;
  MemoryPool& memory_;
  Timeline& timeline_;
  std::mutex mutex_;
  TransientCommands own_;
  std::optional<PlacedBuffer> staging_;
};

}  // namespace vkformer
