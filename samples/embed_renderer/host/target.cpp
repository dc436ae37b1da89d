#include "host/target.h"

#include <array>

namespace sample {

namespace {

// The one depth format that every device has; enough, as the camera's planes lie close to the
// crowd.
constexpr VkFormat kDepthFormat = VK_FORMAT_D16_UNORM;

VkAttachmentDescription attachment(VkFormat format, VkSampleCountFlagBits samples,
                                   VkImageLayout final_layout) {
  VkAttachmentDescription description{};
  description.format = format;
  description.samples = samples;
  description.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  description.storeOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  description.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  description.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  description.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  description.finalLayout = final_layout;
  return description;
}

// Before the pass: the last frame's drawing and its copy out of the image. After it: copies.
std::array<VkSubpassDependency, 2> dependencies() {
  constexpr VkPipelineStageFlags kDrawing = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT |
                                            VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT |
                                            VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT;
  constexpr VkAccessFlags kWrites =
      VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT;
  std::array<VkSubpassDependency, 2> list{};
  list[0] = {
      VK_SUBPASS_EXTERNAL,
      0,
      kDrawing | VK_PIPELINE_STAGE_TRANSFER_BIT,
      kDrawing,
      kWrites | VK_ACCESS_TRANSFER_READ_BIT,
      kWrites | VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_READ_BIT,
      0};
  list[1] = {0,
             VK_SUBPASS_EXTERNAL,
             VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
             VK_PIPELINE_STAGE_TRANSFER_BIT,
             VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT,
             VK_ACCESS_TRANSFER_READ_BIT,
             0};
  return list;
}

vkformer::Result<Owned<VkRenderPass>> make_pass(const VulkanHost& host,
                                                VkSampleCountFlagBits samples) {
  std::array<VkAttachmentDescription, 3> attachments = {
      attachment(kColorFormat, samples, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL),
      attachment(kDepthFormat, samples, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL),
      attachment(kColorFormat, VK_SAMPLE_COUNT_1_BIT, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL)};
  attachments[2].loadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  attachments[2].storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  const VkAttachmentReference color{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  const VkAttachmentReference depth{1, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
  const VkAttachmentReference resolve{2, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass{};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.colorAttachmentCount = 1;
  subpass.pResolveAttachments = &resolve;
  subpass.pColorAttachments = &color;

  subpass.pDepthStencilAttachment = &depth;
  const auto around = dependencies();
  VkRenderPassCreateInfo info{VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
  info.attachmentCount = static_cast<uint32_t>(attachments.size());
  info.pAttachments = attachments.data();
  info.subpassCount = 1;
  info.pSubpasses = &subpass;
  info.dependencyCount = static_cast<uint32_t>(around.size());
  info.pDependencies = around.data();
  VkRenderPass pass = VK_NULL_HANDLE;
  const VkResult made = host.vk().CreateRenderPass(host.device(), &info, nullptr, &pass);
  if (made != VK_SUCCESS) return driver_error("vkCreateRenderPass", made);
  return Owned<VkRenderPass>(host.device(), pass, host.vk().DestroyRenderPass);
}

}  // namespace

vkformer::Result<Target> make_target(const VulkanHost& host, VkExtent2D size) {
  Target target;
  target.size = size;
  target.samples = VK_SAMPLE_COUNT_4_BIT;
  auto pass = make_pass(host, target.samples);
  if (!pass) return pass.error();
  target.pass = std::move(*pass);
  auto color =
      make_image(host, {size, kColorFormat, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, target.samples});
  if (!color) return color.error();
  auto depth = make_image(
      host, {size, kDepthFormat, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT, target.samples});
  if (!depth) return depth.error();
  auto resolved = make_image(
      host,
      {size, kColorFormat, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT});
  if (!resolved) return resolved.error();
  target.color = std::move(*color);
  target.depth = std::move(*depth);
  target.resolved = std::move(*resolved);
  const std::array<VkImageView, 3> views = {target.color.view.get(), target.depth.view.get(),
                                            target.resolved.view.get()};
  VkFramebufferCreateInfo info{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
  info.renderPass = target.pass.get();
  info.attachmentCount = static_cast<uint32_t>(views.size());
  info.pAttachments = views.data();
  info.width = size.width;
  info.height = size.height;
  info.layers = 1;
  VkFramebuffer framebuffer = VK_NULL_HANDLE;
  const VkResult made = host.vk().CreateFramebuffer(host.device(), &info, nullptr, &framebuffer);
  if (made != VK_SUCCESS) return driver_error("vkCreateFramebuffer", made);
  target.framebuffer =
      Owned<VkFramebuffer>(host.device(), framebuffer, host.vk().DestroyFramebuffer);
  return target;
}

}  // namespace sample
