// Windows of GLFW, and their images.
#include <vulkan/vulkan_core.h>
// GLFW offers its Vulkan functions when Vulkan's types are known.
#include <GLFW/glfw3.h>

#include <algorithm>
#include <utility>

#include "host/window.h"

namespace sample {

namespace {

// GLFW's own state is global; it lives as long as the one window.
class GlfwWindow final : public Window {
 public:
  GlfwWindow(GLFWwindow* window, VkExtent2D picture) : window_(window), picture_(picture) {}
  ~GlfwWindow() override {
    glfwDestroyWindow(window_);
    glfwTerminate();
  }

  std::vector<std::string> instance_extensions() const override;
  std::vector<std::string> device_extensions() const override {
    return {VK_KHR_SWAPCHAIN_EXTENSION_NAME};
  }
  vkformer::Status attach(const VulkanHost& host) override;
  void release() override;
  bool closed() override;
  vkformer::Result<FrameSemaphores> acquire() override;
  void copy(VkCommandBuffer commands, VkImage picture) override;
  vkformer::Status present() override;

 private:
  vkformer::Status make_swapchain();
  vkformer::Status make_semaphores();
  void move_image(VkCommandBuffer commands, VkImageLayout from, VkImageLayout to) const;

  GLFWwindow* window_;
  VkExtent2D picture_;  // what is shown, in pixels
  const VulkanHost* host_ = nullptr;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  Owned<VkSwapchainKHR> swapchain_;
  std::vector<VkImage> images_;  // of the swapchain
  // Frames run one at a time, but an image may still wait to be shown when the next is rendered. So
  // each has its own semaphore for that.
  Owned<VkSemaphore> acquired_;
  std::vector<Owned<VkSemaphore>> drawn_;
  VkExtent2D extent_{};  // of the window's images
  uint32_t image_ = 0;
};

vkformer::Error window_error(const std::string& what) {
  const char* reason = nullptr;
  glfwGetError(&reason);
  return {vkformer::ErrorCode::kUnsupported,
          what + (reason != nullptr ? std::string(": ") + reason : std::string()) +
              ". Without --window images are rendered off-screen."};
}

std::vector<std::string> GlfwWindow::instance_extensions() const {
  uint32_t count = 0;
  const char** names = glfwGetRequiredInstanceExtensions(&count);
  return names != nullptr ? std::vector<std::string>(names, names + count)
                          : std::vector<std::string>();
}

vkformer::Status GlfwWindow::attach(const VulkanHost& host) {
  host_ = &host;
  const VkResult made = glfwCreateWindowSurface(host.instance(), window_, nullptr, &surface_);
  if (made != VK_SUCCESS) return window_error("The window has no Vulkan surface");
  VkBool32 shows = VK_FALSE;
  host.vk().GetPhysicalDeviceSurfaceSupportKHR(host.physical_device(), host.queue_family(),
                                               surface_, &shows);
  if (shows == VK_FALSE) return window_error("The device's queue cannot show pictures in a window");
  if (auto status = make_swapchain(); !status) return status.error();
  return make_semaphores();
}

vkformer::Status GlfwWindow::make_swapchain() {
  const Functions& vk = host_->vk();
  VkSurfaceCapabilitiesKHR can{};
  vk.GetPhysicalDeviceSurfaceCapabilitiesKHR(host_->physical_device(), surface_, &can);
  uint32_t count = 0;
  vk.GetPhysicalDeviceSurfaceFormatsKHR(host_->physical_device(), surface_, &count, nullptr);
  std::vector<VkSurfaceFormatKHR> formats(count);
  vk.GetPhysicalDeviceSurfaceFormatsKHR(host_->physical_device(), surface_, &count, formats.data());
  if (formats.empty()) return window_error("The window takes no format");
  if ((can.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_DST_BIT) == 0) {
    return window_error("The window's images cannot be copied to");
  }
  // Pictures have their gamma already: a format that would apply it again is second choice.
  const auto plain = std::find_if(formats.begin(), formats.end(), [](const VkSurfaceFormatKHR& f) {
    return f.format == VK_FORMAT_B8G8R8A8_UNORM || f.format == VK_FORMAT_R8G8B8A8_UNORM;
  });
  const VkSurfaceFormatKHR format = plain != formats.end() ? *plain : formats.front();
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  const bool fixed = can.currentExtent.width != UINT32_MAX;
  extent_ = fixed ? can.currentExtent
                  : VkExtent2D{static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
  VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
  info.surface = surface_;
  info.minImageCount = can.maxImageCount == 0 ? can.minImageCount + 1
                                              : std::min(can.minImageCount + 1, can.maxImageCount);
  info.imageFormat = format.format;
  info.imageColorSpace = format.colorSpace;
  info.imageExtent = extent_;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  info.preTransform = can.currentTransform;
  info.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
  info.presentMode = VK_PRESENT_MODE_FIFO_KHR;  // every device has it
  info.clipped = VK_TRUE;
  VkSwapchainKHR swapchain = VK_NULL_HANDLE;
  const VkResult made = vk.CreateSwapchainKHR(host_->device(), &info, nullptr, &swapchain);
  if (made != VK_SUCCESS) return driver_error("vkCreateSwapchainKHR", made);
  swapchain_ = Owned<VkSwapchainKHR>(host_->device(), swapchain, vk.DestroySwapchainKHR);
  vk.GetSwapchainImagesKHR(host_->device(), swapchain, &count, nullptr);
  images_.resize(count);
  vk.GetSwapchainImagesKHR(host_->device(), swapchain, &count, images_.data());
  return {};
}

vkformer::Status GlfwWindow::make_semaphores() {
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  for (size_t i = 0; i <= images_.size(); ++i) {
    VkSemaphore semaphore = VK_NULL_HANDLE;
    const VkResult made = host_->vk().CreateSemaphore(host_->device(), &info, nullptr, &semaphore);
    if (made != VK_SUCCESS) return driver_error("vkCreateSemaphore", made);
    Owned<VkSemaphore> owned(host_->device(), semaphore, host_->vk().DestroySemaphore);
    if (i == 0) {
      acquired_ = std::move(owned);
    } else {
      drawn_.push_back(std::move(owned));
    }
  }
  return {};
}

void GlfwWindow::release() {
  if (host_ == nullptr) return;
  drawn_.clear();
  acquired_ = {};
  swapchain_ = {};
  if (surface_ != VK_NULL_HANDLE) {
    host_->vk().DestroySurfaceKHR(host_->instance(), surface_, nullptr);
  }
  surface_ = VK_NULL_HANDLE;
}

bool GlfwWindow::closed() {
  glfwPollEvents();
  return glfwWindowShouldClose(window_) != 0;
}

vkformer::Result<FrameSemaphores> GlfwWindow::acquire() {
  const VkResult result = host_->vk().AcquireNextImageKHR(
      host_->device(), swapchain_.get(), UINT64_MAX, acquired_.get(), VK_NULL_HANDLE, &image_);
  if (result != VK_SUCCESS && result != VK_SUBOPTIMAL_KHR) {
    return driver_error("vkAcquireNextImageKHR", result);
  }
  return FrameSemaphores{acquired_.get(), drawn_[image_].get()};
}

void GlfwWindow::move_image(VkCommandBuffer commands, VkImageLayout from, VkImageLayout to) const {
  const bool before = from == VK_IMAGE_LAYOUT_UNDEFINED;
  VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  barrier.srcAccessMask = before ? 0 : VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = before ? VK_ACCESS_TRANSFER_WRITE_BIT : 0;
  barrier.oldLayout = from;
  barrier.newLayout = to;
  barrier.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = images_[image_];
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  host_->vk().CmdPipelineBarrier(
      commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
      before ? VK_PIPELINE_STAGE_TRANSFER_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, nullptr,
      0, nullptr, 1, &barrier);
}

void GlfwWindow::copy(VkCommandBuffer commands, VkImage picture) {
  move_image(commands, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
  const auto corner = [](const VkExtent2D& size) {
    return VkOffset3D{static_cast<int32_t>(size.width), static_cast<int32_t>(size.height), 1};
  };
  // A blit, for the two may differ in the order of their channels.
  VkImageBlit region{};
  region.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.srcOffsets[1] = corner(picture_);
  region.dstSubresource = region.srcSubresource;
  region.dstOffsets[1] = corner(extent_);
  host_->vk().CmdBlitImage(commands, picture, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, images_[image_],
                           VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region, VK_FILTER_NEAREST);
  move_image(commands, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
}

vkformer::Status GlfwWindow::present() {
  VkPresentInfoKHR info{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &drawn_[image_].get();
  info.swapchainCount = 1;
  info.pSwapchains = &swapchain_.get();
  info.pImageIndices = &image_;
  const VkResult result = host_->vk().QueuePresentKHR(host_->queue(), &info);
  if (result == VK_SUCCESS || result == VK_SUBOPTIMAL_KHR) return {};
  return driver_error("vkQueuePresentKHR", result);
}

}  // namespace

vkformer::Result<std::unique_ptr<Window>> Window::open(int width, int height) {
  if (glfwInit() == GLFW_FALSE) return window_error("There is no display for --window");
  if (glfwVulkanSupported() == GLFW_FALSE) {
    auto error = window_error("Vulkan cannot draw into windows here");
    glfwTerminate();
    return error;
  }
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  glfwWindowHint(GLFW_RESIZABLE, GLFW_FALSE);
  // One pixel of the picture is one of the window.
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_FALSE);
  GLFWwindow* window = glfwCreateWindow(width, height, "vkformer: talking heads", nullptr, nullptr);
  if (window == nullptr) {
    auto error = window_error("No window could be opened");
    glfwTerminate();
    return error;
  }
  return std::unique_ptr<Window>(std::make_unique<GlfwWindow>(
      window, VkExtent2D{static_cast<uint32_t>(width), static_cast<uint32_t>(height)}));
}

}  // namespace sample
