// What an application has around its device, for tests of what is recorded into its commands.
#pragma once

#include <utility>
#include <vector>

#include "vulkan/host_device.h"

namespace vkformer {

// A command buffer, buffers, a fence.
class HostQueue {
 public:
  explicit HostQueue(const HostDevice& host) : host_(host) {
    auto table = DeviceApi::load(host.api.GetDeviceProcAddr, host.device, {});
    REQUIRE_MESSAGE(table.ok(), table.error().message);
    api_ = *table;
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = host.family;
    REQUIRE(api_.CreateCommandPool(host.device, &pool, nullptr, &pool_) == VK_SUCCESS);
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = pool_;
    info.commandBufferCount = 1;
    REQUIRE(api_.AllocateCommandBuffers(host.device, &info, &commands_) == VK_SUCCESS);
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    REQUIRE(api_.BeginCommandBuffer(commands_, &begin) == VK_SUCCESS);
  }
  ~HostQueue() {
    for (const auto& [buffer, memory] : buffers_) {
      api_.DestroyBuffer(host_.device, buffer, nullptr);
      api_.FreeMemory(host_.device, memory, nullptr);
    }
    for (VkSemaphore semaphore : semaphores_) {
      api_.DestroySemaphore(host_.device, semaphore, nullptr);
    }
    api_.DestroyCommandPool(host_.device, pool_, nullptr);
  }
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  VkCommandBuffer commands() const { return commands_; }
  const HostDevice& host() const { return host_; }
  const DeviceApi& api() const { return api_; }

  // A mapped, coherent storage buffer; `words` is its host address.
  VkBuffer make_buffer(VkDeviceSize bytes, float*& words) {
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
    VkBuffer buffer = VK_NULL_HANDLE;
    REQUIRE(api_.CreateBuffer(host_.device, &info, nullptr, &buffer) == VK_SUCCESS);
    VkMemoryRequirements needs;
    api_.GetBufferMemoryRequirements(host_.device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties memory;
    host_.api.GetPhysicalDeviceMemoryProperties(host_.physical, &memory);
    constexpr VkMemoryPropertyFlags kWanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    while ((needs.memoryTypeBits >> allocate.memoryTypeIndex & 1u) == 0 ||
           (memory.memoryTypes[allocate.memoryTypeIndex].propertyFlags & kWanted) != kWanted) {
      REQUIRE(++allocate.memoryTypeIndex < memory.memoryTypeCount);
    }
    VkDeviceMemory block = VK_NULL_HANDLE;
    REQUIRE(api_.AllocateMemory(host_.device, &allocate, nullptr, &block) == VK_SUCCESS);
    REQUIRE(api_.BindBufferMemory(host_.device, buffer, block, 0) == VK_SUCCESS);
    void* mapped = nullptr;
    REQUIRE(api_.MapMemory(host_.device, block, 0, VK_WHOLE_SIZE, 0, &mapped) == VK_SUCCESS);
    words = static_cast<float*>(mapped);
    buffers_.emplace_back(buffer, block);
    return buffer;
  }

  void barrier(VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to,
               VkAccessFlags reads) {
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = wrote;
    memory.dstAccessMask = reads;
    api_.CmdPipelineBarrier(commands_, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }

  void copy(VkBuffer from, VkDeviceSize offset, VkBuffer to, VkDeviceSize bytes) {
    const VkBufferCopy region{offset, 0, bytes};
    api_.CmdCopyBuffer(commands_, from, to, 1, &region);
  }

  enum class SemaphoreKind : uint8_t { kBinary, kTimeline };
  VkSemaphore make_semaphore(SemaphoreKind kind) {
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    if (kind == SemaphoreKind::kTimeline) info.pNext = &type;
    VkSemaphore made = VK_NULL_HANDLE;
    REQUIRE(api_.CreateSemaphore(host_.device, &info, nullptr, &made) == VK_SUCCESS);
    semaphores_.push_back(made);
    return made;
  }

  // A submit without commands.
  void submit_signalling(VkSemaphore semaphore) {
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.signalSemaphoreCount = 1;
    submit.pSignalSemaphores = &semaphore;
    REQUIRE(api_.QueueSubmit(host_.queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS);
  }

  void wait_for(VkSemaphore timeline, uint64_t value) {
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &timeline;
    info.pValues = &value;
    const auto wait = reinterpret_cast<PFN_vkWaitSemaphores>(
        host_.api.GetDeviceProcAddr(host_.device, "vkWaitSemaphores"));
    REQUIRE((wait != nullptr));
    REQUIRE(wait(host_.device, &info, 10'000'000'000) == VK_SUCCESS);
  }

  // A secondary command buffer that is being recorded, as commands() is; goes with the pool.
  VkCommandBuffer begin_secondary() {
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
    info.commandBufferCount = 1;
    VkCommandBuffer made = VK_NULL_HANDLE;
    REQUIRE(api_.AllocateCommandBuffers(host_.device, &info, &made) == VK_SUCCESS);
    const VkCommandBufferInheritanceInfo inherited{
        VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    begin.pInheritanceInfo = &inherited;
    REQUIRE(api_.BeginCommandBuffer(made, &begin) == VK_SUCCESS);
    return made;
  }
  // Ends it and has commands() execute it.
  void execute(VkCommandBuffer secondary) {
    REQUIRE(api_.EndCommandBuffer(secondary) == VK_SUCCESS);
    reinterpret_cast<PFN_vkCmdExecuteCommands>(host_.api.GetDeviceProcAddr(
        host_.device, "vkCmdExecuteCommands"))(commands_, 1, &secondary);
  }

  void submit_and_wait() {
    submit();
    wait();
  }

  // Lets the queue run dry.
  void wait() { REQUIRE(api_.QueueWaitIdle(host_.queue) == VK_SUCCESS); }

  void submit() {
    REQUIRE(api_.EndCommandBuffer(commands_) == VK_SUCCESS);
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands_;
    REQUIRE(api_.QueueSubmit(host_.queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS);
  }

 private:
  const HostDevice& host_;
  DeviceApi api_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<std::pair<VkBuffer, VkDeviceMemory>> buffers_;
  std::vector<VkSemaphore> semaphores_;
};

}  // namespace vkformer
