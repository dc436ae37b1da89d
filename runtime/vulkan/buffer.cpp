#include "vulkan/buffer.h"

#include "vulkan/device_impl.h"

namespace vkformer {

Buffer::Impl::~Impl() {
  if (!device) return;
  VulkanDevice::Impl& owner = device->impl();
  owner.timeline->wait_idle();
  owner.memory->release(placed);
}

uint64_t Buffer::bytes() const {
  return impl_ ? impl_->bytes : 0;
}

std::byte* Buffer::mapped() const {
  return impl_ ? impl_->placed.mapped : nullptr;
}

}  // namespace vkformer
