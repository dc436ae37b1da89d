// Owns one Vulkan object of a device; move-only.
#pragma once

#include <vulkan/vulkan_core.h>

#include <utility>

namespace sample {

template <class Handle>
class Owned {
 public:
  using Destroy = void(VKAPI_PTR*)(VkDevice, Handle, const VkAllocationCallbacks*);

  Owned() = default;
  Owned(VkDevice device, Handle handle, Destroy destroy)
      : device_(device), handle_(handle), destroy_(destroy) {}
  Owned(Owned&& other) noexcept
      : device_(other.device_),
        handle_(std::exchange(other.handle_, Handle{})),
        destroy_(other.destroy_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~Owned() {
    if (handle_ != Handle{}) destroy_(device_, handle_, nullptr);
  }

  const Handle& get() const { return handle_; }

 private:
  VkDevice device_ = VK_NULL_HANDLE;
  Handle handle_{};
  Destroy destroy_ = nullptr;
};

}  // namespace sample
