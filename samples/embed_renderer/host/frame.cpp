#include "host/frame.h"

#include <array>

namespace sample {

vkformer::Result<Frame> Frame::create(const VulkanHost& host) {
  Frame frame(host);
  if (auto status = frame.make(); !status) return status.error();
  return frame;
}

vkformer::Status Frame::make() {
  const Functions& vk = host_->vk();
  const VkDevice device = host_->device();
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.queueFamilyIndex = host_->queue_family();
  VkCommandPool pool = VK_NULL_HANDLE;
  VkResult made = vk.CreateCommandPool(device, &pool_info, nullptr, &pool);
  if (made != VK_SUCCESS) return driver_error("vkCreateCommandPool", made);
  pool_ = Owned<VkCommandPool>(device, pool, vk.DestroyCommandPool);
  VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  commands.commandPool = pool;
  commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands.commandBufferCount = 1;
  made = vk.AllocateCommandBuffers(device, &commands, &commands_);
  if (made != VK_SUCCESS) return driver_error("vkAllocateCommandBuffers", made);
  VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkFence fence = VK_NULL_HANDLE;
  made = vk.CreateFence(device, &fence_info, nullptr, &fence);
  if (made != VK_SUCCESS) return driver_error("vkCreateFence", made);
  fence_ = Owned<VkFence>(device, fence, vk.DestroyFence);
  if (host_->timestamp_period() <= 0.0) return {};
  VkQueryPoolCreateInfo query_info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  query_info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  query_info.queryCount = kMoments;
  VkQueryPool queries = VK_NULL_HANDLE;
  made = vk.CreateQueryPool(device, &query_info, nullptr, &queries);
  if (made != VK_SUCCESS) return driver_error("vkCreateQueryPool", made);
  queries_ = Owned<VkQueryPool>(device, queries, vk.DestroyQueryPool);
  return {};
}

vkformer::Result<VkCommandBuffer> Frame::begin() {
  begun_ = std::chrono::steady_clock::now();
  VkResult result = host_->vk().ResetCommandPool(host_->device(), pool_.get(), 0);
  if (result != VK_SUCCESS) return driver_error("vkResetCommandPool", result);
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  result = host_->vk().BeginCommandBuffer(commands_, &info);
  if (result != VK_SUCCESS) return driver_error("vkBeginCommandBuffer", result);
  if (queries_.get() != VK_NULL_HANDLE) {
    host_->vk().CmdResetQueryPool(commands_, queries_.get(), 0, kMoments);
  }
  mark(Moment::kBegin);
  return commands_;
}

void Frame::mark(Moment moment) {
  if (queries_.get() == VK_NULL_HANDLE) return;
  host_->vk().CmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_.get(),
                                static_cast<uint32_t>(moment));
}

vkformer::Status Frame::run(const FrameSemaphores& semaphores) {
  const Functions& vk = host_->vk();
  VkResult result = vk.EndCommandBuffer(commands_);
  if (result != VK_SUCCESS) return driver_error("vkEndCommandBuffer", result);
  // A window's image is first touched by the copy to it.
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands_;
  if (semaphores.wait != VK_NULL_HANDLE) {
    info.waitSemaphoreCount = 1;
    info.pWaitSemaphores = &semaphores.wait;
    info.pWaitDstStageMask = &stage;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &semaphores.signal;
  }
  result = vk.QueueSubmit(host_->queue(), 1, &info, fence_.get());
  if (result != VK_SUCCESS) return driver_error("vkQueueSubmit", result);
  result = vk.WaitForFences(host_->device(), 1, &fence_.get(), VK_TRUE, UINT64_MAX);
  if (result != VK_SUCCESS) return driver_error("vkWaitForFences", result);
  result = vk.ResetFences(host_->device(), 1, &fence_.get());
  if (result != VK_SUCCESS) return driver_error("vkResetFences", result);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun_;
  total_ms_ = took.count();
  slice_ms_ = 0.0;
  if (queries_.get() == VK_NULL_HANDLE) return {};
  std::array<uint64_t, kMoments> ticks{};
  result = vk.GetQueryPoolResults(host_->device(), queries_.get(), 0, kMoments, sizeof ticks,
                                  ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
  if (result != VK_SUCCESS) return driver_error("vkGetQueryPoolResults", result);
  slice_ms_ = static_cast<double>(ticks[1] - ticks[0]) * host_->timestamp_period() * 1e-6;
  return {};
}

}  // namespace sample
