#include "vulkan/slice_stream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/message.h"
#include "vulkan/command_buffers.h"
#include "vulkan/copy_commands.h"
#include "vulkan/recorder.h"

namespace vkformer {
namespace {

// Slices that may be under way before the oldest is waited for, or, if recorded, refused.
constexpr size_t kSlots = 64;
constexpr uint32_t kQueries = 2 * SliceStream::kMostPieces;
constexpr size_t kMostUpdate = 65536;  // bytes of one vkCmdUpdateBuffer

size_t piece_count(const Slice& slice) {
  size_t count = 0;
  for (const SlicePart& part : slice.parts) count += part.pieces.size();
  return count;
}

}  // namespace

struct SliceStream::Impl {
  // One slice under way: its queries and, for our own submits, its command buffer.
  struct Slot {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    uint64_t slice = 0;  // 0: nothing to report
    uint64_t value = 0;  // of our timeline; 0: appended to a command buffer of the application
    uint32_t queries = 0;
    double clock = 0;         // microseconds by the clock, without timestamps
    uint64_t first_tick = 0;  // of the slice before, which may still stand in the pool
  };

  std::shared_ptr<VulkanDevice> device;
  VkQueryPool queries = VK_NULL_HANDLE;  // null without timestamps
  std::array<Slot, kSlots> slots;
  bool resets = false;       // whether the queries are still to be reset
  uint64_t reset_value = 0;  // of our timeline: once it is reached, the queries may be asked
  uint64_t slices = 0;       // begun
  uint64_t last_value = 0;

  Context& context() const { return device->impl().context; }
  ~Impl();
  Status make_slot(Slot& slot);
  Status make_queries();
  Status reset_queries();
  Result<Slot*> next_slot();
  Status begin(Slot& slot);
  Status end(Slot& slot);
  Result<uint64_t> end_and_submit(Slot& slot, const SubmitSemaphores& semaphores);
  Status record(VkCommandBuffer commands, Slot& slot, const Slice& slice);
  void write(VkCommandBuffer commands, const Slice& slice);
  void copy(VkCommandBuffer commands, const SliceImage& from);
  void results_follow(VkCommandBuffer commands);
  void copy_results(VkCommandBuffer commands, const Slice& slice);
  Result<bool> read(Slot& slot, SliceTimes& times);
};

SliceStream::Impl::~Impl() {
  if (!device) return;
  device->impl().timeline->settle(last_value);
  const Context& c = context();
  for (const Slot& slot : slots) {
    if (slot.pool) destroy_command_pool(c, slot.pool);
  }
  if (queries) c.api.DestroyQueryPool(c.device, queries, c.allocator);
}

Status SliceStream::Impl::make_slot(Slot& slot) {
  VKF_ASSIGN(const TransientCommands made, make_transient_commands(context(), "[slices]"));
  slot.pool = made.pool;
  slot.commands = made.commands;
  return {};
}

// And the commands that reset them.
Status SliceStream::Impl::make_queries() {
  Context& c = context();
  if (c.timestamp_bits == 0) return {};
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = kQueries * kSlots;
  VKF_CHECK(c.check_made(c.api.CreateQueryPool(c.device, &info, c.allocator, &queries), queries,
                         "[slices] vkCreateQueryPool"));
  Slot& slot = slots.back();  // the last that a slice will need
  VKF_CHECK(make_slot(slot));
  VKF_CHECK(begin(slot));
  c.api.CmdResetQueryPool(slot.commands, queries, 0, info.queryCount);
  VKF_CHECK(end(slot));
  resets = true;
  return {};
}

// Queries may only be asked for once they have been reset, which nobody waits for.
Status SliceStream::Impl::reset_queries() {
  if (!resets) return {};
  Slot& slot = slots.back();
  const SubmitChunk chunk{slot.commands, 0};
  VKF_ASSIGN(reset_value, device->impl().timeline->submit({&chunk, 1}));
  last_value = slot.value = reset_value;
  resets = false;
  return {};
}

Status SliceStream::Impl::begin(Slot& slot) {
  Context& c = context();
  VKF_CHECK(reset_command_pool(c, slot.pool, "[slices]"));
  return begin_commands(c, slot.commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, "[slices]");
}

Status SliceStream::Impl::end(Slot& slot) {
  Context& c = context();
  return c.check(c.api.EndCommandBuffer(slot.commands), "[slices] vkEndCommandBuffer");
}

Result<uint64_t> SliceStream::Impl::end_and_submit(Slot& slot, const SubmitSemaphores& semaphores) {
  VKF_CHECK(end(slot));
  const SubmitChunk chunk{slot.commands, 0};
  return device->impl().timeline->submit({&chunk, 1}, &semaphores);
}

// The slot of the oldest slice, whose commands have run; its times are lost if nobody asked.
Result<SliceStream::Impl::Slot*> SliceStream::Impl::next_slot() {
  VKF_CHECK(context().check_alive());
  VKF_CHECK(reset_queries());
  Slot& slot = slots[slices % kSlots];
  if (!slot.pool) VKF_CHECK(make_slot(slot));
  VKF_CHECK(device->wait(slot.value));
  if (slot.slice != 0) {
    // Nobody asked for its times; they must not pass for those of the next.
    SliceTimes unread;
    VKF_ASSIGN(const bool done, read(slot, unread));
    if (!done) {
      return invalid_argument(
          message({"[record] the last ", kSlots,
                   " slices that were recorded have not run; submit them first"}));
    }
    slot.slice = 0;
  }
  return &slot;
}

void SliceStream::Impl::write(VkCommandBuffer commands, const Slice& slice) {
  if (slice.writes.empty() && slice.before.empty()) return;
  copies_follow_writes(context(), commands);
  for (const SliceWrite& w : slice.writes) {
    for (size_t at = 0; at < w.bytes.size(); at += kMostUpdate) {
      context().api.CmdUpdateBuffer(commands, w.buffer->impl()->placed.handle, w.offset + at,
                                    std::min(kMostUpdate, w.bytes.size() - at),
                                    w.bytes.data() + at);
    }
  }
}

// The image is read in the layout for it and goes back to its own. Images are copied one after the
// other, because one may be given twice.
void SliceStream::Impl::copy(VkCommandBuffer commands, const SliceImage& from) {
  constexpr VkPipelineStageFlags kAll = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  constexpr VkPipelineStageFlags kCopy = VK_PIPELINE_STAGE_TRANSFER_BIT;
  const DeviceApi& api = context().api;
  VkImageMemoryBarrier image{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  image.srcQueueFamilyIndex = image.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  image.image = (VkImage)from.image;
  image.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, from.mip_level, 1, from.array_layer, 1};
  image.oldLayout = static_cast<VkImageLayout>(from.layout);
  image.newLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
  image.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  image.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
  VkMemoryBarrier buffer{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  buffer.srcAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  buffer.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  api.CmdPipelineBarrier(commands, kAll, kCopy, 0, 1, &buffer, 0, nullptr, 1, &image);
  VkBufferImageCopy region{};
  region.bufferOffset = from.offset;
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, from.mip_level, from.array_layer, 1};
  region.imageExtent = {from.width, from.height, 1};
  api.CmdCopyImageToBuffer(commands, image.image, image.newLayout, from.to->impl()->placed.handle,
                           1, &region);
  std::swap(image.oldLayout, image.newLayout);
  image.srcAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
  image.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  api.CmdPipelineBarrier(commands, kCopy, kAll, 0, 0, nullptr, 0, nullptr, 1, &image);
}

// What was computed is visible to the host and to transfers.
void SliceStream::Impl::results_follow(VkCommandBuffer commands) {
  context().memory_barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_ACCESS_SHADER_WRITE_BIT,
                           VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT);
}

void SliceStream::Impl::copy_results(VkCommandBuffer commands, const Slice& slice) {
  results_follow(commands);
  if (slice.after.empty()) return;
  for (const BufferCopy& one : slice.after) record_copy(context(), commands, one);
  context().memory_barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                           VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

Status SliceStream::Impl::record(VkCommandBuffer commands, Slot& slot, const Slice& slice) {
  const size_t pieces = piece_count(slice);
  if (pieces > kMostPieces) {
    return internal_error(message(
        {"[slices] a slice has ", pieces, " pieces, but at most ", kMostPieces, " are timed"}));
  }
  const auto first = static_cast<uint32_t>(slices % kSlots) * kQueries;
  slot.queries = static_cast<uint32_t>(2 * pieces);
  if (queries && slot.queries > 0) {
    context().api.CmdResetQueryPool(commands, queries, first, slot.queries);
  }
  write(commands, slice);
  for (const BufferCopy& one : slice.before) record_copy(context(), commands, one);
  for (const SliceImage& image : slice.images) copy(commands, image);
  PieceQueries timed{queries, first};
  for (size_t i = 0; i < slice.parts.size(); ++i) {
    const SlicePart& part = slice.parts[i];
    VKF_CHECK(part.recording->impl().recorder->append(commands, part.pieces, timed));
    if (i + 1 == slice.copied_after && i + 1 < slice.parts.size()) copy_results(commands, slice);
  }
  if (slice.copied_after == slice.parts.size()) {
    copy_results(commands, slice);
  } else {
    results_follow(commands);
  }
  slot.slice = ++slices;
  return {};
}

SliceStream::SliceStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SliceStream::~SliceStream() = default;

Result<std::unique_ptr<SliceStream>> SliceStream::create(std::shared_ptr<VulkanDevice> device) {
  auto impl = std::make_unique<Impl>();
  impl->device = std::move(device);
  VKF_CHECK(impl->context().check_alive());
  VKF_CHECK(impl->make_queries());
  return std::unique_ptr<SliceStream>(new SliceStream(std::move(impl)));
}

Result<uint64_t> SliceStream::submit(const Slice& slice, const SubmitSemaphores& semaphores) {
  VKF_ASSIGN(Impl::Slot * slot, impl_->next_slot());
  VKF_CHECK(impl_->begin(*slot));
  VKF_CHECK(impl_->record(slot->commands, *slot, slice));
  const auto begin = std::chrono::steady_clock::now();
  const auto value = impl_->end_and_submit(*slot, semaphores);
  if (!value) {
    // Its times will never come.
    slot->slice = 0;
    return value.error();
  }
  slot->value = impl_->last_value = *value;
  for (const SlicePart& part : slice.parts) part.recording->impl().submitted(*value);
  for (const SliceWrite& write : slice.writes) write.buffer->impl()->last_use.raise_to(*value);
  mark_used(slice.before, *value);
  mark_used(slice.after, *value);
  if (!impl_->queries) {
    // It was submitted, so a wait that fails must not make it pass for one that was refused.
    impl_->device->impl().timeline->settle(*value);
    VKF_CHECK(impl_->context().check_alive());
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    slot->clock = taken.count();
  }
  return slot->slice;
}

Result<uint64_t> SliceStream::append(VkCommandBuffer_T* commands, const Slice& slice) {
  VKF_ASSIGN(Impl::Slot * slot, impl_->next_slot());
  slot->value = 0;
  slot->clock = 0;
  lower_occupancy(impl_->context(), commands);
  const Status recorded = impl_->record(commands, *slot, slice);
  restore_occupancy(impl_->context(), commands);
  VKF_CHECK(recorded);
  return impl_->queries ? slot->slice : std::exchange(slot->slice, 0);
}

bool SliceStream::timed() const {
  return impl_->queries != VK_NULL_HANDLE;
}

// Whether the slice has finished, and then its times.
Result<bool> SliceStream::Impl::read(Slot& slot, SliceTimes& times) {
  times = {.slice = slot.slice, .microseconds = slot.clock};
  if (!queries || slot.queries == 0) return true;
  // Of our own submits the timeline tells. Asking for queries of a slice that runs blocks in some
  // drivers: Mesa's llvmpipe compiles shaders under the lock that it takes.
  Context& c = context();
  if (!device->impl().timeline->reached(std::max(reset_value, slot.value))) {
    VKF_CHECK(c.check_alive());
    return false;
  }
  const auto first = static_cast<uint32_t>((slot.slice - 1) % kSlots) * kQueries;
  std::vector<std::array<uint64_t, 2>> ticks(slot.queries);  // value, available
  const VkResult result = c.api.GetQueryPoolResults(
      c.device, queries, first, slot.queries, ticks.size() * sizeof ticks[0], ticks.data(),
      sizeof ticks[0], VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
  if (result != VK_NOT_READY) VKF_CHECK(c.check(result, "[slices] vkGetQueryPoolResults"));
  for (const auto& tick : ticks) {
    if (tick[1] == 0) return false;
  }
  // What the slot's earlier slice wrote stands there until the reset has run.
  if (ticks.front()[0] == slot.first_tick) return false;
  slot.first_tick = ticks.front()[0];
  const uint64_t mask = c.timestamp_bits >= 64 ? ~0ull : (1ull << c.timestamp_bits) - 1;
  const auto between = [&](const auto& from, const auto& to) {
    return static_cast<double>((to[0] - from[0]) & mask) * c.timestamp_period * 1e-3;
  };
  // What lies between two pieces, a barrier, is a part of the first: pieces add up to the slice.
  for (size_t i = 0; i + 1 < ticks.size(); i += 2) {
    times.pieces.push_back(between(ticks[i], ticks[std::min(i + 2, ticks.size() - 1)]));
  }
  times.microseconds = between(ticks.front(), ticks.back());
  return true;
}

Result<std::vector<SliceTimes>> SliceStream::finished() {
  std::vector<SliceTimes> list;
  const uint64_t oldest = impl_->slices >= kSlots ? impl_->slices - kSlots : 0;
  for (uint64_t slice = oldest; slice < impl_->slices; ++slice) {
    Impl::Slot& slot = impl_->slots[slice % kSlots];
    if (slot.slice == 0) continue;
    SliceTimes times;
    VKF_ASSIGN(const bool done, impl_->read(slot, times));
    if (!done) break;
    slot.slice = 0;
    list.push_back(std::move(times));
  }
  return list;
}

void SliceStream::forget(uint64_t slice) {
  Impl::Slot& slot = impl_->slots[(slice - 1) % kSlots];
  if (slot.slice == slice) slot.slice = 0;
}

void SliceStream::forget_all() {
  for (Impl::Slot& slot : impl_->slots) {
    if (slot.slice == 0) continue;
    // Reading once more keeps what ran from passing for the slot's next slice; its only failure is
    // a lost device, on which nothing follows.
    SliceTimes unread;
    (void)impl_->read(slot, unread);
    slot.slice = 0;
  }
}

Status SliceStream::wait() {
  return impl_->device->wait(impl_->last_value);
}

}  // namespace vkformer
