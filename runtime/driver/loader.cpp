#include "driver/loader.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "driver/missing_driver.h"

namespace vkformer {
namespace {

#ifdef _WIN32
constexpr const char* kNames[] = {"vulkan-1.dll"};
void* open_library(const char* name) {
  return reinterpret_cast<void*>(LoadLibraryA(name));
}
void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}
void close_library(void* library) {
  FreeLibrary(reinterpret_cast<HMODULE>(library));
}
#else
#ifdef __APPLE__
constexpr const char* kNames[] = {"libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"};
#else
constexpr const char* kNames[] = {"libvulkan.so.1", "libvulkan.so"};
#endif
void* open_library(const char* name) {
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
void* find_symbol(void* library, const char* name) {
  return dlsym(library, name);
}
void close_library(void* library) {
  dlclose(library);
}
#endif

}  // namespace

Result<Loader> Loader::open() {
  std::string tried;
  for (const char* name : kNames) {
    tried += (tried.empty() ? "" : ", ") + std::string(name);
    void* library = open_library(name);
    if (!library) continue;
    auto get =
        reinterpret_cast<PFN_vkGetInstanceProcAddr>(find_symbol(library, "vkGetInstanceProcAddr"));
    if (get) return Loader(library, get);
    close_library(library);
  }
  return missing_loader(tried);
}

Loader::Loader(Loader&& other) noexcept
    : library_(std::exchange(other.library_, nullptr)), get_(std::exchange(other.get_, nullptr)) {}

Loader& Loader::operator=(Loader&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(get_, other.get_);
  return *this;
}

Loader::~Loader() {
  if (library_) close_library(library_);
}

}  // namespace vkformer
