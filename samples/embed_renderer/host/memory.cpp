#include "host/memory.h"

#include <string>

namespace sample {

namespace {

vkformer::Result<Owned<VkDeviceMemory>> allocate(const VulkanHost& host,
                                                 const VkMemoryRequirements& needs,
                                                 VkMemoryPropertyFlags flags) {
  VkPhysicalDeviceMemoryProperties types{};
  host.vk().GetPhysicalDeviceMemoryProperties(host.physical_device(), &types);
  for (uint32_t type = 0; type < types.memoryTypeCount; ++type) {
    const bool fits = (needs.memoryTypeBits >> type & 1U) != 0;
    if (!fits || (types.memoryTypes[type].propertyFlags & flags) != flags) continue;
    VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    info.allocationSize = needs.size;
    info.memoryTypeIndex = type;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    const VkResult made = host.vk().AllocateMemory(host.device(), &info, nullptr, &memory);
    if (made != VK_SUCCESS) return driver_error("vkAllocateMemory", made);
    return Owned<VkDeviceMemory>(host.device(), memory, host.vk().FreeMemory);
  }
  return vkformer::Error{vkformer::ErrorCode::kDriver,
                         "The device has no memory type with flags [" + std::to_string(flags) +
                             "] for " + std::to_string(needs.size) + " bytes."};
}

vkformer::Result<Owned<VkImageView>> make_view(const VulkanHost& host, VkImage image,
                                               const ImageKind& kind) {
  VkImageViewCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  info.image = image;
  info.viewType = VK_IMAGE_VIEW_TYPE_2D;
  info.format = kind.format;
  const bool depth = (kind.usage & VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT) != 0;
  info.subresourceRange.aspectMask = depth ? VK_IMAGE_ASPECT_DEPTH_BIT : VK_IMAGE_ASPECT_COLOR_BIT;
  info.subresourceRange.levelCount = 1;
  info.subresourceRange.layerCount = 1;
  VkImageView view = VK_NULL_HANDLE;
  const VkResult made = host.vk().CreateImageView(host.device(), &info, nullptr, &view);
  if (made != VK_SUCCESS) return driver_error("vkCreateImageView", made);
  return Owned<VkImageView>(host.device(), view, host.vk().DestroyImageView);
}

}  // namespace

vkformer::Result<Buffer> make_buffer(const VulkanHost& host, VkDeviceSize bytes,
                                     VkBufferUsageFlags usage) {
  Buffer made;
  made.bytes = bytes;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = usage;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkResult result = host.vk().CreateBuffer(host.device(), &info, nullptr, &buffer);
  if (result != VK_SUCCESS) return driver_error("vkCreateBuffer", result);
  made.buffer = Owned<VkBuffer>(host.device(), buffer, host.vk().DestroyBuffer);
  VkMemoryRequirements needs{};
  host.vk().GetBufferMemoryRequirements(host.device(), buffer, &needs);
  auto memory = allocate(
      host, needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  if (!memory) return memory.error();
  made.memory = std::move(*memory);
  result = host.vk().BindBufferMemory(host.device(), buffer, made.memory.get(), 0);
  if (result != VK_SUCCESS) return driver_error("vkBindBufferMemory", result);
  result = host.vk().MapMemory(host.device(), made.memory.get(), 0, VK_WHOLE_SIZE, 0, &made.mapped);
  if (result != VK_SUCCESS) return driver_error("vkMapMemory", result);
  return made;
}

vkformer::Result<Image> make_image(const VulkanHost& host, const ImageKind& kind) {
  Image made;
  VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = kind.format;
  info.extent = {kind.size.width, kind.size.height, 1};
  info.mipLevels = 1;
  info.arrayLayers = 1;
  info.samples = kind.samples;
  info.usage = kind.usage;
  VkImage image = VK_NULL_HANDLE;
  VkResult result = host.vk().CreateImage(host.device(), &info, nullptr, &image);
  if (result != VK_SUCCESS) return driver_error("vkCreateImage", result);
  made.image = Owned<VkImage>(host.device(), image, host.vk().DestroyImage);
  VkMemoryRequirements needs{};
  host.vk().GetImageMemoryRequirements(host.device(), image, &needs);
  auto memory = allocate(host, needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (!memory) return memory.error();
  made.memory = std::move(*memory);
  result = host.vk().BindImageMemory(host.device(), image, made.memory.get(), 0);
  if (result != VK_SUCCESS) return driver_error("vkBindImageMemory", result);
  auto view = make_view(host, image, kind);
  if (!view) return view.error();
  made.view = std::move(*view);
  return made;
}

}  // namespace sample
