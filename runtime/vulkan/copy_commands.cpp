#include "vulkan/copy_commands.h"

#include <utility>

#include "vulkan/command_buffers.h"
#include "vulkan/device_impl.h"

namespace vkformer {

void record_copy(const Context& context, VkCommandBuffer commands, const BufferCopy& copy) {
  const VkBufferCopy region{copy.from.offset, copy.offset, copy.from.bytes};
  context.api.CmdCopyBuffer(commands, copy.from.buffer->impl()->placed.handle,
                            copy.to->impl()->placed.handle, 1, &region);
}

void mark_used(std::span<const BufferCopy> copies, uint64_t value) {
  for (const BufferCopy& copy : copies) {
    copy.from.buffer->impl()->last_use.raise_to(value);
    copy.to->impl()->last_use.raise_to(value);
  }
}

struct CopyCommands::Recorded {
  TransientCommands own;
  uint64_t value = 0;
  bool taken = false;  // between record and submitted
};

CopyCommands::CopyCommands(Context& context, Timeline& timeline)
    : context_(context), timeline_(timeline) {}

CopyCommands::~CopyCommands() {
  for (const auto& one : all_) {
    destroy_command_pool(context_, one->own.pool);
  }
}

SubmitChunk CopyCommands::chunk(const Recorded& recorded) {
  return {recorded.own.commands, 0};
}

void CopyCommands::submitted(Recorded& recorded, uint64_t value) {
  const std::lock_guard lock(mutex_);
  recorded.value = value;
  recorded.taken = false;
}

// One that has run, or a new one: nothing here waits.
Result<CopyCommands::Recorded*> CopyCommands::take() {
  const std::lock_guard lock(mutex_);
  for (const auto& one : all_) {
    if (one->taken || !timeline_.reached(one->value)) continue;
    one->taken = true;
    return one.get();
  }
  auto made = std::make_unique<Recorded>();
  VKF_ASSIGN(made->own, make_transient_commands(context_, "[copies]"));
  made->taken = true;
  all_.push_back(std::move(made));
  return all_.back().get();
}

Result<CopyCommands::Recorded*> CopyCommands::record(std::span<const BufferCopy> copies,
                                                     When when) {
  VKF_ASSIGN(Recorded * one, take());
  const auto give_back = [&](const Status& status) {
    submitted(*one, 0);
    return status.error();
  };
  Status status = begin_copies(context_, one->own, "[copies]");
  if (!status) return give_back(status);
  for (const BufferCopy& copy : copies) record_copy(context_, one->own.commands, copy);
  if (when == When::kAfterKernels) {
    context_.memory_barrier(one->own.commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                            VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                            VK_ACCESS_HOST_READ_BIT);
  }
  status = context_.check(context_.api.EndCommandBuffer(one->own.commands),
                          "[copies] vkEndCommandBuffer");
  if (!status) return give_back(status);
  return one;
}

}  // namespace vkformer
