#include "system_vulkan.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>

#include <initializer_list>
#endif

namespace vkf_godot {

vkf_any_function system_vulkan() {
#ifdef _WIN32
  const HMODULE library = LoadLibraryA("vulkan-1.dll");
  if (library == nullptr) return nullptr;
  return reinterpret_cast<vkf_any_function>(GetProcAddress(library, "vkGetInstanceProcAddr"));
#else
  for (const char* name :
       {"libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib", "libMoltenVK.dylib"}) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    void* const found = dlsym(library, "vkGetInstanceProcAddr");
    if (found != nullptr) return reinterpret_cast<vkf_any_function>(found);
  }
  return nullptr;
#endif
}

}  // namespace vkf_godot
