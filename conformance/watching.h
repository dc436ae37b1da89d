// A watch on every dispatch of a device that ends however a function is left.
#pragma once

#include "base/handle_access.h"
#include "recording/dispatch_watch.h"
#include "vkformer/device.h"

namespace vkformer::conformance {

class Watching {
 public:
  explicit Watching(const Device& device) : device_(HandleAccess::impl(device)) {}
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  ~Watching() { (void)watch_dispatches(device_, nullptr); }

 private:
  std::shared_ptr<VulkanDevice> device_;
};

}  // namespace vkformer::conformance
