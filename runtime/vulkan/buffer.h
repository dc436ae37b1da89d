// Device memory as the other rooms see it: a buffer, and a span of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace vkformer {

enum class MemoryUse : uint8_t {
  kDevice,    // fastest for the GPU; mapped too where memory is shared with the host
  kReadback,  // mapped, cached for the host where possible; small state the host polls
};

// One VkBuffer placed in a block of device memory. Move-only; freed when the last owner goes,
// after the device has finished with it (the device waits for its timeline).
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;

  uint64_t bytes() const;
  bool valid() const { return impl_ != nullptr; }
  // Host address of the buffer's first byte where its memory is mapped, else null. Coherent.
  std::byte* mapped() const;

  struct Impl;
  explicit Buffer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// Part of a buffer, as bound to a dispatch. Offsets obey the device's storage alignment.
struct BufferSpan {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0;  // bytes
  uint64_t bytes = 0;
};

}  // namespace vkformer
