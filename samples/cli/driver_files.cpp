#include "driver_files.h"

#include <dlfcn.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "files.h"

namespace vkformer::cli {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(separator, begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The manifests that an entry of a list is: a file, or all of a folder.
void add_manifests(const fs::path& place, std::vector<std::string>& paths) {
  std::error_code code;
  std::vector<std::string> found;
  if (!fs::is_directory(place, code)) {
    found.push_back(place.string());
  } else {
    for (fs::directory_iterator items(place, code), end; !code && items != end;
         items.increment(code)) {
      if (items->path().extension() == ".json") found.push_back(items->path().string());
    }
    std::sort(found.begin(), found.end());
  }
  for (const std::string& path : found) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  }
}

// The folders that the loader looks into when no variable names drivers.
std::vector<fs::path> usual_folders() {
  const std::string home = variable("HOME");
  const auto or_usual = [](const std::string& value, const std::string& usual) {
    return value.empty() ? usual : value;
  };
  std::vector<std::string> above = {or_usual(variable("XDG_CONFIG_HOME"), home + "/.config")};
  for (const std::string& folder : split(or_usual(variable("XDG_CONFIG_DIRS"), "/etc/xdg"), ':')) {
    above.push_back(folder);
  }
  for (const char* folder : {"/usr/local/etc", "/etc"}) above.emplace_back(folder);
  above.push_back(or_usual(variable("XDG_DATA_HOME"), home + "/.local/share"));
  const std::string data = or_usual(variable("XDG_DATA_DIRS"), "/usr/local/share:/usr/share");
  for (const std::string& folder : split(data, ':')) above.push_back(folder);
  std::vector<fs::path> folders;
  for (const std::string& folder : above) folders.push_back(fs::path(folder) / "vulkan" / "icd.d");
  return folders;
}

// What dlopen says of the library; empty: it is a driver.
std::string library_problem(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return std::string("its library cannot be loaded: ") + (why != nullptr ? why : "unknown");
  }
  const bool driver = dlsym(handle, "vk_icdGetInstanceProcAddr") != nullptr ||
                      dlsym(handle, "vk_icdNegotiateLoaderICDInterfaceVersion") != nullptr;
  dlclose(handle);
  return driver ? "" : "its library has no vk_icdGetInstanceProcAddr";
}

bool matches(const std::string& patterns, const std::string& name) {
  for (const std::string& pattern : split(patterns, ',')) {
    if (fnmatch(pattern.c_str(), name.c_str(), FNM_CASEFOLD) == 0) return true;
  }
  return false;
}

// Why variables hide a manifest of that name; empty: they do not.
std::string filter_problem(const std::string& name) {
  const std::string selected = variable("VK_LOADER_DRIVERS_SELECT");
  if (!selected.empty() && !matches(selected, name)) {
    return "VK_LOADER_DRIVERS_SELECT does not name it";
  }
  return matches(variable("VK_LOADER_DRIVERS_DISABLE"), name) ? "VK_LOADER_DRIVERS_DISABLE names it"
                                                              : "";
}

DriverFile read_driver_file(const std::string& path) {
  DriverFile driver;
  driver.path = path;
  const Result<Json> read = read_json_file(path);
  if (!read) {
    driver.problem = read.error().message;
    return driver;
  }
  const Json icd = read->value("ICD", Json::object());
  const auto text = [&icd](const char* key) {
    return icd.is_object() && icd.contains(key) && icd[key].is_string()
               ? icd[key].get<std::string>()
               : std::string();
  };
  driver.library = text("library_path");
  driver.api_version = text("api_version");
  if (driver.library.empty()) {
    driver.problem = "it names no library (\"ICD\", \"library_path\")";
    return driver;
  }
  // A path is that of the manifest's folder; a name alone is looked for where libraries are.
  const fs::path library(driver.library);
  const bool relative = library.is_relative() && driver.library.find('/') != std::string::npos;
  const fs::path place = relative ? fs::path(path).parent_path() / library : library;
  driver.problem = library_problem(place.string());
  return driver;
}

}  // namespace

std::vector<DriverFile> find_driver_files() {
  const char* only = "VK_DRIVER_FILES";
  if (variable(only).empty()) only = "VK_ICD_FILENAMES";  // its older name
  const std::string named = variable(only);
  std::vector<std::string> used, usual;
  for (const std::string& place : split(named, ':')) add_manifests(place, used);
  for (const std::string& place : split(variable("VK_ADD_DRIVER_FILES"), ':')) {
    if (named.empty()) add_manifests(place, used);
  }
  for (const fs::path& folder : usual_folders()) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) add_manifests(folder, named.empty() ? used : usual);
  }
  std::vector<DriverFile> drivers;
  for (const std::string& path : used) {
    DriverFile driver = read_driver_file(path);
    const std::string filtered = filter_problem(fs::path(path).filename().string());
    if (!filtered.empty()) driver.problem = filtered;
    drivers.push_back(std::move(driver));
  }
  for (const std::string& path : usual) {
    if (std::find(used.begin(), used.end(), path) != used.end()) continue;
    DriverFile driver;
    driver.path = path;
    driver.problem = std::string(only) + " is set and does not name it";
    drivers.push_back(std::move(driver));
  }
  return drivers;
}

std::vector<std::string> driver_variables() {
  std::vector<std::string> set;
  for (const char* name :
       {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT",
        "VK_LOADER_DRIVERS_DISABLE", "VK_LOADER_LAYERS_ENABLE", "VK_LOADER_LAYERS_DISABLE",
        "VK_INSTANCE_LAYERS", "VK_LAYER_PATH", "VK_ADD_LAYER_PATH", "MESA_VK_DEVICE_SELECT",
        "DRI_PRIME", "LD_LIBRARY_PATH"}) {
    const std::string value = variable(name);
    if (!value.empty()) set.push_back(std::string(name) + "=" + value);
  }
  return set;
}

}  // namespace vkformer::cli
