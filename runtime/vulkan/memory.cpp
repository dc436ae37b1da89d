#include "vulkan/memory.h"

#include <algorithm>

#include "base/message.h"
#include "driver/snapshot.h"

namespace vkformer {

// One VkDeviceMemory with its free ranges, by offset.
struct MemoryBlock {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t bytes = 0;
  uint32_t type = 0;
  std::byte* mapped = nullptr;
  std::map<uint64_t, uint64_t> free;  // offset -> bytes

  bool empty() const { return free.size() == 1 && free.begin()->second == bytes; }
  // Best fit: the smallest free range that holds the request.
  bool take(uint64_t want, uint64_t alignment, uint64_t& offset);
  void give(uint64_t offset, uint64_t size);
};

namespace {

constexpr uint64_t kBlockBytes = 64ull << 20;
constexpr uint64_t kCountedBlockBytes = 1ull << 20;  // under a memory budget
constexpr VkBufferUsageFlags kUsage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
    VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
    VK_BUFFER_USAGE_TRANSFER_DST_BIT;
constexpr VkExternalMemoryHandleTypeFlagBits kHostPages =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
constexpr VkMemoryPropertyFlags kCoherent =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

// Where bytes are counted, blocks hold little more than was asked for.
uint64_t usual_block_bytes(const Context& context) {
  return context.memory_budget != UINT64_MAX ? kCountedBlockBytes : kBlockBytes;
}

// A host-visible window onto a GPU's memory that is smaller than this is left to the driver and the
// application. Without resizable BAR 256 MiB are usual.
constexpr uint64_t kWideWindow = 1ull << 30;

// Of the largest device-local heap that the host can map, bytes; 0: there is none.
uint64_t window_bytes(const VkPhysicalDeviceMemoryProperties& memory) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    constexpr VkMemoryPropertyFlags kWanted = kCoherent | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    if ((memory.memoryTypes[i].propertyFlags & kWanted) != kWanted) continue;
    most = std::max<uint64_t>(most, memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size);
  }
  return most;
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

}  // namespace

bool MemoryBlock::take(uint64_t want, uint64_t alignment, uint64_t& offset) {
  auto best = free.end();
  for (auto it = free.begin(); it != free.end(); ++it) {
    const uint64_t start = align_up(it->first, alignment);
    if (start - it->first > it->second || it->second - (start - it->first) < want) continue;
    if (best == free.end() || it->second < best->second) best = it;
  }
  if (best == free.end()) return false;
  const uint64_t begin = best->first, end = best->first + best->second;
  offset = align_up(begin, alignment);
  free.erase(best);
  if (offset > begin) free[begin] = offset - begin;
  if (end > offset + want) free[offset + want] = end - offset - want;
  return true;
}

void MemoryBlock::give(uint64_t offset, uint64_t size) {
  auto next = free.lower_bound(offset);
  if (next != free.end() && offset + size == next->first) {
    size += next->second;
    next = free.erase(next);
  }
  if (next != free.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free[offset] = size;
}

MemoryPool::MemoryPool(Context& context, Mapping mapping) : context_(context), mapping_(mapping) {}

Result<std::unique_ptr<MemoryPool>> MemoryPool::create(Context& context, Mapping mapping) {
  std::unique_ptr<MemoryPool> self(new MemoryPool(context, mapping));
  self->unified_ = context.memory.memoryHeapCount > 0;
  self->wide_window_ = window_bytes(context.memory) >= kWideWindow;
  for (uint32_t i = 0; i < context.memory.memoryHeapCount; ++i) {
    const VkMemoryHeapFlags flags = context.memory.memoryHeaps[i].flags;
    if ((flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) self->unified_ = false;
  }
  return self;
}

MemoryPool::~MemoryPool() {
  for (const auto& block : blocks_) {
    context_.api.FreeMemory(context_.device, block->memory, context_.allocator);
  }
}

size_t MemoryPool::block_count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return blocks_.size();
}

// The first memory type with the wanted properties, from the most to the least suitable.
Result<MemoryPool::Kind> MemoryPool::choose_kind(uint32_t type_bits, MemoryUse use) const {
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  struct Wish {
    VkMemoryPropertyFlags all, none;
  };
  std::vector<Wish> wishes;
  const bool maps = mapping_ == Mapping::kMapWherePossible;
  if (use == MemoryUse::kHost) {
    wishes = {{kCoherent | kCached, 0}, {kCoherent, 0}};
  } else if (maps && (unified_ || (use == MemoryUse::kHostWritten && wide_window_))) {
    wishes = {{kLocal | kCoherent, 0}, {kLocal, 0}, {0, 0}};
  } else {
    // On a discrete GPU the host-visible part of device memory is small; leave it to others.
    wishes = {{kLocal, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT}, {kLocal, 0}, {0, 0}};
  }
  constexpr VkMemoryPropertyFlags kNever =
      VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
  for (const Wish& wish : wishes) {
    for (uint32_t i = 0; i < context_.memory.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags flags = context_.memory.memoryTypes[i].propertyFlags;
      if ((type_bits & (1u << i)) == 0 || (flags & kNever) != 0) continue;
      if ((flags & wish.all) != wish.all || (flags & wish.none) != 0) continue;
      const bool mappable = (flags & kCoherent) == kCoherent;
      return Kind{i, mappable && (use == MemoryUse::kHost || maps)};
    }
  }
  return Error{ErrorCode::kDriver,
               "[memory] the device has no memory type for storage buffers; "
               "choose another device"};
}

Error MemoryPool::out_of_memory(const Error& cause, uint64_t bytes, Kind kind,
                                const std::string& name) const {
  const uint32_t heap = context_.memory.memoryTypes[kind.type].heapIndex;
  return {cause.code, "[" + name + "] needs " + std::to_string(bytes) +
                          " bytes of device memory; vkformer holds " +
                          std::to_string(reserved_.load()) + " bytes, the heap has " +
                          std::to_string(context_.memory.memoryHeaps[heap].size) + ": " +
                          cause.message};
}

Error MemoryPool::over_budget(uint64_t bytes, const std::string& name) const {
  return {
      ErrorCode::kOutOfMemory,
      "[" + name + "] needs " + std::to_string(bytes) +
          " more bytes of device memory; vkformer holds " + std::to_string(reserved_.load()) +
          " of its memory_budget of " + std::to_string(context_.memory_budget) +
          " bytes; raise the budget, free models and sessions, or use a smaller model or batch"};
}

Result<std::unique_ptr<MemoryBlock>> MemoryPool::allocate(uint64_t bytes, Kind kind,
                                                          const std::string& name) {
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = bytes;
  info.memoryTypeIndex = kind.type;
  auto block = std::make_unique<MemoryBlock>();
  block->bytes = bytes;
  block->type = kind.type;
  block->free[0] = bytes;
  Status status = context_.check(
      context_.api.AllocateMemory(context_.device, &info, context_.allocator, &block->memory),
      "[memory] vkAllocateMemory");
  if (!status) return out_of_memory(status.error(), bytes, kind, name);
  context_.set_name(VK_OBJECT_TYPE_DEVICE_MEMORY, handle_bits(block->memory), "vkformer block");
  if (!kind.mapped) return block;
  void* address = nullptr;
  status = context_.check(
      context_.api.MapMemory(context_.device, block->memory, 0, VK_WHOLE_SIZE, 0, &address),
      "[memory] vkMapMemory");
  if (!status) {
    context_.api.FreeMemory(context_.device, block->memory, context_.allocator);
    return out_of_memory(status.error(), bytes, kind, name);
  }
  block->mapped = static_cast<std::byte*>(address);
  return block;
}

uint64_t MemoryPool::budget_left() const {
  return context_.memory_budget - std::min(context_.memory_budget, reserved_.load());
}

void MemoryPool::free_empty_blocks() {
  const auto kept = std::stable_partition(blocks_.begin(), blocks_.end(),
                                          [](const auto& block) { return !block->empty(); });
  for (auto it = kept; it != blocks_.end(); ++it) {
    context_.api.FreeMemory(context_.device, (*it)->memory, context_.allocator);
    reserved_ -= (*it)->bytes;
  }
  blocks_.erase(kept, blocks_.end());
}

Result<MemoryBlock*> MemoryPool::add_block(uint64_t bytes, Kind kind, const std::string& name) {
  if (bytes > budget_left()) free_empty_blocks();
  const uint64_t left = budget_left();
  if (bytes > left) return over_budget(bytes, name);
  const uint64_t usual = std::min(usual_block_bytes(context_), context_.caps.limits.max_allocation);
  const uint64_t roomy = std::max(bytes, std::min(usual, left));
  auto block = allocate(roomy, kind, name);
  // Near the end of the heap a whole block may fail where the request alone fits, perhaps in place
  // of blocks that were kept.
  const auto exhausted = [&] { return !block && block.error().code == ErrorCode::kOutOfMemory; };
  if (exhausted() && roomy > bytes) block = allocate(bytes, kind, name);
  if (exhausted()) {
    free_empty_blocks();
    block = allocate(bytes, kind, name);
  }
  if (!block) return block.error();
  reserved_ += (*block)->bytes;
  blocks_.push_back(std::move(*block));
  return blocks_.back().get();
}

Status MemoryPool::place(PlacedBuffer& buffer, const VkMemoryRequirements& needs, Kind kind,
                         const std::string& name) {
  const DeviceLimits& limits = context_.caps.limits;
  const uint64_t alignment =
      std::max({uint64_t{needs.alignment}, limits.storage_alignment, limits.uniform_alignment});
  buffer.bytes = needs.size;
  for (const auto& block : blocks_) {
    const bool same = block->type == kind.type && (block->mapped != nullptr) == kind.mapped;
    if (same && block->take(needs.size, alignment, buffer.offset)) {
      buffer.block = block.get();
      return {};
    }
  }
  VKF_ASSIGN(buffer.block, add_block(needs.size, kind, name));
  if (!buffer.block->take(needs.size, alignment, buffer.offset)) {
    return internal_error(message({"[", name, "] a new memory block cannot hold its buffer"}));
  }
  return {};
}

namespace {

VkBufferCreateInfo buffer_info(uint64_t bytes) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = align_up(bytes, 16);  // kernels read whole vec4 words at the end
  info.usage = kUsage;
  return info;
}

}  // namespace

uint64_t MemoryPool::placed_bytes(uint64_t bytes) const {
  const VkBufferCreateInfo info = buffer_info(bytes);
  VkBuffer buffer = VK_NULL_HANDLE;
  const bool made =
      context_.api.CreateBuffer(context_.device, &info, context_.allocator, &buffer) == VK_SUCCESS;
  if (!made) return info.size;
  VkMemoryRequirements needs{};
  context_.api.GetBufferMemoryRequirements(context_.device, buffer, &needs);
  context_.api.DestroyBuffer(context_.device, buffer, context_.allocator);
  return needs.size;
}

std::optional<uint32_t> MemoryPool::heap_of(MemoryUse use) const {
  const auto kind = choose_kind(~0u, use);
  if (!kind) return std::nullopt;
  return context_.memory.memoryTypes[kind->type].heapIndex;
}

HostReach MemoryPool::host_reach(MemoryUse use) const {
  const auto kind = choose_kind(~0u, use);
  if (!kind || !kind->mapped) return {};
  return {true, host_cached(kind->type)};
}

bool MemoryPool::host_cached(uint32_t type) const {
  return (context_.memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) !=
         0;
}

Result<PlacedBuffer> MemoryPool::make(uint64_t bytes, MemoryUse use, const std::string& name) {
  VKF_CHECK(context_.check_alive());
  const uint64_t limit = context_.caps.limits.max_allocation;
  if (bytes == 0 || bytes > limit) {
    return Error{bytes == 0 ? ErrorCode::kInvalidArgument : ErrorCode::kOutOfMemory,
                 "[" + name + "] asks for a buffer of " + std::to_string(bytes) +
                     " bytes, but this device allows 1 to " + std::to_string(limit) +
                     "; use a smaller batch or sequence"};
  }
  const VkBufferCreateInfo info = buffer_info(bytes);
  PlacedBuffer buffer;
  VKF_CHECK(context_.check(
      context_.api.CreateBuffer(context_.device, &info, context_.allocator, &buffer.handle),
      "[" + name + "] vkCreateBuffer"));
  VkMemoryRequirements needs{};
  context_.api.GetBufferMemoryRequirements(context_.device, buffer.handle, &needs);
  Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto kind = choose_kind(needs.memoryTypeBits, use);
    status = kind ? place(buffer, needs, *kind, name) : Status(kind.error());
    if (status) in_use_ += buffer.bytes;
  }
  if (status) {
    status = context_.check(context_.api.BindBufferMemory(context_.device, buffer.handle,
                                                          buffer.block->memory, buffer.offset),
                            "[" + name + "] vkBindBufferMemory");
  }
  if (!status) {
    release(buffer);
    return status.error();
  }
  if (buffer.block->mapped) buffer.mapped = buffer.block->mapped + buffer.offset;
  buffer.host_cached = host_cached(buffer.block->type);
  context_.set_name(VK_OBJECT_TYPE_BUFFER, handle_bits(buffer.handle), name);
  return buffer;
}

std::optional<uint32_t> MemoryPool::imported_type(const void* pages, uint32_t type_bits) const {
  VkMemoryHostPointerPropertiesEXT found{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  const VkResult result =
      context_.api.GetMemoryHostPointerPropertiesEXT(context_.device, kHostPages, pages, &found);
  if (result != VK_SUCCESS) return std::nullopt;
  for (uint32_t i = 0; i < context_.memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = context_.memory.memoryTypes[i].propertyFlags;
    if ((type_bits & found.memoryTypeBits & (1u << i)) != 0 && (flags & kCoherent) == kCoherent) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<PlacedBuffer> MemoryPool::import(std::span<const std::byte> pages,
                                               const std::string& name) {
  const uint64_t multiple = context_.import_alignment;
  if (multiple == 0 || pages.empty() || pages.size() > context_.caps.limits.max_allocation ||
      pages.size() % multiple != 0 || reinterpret_cast<uintptr_t>(pages.data()) % multiple != 0) {
    return std::nullopt;
  }
  VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  external.handleTypes = kHostPages;
  VkBufferCreateInfo info = buffer_info(pages.size());
  info.usage = kImportedUsage;
  info.pNext = &external;
  PlacedBuffer buffer;
  const DeviceApi& api = context_.api;
  if (api.CreateBuffer(context_.device, &info, context_.allocator, &buffer.handle) != VK_SUCCESS) {
    return std::nullopt;
  }
  VkMemoryRequirements needs{};
  api.GetBufferMemoryRequirements(context_.device, buffer.handle, &needs);
  const std::optional<uint32_t> type = imported_type(pages.data(), needs.memoryTypeBits);
  VkImportMemoryHostPointerInfoEXT host{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
  host.handleType = kHostPages;
  host.pHostPointer = const_cast<std::byte*>(pages.data());  // which kernels do not write
  VkMemoryAllocateInfo wanted{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  wanted.pNext = &host;
  wanted.allocationSize = pages.size();
  wanted.memoryTypeIndex = type.value_or(0);
  const bool made =
      type && needs.size <= pages.size() &&
      api.AllocateMemory(context_.device, &wanted, context_.allocator, &buffer.imported) ==
          VK_SUCCESS &&
      api.BindBufferMemory(context_.device, buffer.handle, buffer.imported, 0) == VK_SUCCESS;
  if (!made) {
    release(buffer);
    return std::nullopt;
  }
  context_.set_name(VK_OBJECT_TYPE_DEVICE_MEMORY, handle_bits(buffer.imported), "vkformer pages");
  context_.set_name(VK_OBJECT_TYPE_BUFFER, handle_bits(buffer.handle), name);
  return buffer;
}

void MemoryPool::release(const PlacedBuffer& buffer) {
  if (buffer.handle) context_.api.DestroyBuffer(context_.device, buffer.handle, context_.allocator);
  if (buffer.imported) {
    context_.api.FreeMemory(context_.device, buffer.imported, context_.allocator);
  }
  if (!buffer.block) return;
  std::lock_guard<std::mutex> lock(mutex_);
  in_use_ -= buffer.bytes;
  buffer.block->give(buffer.offset, buffer.bytes);
  if (!buffer.block->empty()) return;
  // Keep one empty block of the usual size per type, against repeated allocation.
  const uint64_t usual = usual_block_bytes(context_);
  size_t empty = 0;
  for (const auto& b : blocks_) {
    if (b->type == buffer.block->type && b->bytes <= usual && b->empty()) ++empty;
  }
  if (buffer.block->bytes <= usual && empty <= 1) return;
  auto it = std::find_if(blocks_.begin(), blocks_.end(),
                         [&](const auto& b) { return b.get() == buffer.block; });
  if (it == blocks_.end()) return;
  context_.api.FreeMemory(context_.device, (*it)->memory, context_.allocator);
  reserved_ -= (*it)->bytes;
  blocks_.erase(it);
}

}  // namespace vkformer
