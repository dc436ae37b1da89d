// The system's Vulkan loader, opened at run time so that vkformer links no Vulkan library.
#pragma once

#include <vulkan/vulkan_core.h>

#include "base/check.h"

namespace vkformer {

// Owns the dynamic library handle; it outlives every instance made through it.
class Loader {
 public:
  static Result<Loader> open();
  Loader(Loader&& other) noexcept;
  Loader& operator=(Loader&& other) noexcept;
  ~Loader();

  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const { return get_; }

 private:
  Loader(void* library, PFN_vkGetInstanceProcAddr get) : library_(library), get_(get) {}

  void* library_ = nullptr;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
};

}  // namespace vkformer
