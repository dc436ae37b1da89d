#include "energy.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace vkformer::cli {

std::optional<double> energy_joules() {
  std::error_code failure;
  std::optional<double> total;
  std::filesystem::directory_iterator zones("/sys/class/powercap", failure);
  if (failure) return total;
  for (const auto& zone : zones) {
    // "intel-rapl:0" is a package, "intel-rapl:0:0" a part of it. AMD's have the same names.
    const std::string name = zone.path().filename();
    const size_t colon = name.find(':');
    if (colon == std::string::npos || name.find(':', colon + 1) != std::string::npos) continue;
    std::ifstream file(zone.path() / "energy_uj");
    double microjoules = 0;
    if (file >> microjoules) total = total.value_or(0) + microjoules * 1e-6;
  }
  return total;
}

}  // namespace vkformer::cli
