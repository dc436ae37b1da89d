// Buffers and images with their memory.
#pragma once

#include <vkformer/result.h>
#include <vulkan/vulkan_core.h>

#include "host/owned.h"
#include "host/vulkan_host.h"

namespace sample {

// A buffer that the host writes and the device reads, or the other way round.
struct Buffer {
  Owned<VkDeviceMemory> memory;
  Owned<VkBuffer> buffer;
  void* mapped = nullptr;
  VkDeviceSize bytes = 0;
};
vkformer::Result<Buffer> make_buffer(const VulkanHost& host, VkDeviceSize bytes,
                                     VkBufferUsageFlags usage);

// A two-dimensional image of the device with a view of all of it.
struct Image {
  Owned<VkDeviceMemory> memory;
  Owned<VkImage> image;
  Owned<VkImageView> view;
};
struct ImageKind {
  VkExtent2D size{};
  VkFormat format = VK_FORMAT_UNDEFINED;
  VkImageUsageFlags usage = 0;
  VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT;
};
vkformer::Result<Image> make_image(const VulkanHost& host, const ImageKind& kind);

}  // namespace sample
