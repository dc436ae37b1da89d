// What is drawn into: color and depth with several samples a pixel, resolved to one image.
#pragma once

#include "host/memory.h"

namespace sample {

struct Target {
  VkExtent2D size{};
  VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT;
  Owned<VkRenderPass> pass;  // leaves `resolved` in the layout to copy from
  Image color, depth, resolved;
  Owned<VkFramebuffer> framebuffer;
};

inline constexpr VkFormat kColorFormat = VK_FORMAT_R8G8B8A8_UNORM;

// Off-screen, of this size; 4 samples a pixel, which every device has.
vkformer::Result<Target> make_target(const VulkanHost& host, VkExtent2D size);

}  // namespace sample
