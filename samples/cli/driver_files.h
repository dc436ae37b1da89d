// The files that tell the Vulkan loader which drivers there are, and why it does not use one of
// them. Follows the loader's documented search (LoaderDriverInterface.md); of Linux and other
// systems with its folders.
#pragma once

#include <string>
#include <vector>

namespace vkformer::cli {

struct DriverFile {
  std::string path;         // of the manifest, such as /usr/share/vulkan/icd.d/lvp_icd.json
  std::string library;      // that it names
  std::string api_version;  // that it names
  std::string problem;      // why the loader does not use it; empty: it does
};

// All that are in the loader's folders or named by its variables, in the loader's order.
std::vector<DriverFile> find_driver_files();

// The variables that change which loaders, drivers, devices and layers are used and that are set,
// as "NAME=value".
std::vector<std::string> driver_variables();

}  // namespace vkformer::cli
