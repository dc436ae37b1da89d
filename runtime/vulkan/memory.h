// Device memory in blocks, and buffers placed in them. Used by the vulkan room only; the other
// rooms see Buffer.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "vulkan/buffer.h"
#include "vulkan/context.h"

namespace vkformer {

struct MemoryBlock;

// A VkBuffer and its place. Owned by whoever called make; give it back with release.
struct PlacedBuffer {
  VkBuffer handle = VK_NULL_HANDLE;
  MemoryBlock* block = nullptr;
  uint64_t offset = 0;                       // in the block, bytes
  uint64_t bytes = 0;                        // taken from the block
  std::byte* mapped = nullptr;               // coherent host address, or null
  bool host_cached = false;                  // of a mapped one
  VkDeviceMemory imported = VK_NULL_HANDLE;  // all of it, in place of a block
};

class MemoryPool {
 public:
  // kMapWherePossible maps device memory that the host can see coherently.
  enum class Mapping : uint8_t { kMapWherePossible, kNeverMapDeviceMemory };
  static Result<std::unique_ptr<MemoryPool>> create(Context& context, Mapping mapping);
  // Precondition: every buffer was released.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Uninitialized memory. `name` is for messages and debug tools.
  Result<PlacedBuffer> make(uint64_t bytes, MemoryUse use, const std::string& name);
  // A buffer whose memory is `pages`, which stay as they are until it is released: kernels read
  // them where they are. Nothing where the device or its driver cannot. They count as nobody's
  // device memory.
  std::optional<PlacedBuffer> import(std::span<const std::byte> pages, const std::string& name);
  // Precondition: the device has finished with it.
  void release(const PlacedBuffer& buffer);

  // What a buffer of that size takes of a block; at least the size.
  uint64_t placed_bytes(uint64_t bytes) const;
  // What the host can do with buffers of that use.
  HostReach host_reach(MemoryUse use) const;
  // The heap that buffers of that use lie in; empty where no type of memory suits them.
  std::optional<uint32_t> heap_of(MemoryUse use) const;
  // Bytes held by buffers, and by the blocks that they lie in.
  uint64_t bytes_in_use() const { return in_use_.load(); }
  uint64_t bytes_reserved() const { return reserved_.load(); }
  size_t block_count() const;

 private:
  struct Kind {
    uint32_t type = 0;
    bool mapped = false;
  };
  MemoryPool(Context& context, Mapping mapping);
  // The type of imported memory; kernels see there what the host wrote before their submit.
  std::optional<uint32_t> imported_type(const void* pages, uint32_t type_bits) const;
  Result<Kind> choose_kind(uint32_t type_bits, MemoryUse use) const;
  Status place(PlacedBuffer& buffer, const VkMemoryRequirements& needs, Kind kind,
               const std::string& name);
  Result<MemoryBlock*> add_block(uint64_t bytes, Kind kind, const std::string& name);
  Result<std::unique_ptr<MemoryBlock>> allocate(uint64_t bytes, Kind kind, const std::string& name);
  bool host_cached(uint32_t type) const;
  uint64_t budget_left() const;
  // Those kept against repeated allocation.
  void free_empty_blocks();
  Error over_budget(uint64_t bytes, const std::string& name) const;
  Error out_of_memory(const Error& cause, uint64_t bytes, Kind kind, const std::string& name) const;

  Context& context_;
  Mapping mapping_;
  bool unified_ = false;      // every heap is device-local
  bool wide_window_ = false;  // the host can map at least 1 GiB of device-local memory
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<MemoryBlock>> blocks_;
  std::atomic<uint64_t> in_use_{0};
  std::atomic<uint64_t> reserved_{0};
};

}  // namespace vkformer
