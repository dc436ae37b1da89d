#include "vulkan/transfer.h"

#include <algorithm>
#include <cstring>

#include "vulkan/command_buffers.h"

namespace vkformer {
namespace {

constexpr uint64_t kStagingBytes = 8ull << 20;

}  // namespace

Result<std::unique_ptr<Transfer>> Transfer::create(Context& context, MemoryPool& memory,
                                                   Timeline& timeline) {
  std::unique_ptr<Transfer> self(new Transfer(context, memory, timeline));
  VKF_ASSIGN(self->own_, make_transient_commands(context, "[transfer]"));
  return self;
}

Transfer::~Transfer() {
  if (staging_) memory_.release(*staging_);
  if (own_.pool) destroy_command_pool(context_, own_.pool);
}

uint64_t Transfer::staging_bytes() const {
  return std::min(kStagingBytes, context_.caps.limits.max_allocation);
}

Status Transfer::make_staging() {
  if (staging_) return {};
  VKF_ASSIGN(PlacedBuffer made,
             memory_.make(staging_bytes(), MemoryUse::kHost, "vkformer staging"));
  if (!made.mapped) {
    memory_.release(made);
    return Error{ErrorCode::kDriver,
                 "[transfer] the device has no coherent host-visible memory, which Vulkan "
                 "guarantees; update the driver"};
  }
  staging_ = made;
  return {};
}

Status Transfer::submit_and_wait() {
  // Later recordings open with a barrier of their own, so only the host is left to be told.
  context_.memory_barrier(own_.commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                          VK_ACCESS_HOST_READ_BIT);
  VKF_CHECK(context_.check(context_.api.EndCommandBuffer(own_.commands),
                           "[transfer] vkEndCommandBuffer"));
  const SubmitChunk chunk{own_.commands, 0};
  VKF_ASSIGN(const uint64_t value, timeline_.submit({&chunk, 1}));
  const Status waited = timeline_.wait(value);
  // The next copy writes over these commands and the staging buffer.
  if (!waited) timeline_.settle(value);
  return waited;
}

Status Transfer::upload(VkBuffer to, uint64_t offset, std::span<const std::byte> data) {
  std::lock_guard<std::mutex> lock(mutex_);
  VKF_CHECK(make_staging());
  while (!data.empty()) {
    const size_t bytes = std::min<size_t>(data.size(), staging_->bytes);
    std::memcpy(staging_->mapped, data.data(), bytes);
    VKF_CHECK(begin_copies(context_, own_, "[transfer]"));
    const VkBufferCopy copy{0, offset, bytes};
    context_.api.CmdCopyBuffer(own_.commands, staging_->handle, to, 1, &copy);
    VKF_CHECK(submit_and_wait());
    data = data.subspan(bytes);
    offset += bytes;
  }
  return {};
}

Status Transfer::download(VkBuffer from, uint64_t offset, std::span<std::byte> data) {
  std::lock_guard<std::mutex> lock(mutex_);
  VKF_CHECK(make_staging());
  while (!data.empty()) {
    const size_t bytes = std::min<size_t>(data.size(), staging_->bytes);
    VKF_CHECK(begin_copies(context_, own_, "[transfer]"));
    const VkBufferCopy copy{offset, 0, bytes};
    context_.api.CmdCopyBuffer(own_.commands, from, staging_->handle, 1, &copy);
    VKF_CHECK(submit_and_wait());
    std::memcpy(data.data(), staging_->mapped, bytes);
    data = data.subspan(bytes);
    offset += bytes;
  }
  return {};
}

Status Transfer::fill(VkBuffer to, uint64_t offset, uint64_t bytes, uint32_t word) {
  std::lock_guard<std::mutex> lock(mutex_);
  VKF_CHECK(begin_copies(context_, own_, "[transfer]"));
  context_.api.CmdFillBuffer(own_.commands, to, offset, bytes, word);
  return submit_and_wait();
}

}  // namespace vkformer
