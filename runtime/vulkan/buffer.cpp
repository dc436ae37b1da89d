#include "vulkan/buffer.h"

#include "vulkan/device_impl.h"
#include "vulkan/foreign_buffer.h"

namespace vkformer {

Buffer::Impl::~Impl() {
  if (!device) return;
  VulkanDevice::Impl& owner = device->impl();
  owner.timeline->settle(last_use.load());
  owner.memory->release(placed);
}

uint64_t Buffer::bytes() const {
  return impl_ ? impl_->bytes : 0;
}

std::byte* Buffer::mapped() const {
  return impl_ ? impl_->placed.mapped : nullptr;
}

uint64_t Buffer::last_use() const {
  return impl_ ? impl_->last_use.load() : 0;
}

bool Buffer::host_cached() const {
  return impl_ && impl_->placed.mapped && impl_->placed.host_cached;
}

VkBuffer vulkan_handle(const Buffer& buffer) {
  return buffer.impl()->placed.handle;
}

Buffer view_foreign_buffer(VkBuffer handle, uint64_t bytes, const std::string& name) {
  // Without a device it is not ours to free.
  auto view = std::make_shared<Buffer::Impl>();
  view->placed.handle = handle;
  view->bytes = bytes;
  view->name = name;
  return Buffer(std::move(view));
}

}  // namespace vkformer
