// An application's image with a picture in it, for tests of what reads one.
#pragma once

#include <cstring>

#include "vulkan/host_queue.h"

namespace vkformer {

// One level of one layer of an image of 8-bit pixels, written by a copy of the application's.
class HostImage {
 public:
  struct Place {
    VkFormat format = VK_FORMAT_R8G8B8A8_UNORM;
    VkImageLayout layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL;  // afterwards
    uint32_t mip_level = 0;
    uint32_t array_layer = 0;
  };

  // `pixels` has width * height words, as they lie in the image.
  HostImage(const HostDevice& host, uint32_t width, uint32_t height,
            const std::vector<uint32_t>& pixels, const Place& place)
      : host_(host), width_(width), height_(height), place_(place) {
    load(create_, "vkCreateImage");
    load(destroy_, "vkDestroyImage");
    load(requirements_, "vkGetImageMemoryRequirements");
    load(bind_, "vkBindImageMemory");
    load(upload_, "vkCmdCopyBufferToImage");
    load(allocate_, "vkAllocateMemory");
    load(free_, "vkFreeMemory");
    VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = place.format;
    info.extent = {width << place.mip_level, height << place.mip_level, 1};
    info.mipLevels = place.mip_level + 1;
    info.arrayLayers = place.array_layer + 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.tiling = VK_IMAGE_TILING_OPTIMAL;
    info.usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT |
                 VK_IMAGE_USAGE_SAMPLED_BIT;
    REQUIRE(create_(host.device, &info, nullptr, &image_) == VK_SUCCESS);
    VkMemoryRequirements needs;
    requirements_(host.device, image_, &needs);
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    while ((needs.memoryTypeBits >> allocate.memoryTypeIndex & 1u) == 0) {
      ++allocate.memoryTypeIndex;
    }
    REQUIRE(allocate_(host.device, &allocate, nullptr, &memory_) == VK_SUCCESS);
    REQUIRE(bind_(host.device, image_, memory_, 0) == VK_SUCCESS);
    write(pixels);
  }
  ~HostImage() {
    destroy_(host_.device, image_, nullptr);
    free_(host_.device, memory_, nullptr);
  }
  HostImage(const HostImage&) = delete;
  HostImage& operator=(const HostImage&) = delete;

  ImageInput input() const {
    return {image_,  place_.format,    place_.layout,     width_,
            height_, place_.mip_level, place_.array_layer};
  }

  // What is there, read in the layout that it was left in.
  std::vector<uint32_t> read() {
    HostQueue queue(host_);
    float* words = nullptr;
    std::vector<uint32_t> pixels(size_t{width_} * height_);
    const VkBuffer buffer = queue.make_buffer(4 * pixels.size(), words);
    move(queue, place_.layout, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    const VkBufferImageCopy region = whole();
    queue.api().CmdCopyImageToBuffer(queue.commands(), image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                                     buffer, 1, &region);
    move(queue, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, place_.layout);
    queue.barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                  VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    queue.submit_and_wait();
    std::memcpy(pixels.data(), words, 4 * pixels.size());
    return pixels;
  }

 private:
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(host_.api.GetDeviceProcAddr(host_.device, name));
    REQUIRE((function != nullptr));
  }

  VkBufferImageCopy whole() const {
    VkBufferImageCopy region{};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, place_.mip_level, place_.array_layer, 1};
    region.imageExtent = {width_, height_, 1};
    return region;
  }

  void move(HostQueue& queue, VkImageLayout from, VkImageLayout to) const {
    VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.oldLayout = from;
    barrier.newLayout = to;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image_;
    barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, place_.mip_level, 1, place_.array_layer,
                                1};
    queue.api().CmdPipelineBarrier(queue.commands(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                   VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 0, nullptr, 1,
                                   &barrier);
  }

  void write(const std::vector<uint32_t>& pixels) {
    HostQueue queue(host_);
    float* words = nullptr;
    const VkBuffer buffer = queue.make_buffer(4 * pixels.size(), words);
    std::memcpy(words, pixels.data(), 4 * pixels.size());
    queue.barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_WRITE_BIT,
                  VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    move(queue, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
    const VkBufferImageCopy region = whole();
    upload_(queue.commands(), buffer, image_, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
    move(queue, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, place_.layout);
    queue.submit_and_wait();
  }

  const HostDevice& host_;
  uint32_t width_, height_;
  Place place_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  PFN_vkCreateImage create_ = nullptr;
  PFN_vkDestroyImage destroy_ = nullptr;
  PFN_vkGetImageMemoryRequirements requirements_ = nullptr;
  PFN_vkBindImageMemory bind_ = nullptr;
  PFN_vkCmdCopyBufferToImage upload_ = nullptr;
  PFN_vkAllocateMemory allocate_ = nullptr;
  PFN_vkFreeMemory free_ = nullptr;
};

}  // namespace vkformer
