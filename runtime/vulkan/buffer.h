// Device memory as the other rooms see it: a buffer, and a span of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace vkformer {

// By which side writes and which reads; a GPU that shares its memory with the host has one kind for
// all.
enum class MemoryUse : uint8_t {
  kDevice,       // written and read by the GPU
  kHostWritten,  // written by the host before a submit, read by the GPU: device-local and mapped
                 // if the device has enough of that, else as kDevice
  kHost,         // mapped, cached for the host if possible: staging, and results on their way back
};

// What the host can do with memory of one use on a device.
struct HostReach {
  bool mapped = false;
  bool cached = false;  // and reads it at the speed of its caches
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
  // Timeline value of the last submit that reads or writes the buffer.
  uint64_t last_use() const;
  // Whether the host reads mapped memory at the speed of its caches. Other mapped memory is for
  // writing: reading it may be a hundred times slower.
  bool host_cached() const;

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
