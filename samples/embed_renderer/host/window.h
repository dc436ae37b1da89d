// A window that shows the pictures, where the sample was built with GLFW.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/frame.h"

namespace sample {

class Window {
 public:
  // Opens it; before the host, whose instance needs the extensions. An error says why there is
  // none.
  static vkformer::Result<std::unique_ptr<Window>> open(int width, int height);
  virtual ~Window() = default;

  virtual std::vector<std::string> instance_extensions() const = 0;
  virtual std::vector<std::string> device_extensions() const = 0;
  // Makes what needs the host, which must outlive the window's images: see release().
  virtual vkformer::Status attach(const VulkanHost& host) = 0;
  // Frees them; the queue must be idle.
  virtual void release() = 0;

  // Handles events; true once the window was closed.
  virtual bool closed() = 0;
  // Each frame: an image to show; a copy of the picture into it; and showing it.
  virtual vkformer::Result<FrameSemaphores> acquire() = 0;
  virtual void copy(VkCommandBuffer commands, VkImage picture) = 0;
  virtual vkformer::Status present() = 0;
};

}  // namespace sample
