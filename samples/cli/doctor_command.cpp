// `vkformer doctor`: which Vulkan loaders, drivers, GPUs and devices there are, and why each is
// used or not. It checks whether the chosen device computes what it should, and says what to do.
#include <dlfcn.h>
#include <unistd.h>
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "command_line.h"
#include "driver_files.h"
#include "terminal.h"
#include "vkformer/conformance.h"

namespace vkformer::cli {

namespace {

namespace fs = std::filesystem;

struct LoaderFound {
  std::string name;     // that is looked for
  std::string path;     // of the library; empty: there is none
  std::string version;  // of Vulkan; empty: it offers 1.0 only
};

// A GPU as the kernel knows it.
struct GpuNode {
  std::string path;     // /dev/dri/renderD128
  std::string vendor;   // "AMD"
  std::string problem;  // why it cannot be opened; empty: it can
};

struct SelfCheck {
  int checks = 0;
  double seconds = 0;
  std::vector<std::string> failures;  // "softmax/...: sentence"
};

// All that was found.
struct Health {
  std::vector<LoaderFound> loaders;
  std::vector<std::string> variables;
  std::vector<GpuNode> gpus;
  std::vector<DriverFile> drivers;
  std::vector<DeviceInfo> devices;
  std::string list_error;             // why devices cannot be listed
  std::optional<int> used;            // index of the device that is used
  std::string device_error;           // why none is
  std::string tier;                   // that it runs at
  std::vector<std::string> messages;  // of the library: cache files and workarounds
  std::optional<SelfCheck> check;
  std::string check_error;
};

LoaderFound find_loader(const char* name) {
  LoaderFound found{name, "", ""};
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return found;
  const auto get =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  Dl_info place{};
  if (get != nullptr && dladdr(reinterpret_cast<void*>(get), &place) != 0) {
    found.path = place.dli_fname;
    const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
        get(nullptr, "vkEnumerateInstanceVersion"));
    uint32_t version = 0;
    if (enumerate != nullptr && enumerate(&version) == VK_SUCCESS) {
      found.version = std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
                      std::to_string(VK_API_VERSION_MINOR(version)) + "." +
                      std::to_string(VK_API_VERSION_PATCH(version));
    }
  }
  // It stays open: some drivers do not survive being unloaded.
  return found;
}

std::string vendor_name(const std::string& id) {
  const std::map<std::string, std::string> names = {
      {"0x1002", "AMD"}, {"0x8086", "Intel"}, {"0x10de", "NVIDIA"}, {"0x1af4", "virtio"}};
  const auto found = names.find(id);
  return found == names.end() ? "vendor " + id : found->second;
}

std::vector<GpuNode> find_gpus() {
  std::vector<GpuNode> gpus;
  std::error_code code;
  for (fs::directory_iterator items("/sys/class/drm", code), end; !code && items != end;
       items.increment(code)) {
    const std::string name = items->path().filename().string();
    if (!name.starts_with("renderD")) continue;
    std::string vendor = "unknown";
    std::ifstream(items->path() / "device" / "vendor") >> vendor;
    GpuNode gpu{"/dev/dri/" + name, vendor_name(vendor), ""};
    if (!fs::exists(gpu.path)) {
      gpu.problem = "is not in /dev/dri; start the container with --device /dev/dri";
    } else if (access(gpu.path.c_str(), R_OK | W_OK) != 0) {
      gpu.problem =
          "may not be opened by this user; add the user to the group `render`: "
          "sudo usermod -aG render $USER, then log in again";
    }
    gpus.push_back(std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const GpuNode& a, const GpuNode& b) { return a.path < b.path; });
  return gpus;
}

// Operators whose check finds most of what drivers get wrong: products, sums over rows, shared
// memory, tables. All of them take a minute and more.
constexpr const char* kChecked[] = {"matmul",   "softmax",   "layer_norm",
                                    "rms_norm", "embedding", "argmax"};

// One small check of each, and no repeats: seconds.
SelfCheck run_self_check(const CommonOptions& common, const Device& device, std::string& error) {
  ConformanceOptions options;
  options.extent = ConformanceExtent::kQuick;
  options.repeats = 1;
  std::set<std::string> seen;
  for (const std::string& name : conformance_checks(options)) {
    const std::string op = name.substr(0, name.find('/'));
    if (std::find(std::begin(kChecked), std::end(kChecked), op) == std::end(kChecked)) continue;
    if (seen.insert(op).second) options.filters.push_back(name);
  }
  Progress progress("checking " + device.info().name, common.progress());
  options.progress = [&progress](const std::string&, int done, int all) {
    progress.set(done, all);
  };
  SelfCheck check;
  const Result<ConformanceReport> made = run_conformance(device, options);
  if (!made) {
    error = made.error().message;
    return check;
  }
  check.checks = static_cast<int>(made->checks.size());
  check.seconds = made->seconds;
  for (const ConformanceCheck& one : made->checks) {
    if (one.failed()) check.failures.push_back(one.name + ": " + one.message);
  }
  return check;
}

// Whether the loader finds no device by this driver alone. The variables are restored.
bool shows_nothing(const DriverFile& driver) {
  std::map<std::string, std::optional<std::string>> before;
  for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
    const char* value = std::getenv(name);
    before[name] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    setenv(name, driver.path.c_str(), 1);
  }
  const Result<std::vector<DeviceInfo>> devices = list_devices();
  for (const auto& [name, value] : before) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  return !devices || devices->empty();
}

Health examine(const CommonOptions& common) {
  Health health;
  for (const char* name : {"libvulkan.so.1", "libvulkan.so"}) {
    health.loaders.push_back(find_loader(name));
  }
  health.variables = driver_variables();
  health.gpus = find_gpus();
  health.drivers = find_driver_files();
  for (DriverFile& driver : health.drivers) {
    if (driver.problem.empty() && shows_nothing(driver)) {
      driver.problem = "loads, and shows no device: this machine has no GPU for it";
    }
  }
  const Result<std::vector<DeviceInfo>> devices = list_devices();
  if (devices) {
    health.devices = *devices;
  } else {
    health.list_error = devices.error().message;
  }
  CommonOptions opened = common;
  opened.device.log = [&health](LogLevel level, const std::string& message) {
    if (level != LogLevel::kInfo) health.messages.push_back(message);
  };
  const Result<Device> device = open_device(opened);
  if (!device) {
    health.device_error = device.error().message;
    return health;
  }
  health.used = device->info().index;
  health.tier = choice_name(device->tier());
  const SelfCheck check = run_self_check(common, *device, health.check_error);
  if (health.check_error.empty()) health.check = check;
  return health;
}

// Why a device is used or not.
std::string standing(const DeviceInfo& device, const Health& health) {
  if (health.used == device.index) return "is used, at tier " + health.tier;
  if (!device.best_tier) return "cannot be used";
  const std::string way = "; --device " + std::to_string(device.index) + " chooses it";
  return "can be used" + way;
}

bool is_healthy(const Health& health) {
  return health.used && health.check && health.check->failures.empty();
}

// The command that installs drivers on this distribution; empty: it is another one.
std::string install_command() {
  std::string ids;
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("ID=") || line.starts_with("ID_LIKE=")) {
      ids += " " + line.substr(line.find('=') + 1);
    }
  }
  std::erase(ids, '"');
  const auto is = [&ids](const char* id) {
    return (ids + " ").find(std::string(" ") + id) != std::string::npos;
  };
  if (is("debian") || is("ubuntu")) return "apt install libvulkan1 mesa-vulkan-drivers";
  if (is("fedora") || is("rhel")) return "dnf install vulkan-loader mesa-vulkan-drivers";
  if (is("arch")) {
    return "pacman -S vulkan-icd-loader, and vulkan-radeon (AMD), vulkan-intel (Intel), "
           "nvidia-utils (NVIDIA) or vulkan-swrast (software)";
  }
  if (is("alpine")) {
    return "apk add vulkan-loader, and mesa-vulkan-ati (AMD), mesa-vulkan-intel (Intel) or "
           "mesa-vulkan-swrast (software)";
  }
  if (is("opensuse") || is("suse")) {
    return "zypper install libvulkan1, and libvulkan_radeon (AMD), libvulkan_intel (Intel) or "
           "libvulkan_lvp (software)";
  }
  return "";
}

// What to do, most important first.
std::vector<std::string> advice(const Health& health) {
  std::vector<std::string> list;
  for (const GpuNode& gpu : health.gpus) {
    if (!gpu.problem.empty()) list.push_back("[" + gpu.path + "] " + gpu.problem + ".");
  }
  const bool hidden = std::any_of(
      health.drivers.begin(), health.drivers.end(),
      [](const DriverFile& driver) { return driver.problem.find("VK_") != std::string::npos; });
  if (!health.used && hidden) {
    list.emplace_back("Variables hide drivers that are installed; unset those listed above.");
  }
  const std::string command = install_command();
  if (health.devices.empty() && !command.empty()) {
    list.push_back("To install drivers on this system: " + command + ".");
  }
  if (health.check && !health.check->failures.empty()) {
    list.emplace_back(
        "Update the driver. Until then `vkformer conformance --quick --demote` finds "
        "and omits the kernels that are wrong here.");
  }
  return list;
}

Json health_json(const Health& health) {
  Json json;
  json["version"] = VKFORMER_VERSION;
  json["healthy"] = is_healthy(health);
  json["loaders"] = Json::array();
  for (const LoaderFound& loader : health.loaders) {
    json["loaders"].push_back(
        {{"name", loader.name}, {"path", loader.path}, {"version", loader.version}});
  }
  json["variables"] = health.variables;
  json["gpus"] = Json::array();
  for (const GpuNode& gpu : health.gpus) {
    json["gpus"].push_back({{"path", gpu.path}, {"vendor", gpu.vendor}, {"problem", gpu.problem}});
  }
  json["drivers"] = Json::array();
  for (const DriverFile& driver : health.drivers) {
    json["drivers"].push_back({{"path", driver.path},
                               {"library", driver.library},
                               {"api_version", driver.api_version},
                               {"problem", driver.problem}});
  }
  json["devices"] = Json::array();
  for (const DeviceInfo& device : health.devices) {
    json["devices"].push_back({{"index", device.index},
                               {"name", device.name},
                               {"driver", device.driver},
                               {"kind", choice_name(device.kind)},
                               {"used", health.used == device.index},
                               {"standing", standing(device, health)},
                               {"notes", device.notes}});
  }
  json["error"] = health.device_error;
  json["messages"] = health.messages;
  json["self_check"] = Json();
  if (health.check) {
    json["self_check"] = {{"checks", health.check->checks},
                          {"failures", health.check->failures},
                          {"seconds", health.check->seconds}};
  }
  json["advice"] = advice(health);
  return json;
}

// A line with a mark in front: what is well, what is not, and what only is.
enum class Mark : uint8_t { kGood, kBad, kNeutral };
void print_entry(Mark mark, const std::string& text) {
  const bool good = mark == Mark::kGood;
  const std::string sign =
      mark == Mark::kNeutral
          ? "  - "
          : colored(good ? "  ok" : "  no", good ? Color::kGreen : Color::kRed, stdout);
  print_line(sign + "  " + text);
}

void print_heading(const char* text) {
  print_line(colored(text, Color::kBold, stdout));
}

void print_drivers(const Health& health) {
  print_heading("Vulkan loaders");
  const bool any = std::any_of(health.loaders.begin(), health.loaders.end(),
                               [](const LoaderFound& loader) { return !loader.path.empty(); });
  for (const LoaderFound& loader : health.loaders) {
    const bool found = !loader.path.empty();
    const std::string version = loader.version.empty() ? "1.0" : loader.version;
    print_entry(
        found ? Mark::kGood
        : any ? Mark::kNeutral
              : Mark::kBad,
        loader.name + ": " + (found ? loader.path + ", Vulkan " + version : "is not installed"));
  }
  if (!health.variables.empty()) print_heading("Variables that are set");
  for (const std::string& variable : health.variables) print_entry(Mark::kNeutral, variable);
  if (!health.gpus.empty()) print_heading("GPUs of this machine");
  for (const GpuNode& gpu : health.gpus) {
    const bool good = gpu.problem.empty();
    print_entry(good ? Mark::kGood : Mark::kBad,
                gpu.path + " (" + gpu.vendor + "): " + (good ? "can be opened" : gpu.problem));
  }
  print_heading("Vulkan drivers");
  if (health.drivers.empty()) print_entry(Mark::kBad, "none is installed");
  for (const DriverFile& driver : health.drivers) {
    const bool good = driver.problem.empty();
    print_entry(good ? Mark::kGood : Mark::kNeutral,
                driver.path + ": " +
                    (good ? driver.library + ", Vulkan " + driver.api_version : driver.problem));
  }
}

void print_devices(const Health& health) {
  print_heading("Vulkan devices");
  if (!health.list_error.empty()) {
    print_entry(Mark::kBad, health.list_error);
  } else if (health.devices.empty()) {
    print_entry(Mark::kBad, "the drivers show none");
  }
  for (const DeviceInfo& device : health.devices) {
    print_entry(device.best_tier ? Mark::kGood : Mark::kBad,
                "[" + std::to_string(device.index) + "] " + device.name + " (" +
                    choice_name(device.kind) + ", " + device.driver +
                    "): " + standing(device, health));
    for (const std::string& note : device.notes) print_line("        " + note);
  }
  const bool said = health.device_error.empty() || health.device_error == health.list_error;
  if (!said) print_entry(Mark::kBad, health.device_error);
  for (const std::string& message : health.messages) print_entry(Mark::kNeutral, message);
  if (!health.used) return;
  print_heading("Self-check");
  if (!health.check) return print_entry(Mark::kBad, health.check_error);
  const SelfCheck& check = *health.check;
  print_entry(check.failures.empty() ? Mark::kGood : Mark::kBad,
              std::to_string(check.checks) + " checks in " + fixed(check.seconds, 1) + " s, " +
                  std::to_string(check.failures.size()) +
                  " failed; `vkformer conformance` checks everything");
  for (const std::string& failure : check.failures) print_line("        " + failure);
}

int run_doctor(const CommonOptions& common) {
  const Health health = examine(common);
  if (common.json) {
    print_json(health_json(health));
  } else {
    print_line("vkformer " VKFORMER_VERSION);
    print_drivers(health);
    print_devices(health);
    const std::vector<std::string> list = advice(health);
    if (!list.empty()) print_heading("What to do");
    for (const std::string& line : list) print_entry(Mark::kNeutral, line);
  }
  if (!health.used) return kExitNoDevice;
  return is_healthy(health) ? kExitOk : kExitFailed;
}

}  // namespace

void add_doctor_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Find out why a Vulkan device is used or not, and check the one that is.");
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer doctor\n"
               "  vkformer doctor --device 1 --json\n");
  command->callback([&line] { line.run = [&line] { return run_doctor(line.common); }; });
}

}  // namespace vkformer::cli
