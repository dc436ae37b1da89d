#include "driver/missing_driver.h"

#include <cstdlib>
#include <string>

namespace vkformer {
namespace {

#if defined(_WIN32) || defined(__APPLE__) || defined(__ANDROID__)
constexpr const char* kLoader = " Install the Vulkan runtime of the GPU's vendor.";
constexpr const char* kDriver = " Install the GPU vendor's driver.";
#else
constexpr const char* kLoader =
    " Install libvulkan1 (Debian, Ubuntu, openSUSE), vulkan-loader (Fedora, Alpine) or "
    "vulkan-icd-loader (Arch), and a driver.";
constexpr const char* kDriver =
    " Install a driver: mesa-vulkan-drivers on Debian, Ubuntu and Fedora (AMD, Intel and a "
    "software "
    "driver); vulkan-radeon, vulkan-intel or vulkan-swrast on Arch; mesa-vulkan-ati, "
    "mesa-vulkan-intel or mesa-vulkan-swrast on Alpine; for NVIDIA its own.";
#endif

// The variables of the Vulkan loader that leave drivers out and are set, as a sentence.
std::string hiding_variables() {
  std::string text;
  for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT",
                           "VK_LOADER_DRIVERS_DISABLE"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    text += (text.empty() ? " " : ", ") + std::string(name) + "=" + value;
  }
  if (text.empty()) return "";
  return " The environment has" + text + ", which hides other drivers: unset or correct it.";
}

}  // namespace

Error missing_loader(std::string_view names) {
  return {ErrorCode::kNotFound,
          "[Vulkan] There is no Vulkan loader (tried " + std::string(names) + ")." + kLoader};
}

Error missing_driver(std::string_view found) {
  return {ErrorCode::kNotFound, "[Vulkan] There is no Vulkan driver: " + std::string(found) + "." +
                                    hiding_variables() + kDriver};
}

}  // namespace vkformer
