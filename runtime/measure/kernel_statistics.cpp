#include "measure/kernel_statistics.h"

#include <algorithm>
#include <cmath>

#include "kernels/catalogue.h"
#include "vulkan/device_impl.h"

namespace vkformer {
namespace {

using Field = std::optional<double> CompilerStatistics::*;

// How a driver names a field. Of several rows that a driver has for one field, the largest value
// counts: a pipeline takes as long as its busiest unit.
struct Name {
  const char* driver;  // a part of its name, in lower case; "": every driver
  const char* name;    // of the statistic, without regard to case
  Field field;
  double scale = 1;  // from the driver's unit to ours
  const char* unit = "";
  double modulo = 0;  // not 0: the statistic counts from a multiple of this
};

// Mesa's names: src/util/shader_stats.xml, src/nouveau/vulkan, src/intel/vulkan, src/amd/vulkan.
constexpr Name kNames[] = {
    {"", "Instruction Count", &CompilerStatistics::instructions},
    {"", "Instructions", &CompilerStatistics::instructions},
    {"", "Instrs", &CompilerStatistics::instructions},
    {"turnip", "Code size", &CompilerStatistics::code_bytes, 4},  // it counts 32-bit words
    {"", "Code size", &CompilerStatistics::code_bytes},
    {"", "Binary Size", &CompilerStatistics::code_bytes},
    {"", "Spills", &CompilerStatistics::spills},
    {"", "Fills", &CompilerStatistics::fills},

    {"radv", "VGPRs", &CompilerStatistics::registers, 1, "VGPRs"},
    {"radv", "Spilled VGPRs", &CompilerStatistics::spills},
    {"radv", "Scratch size", &CompilerStatistics::scratch_bytes},
    {"radv", "LDS size", &CompilerStatistics::shared_bytes},
    {"radv", "Subgroups per SIMD", &CompilerStatistics::occupancy, 1, "subgroups per SIMD"},
    {"radv", "Latency", &CompilerStatistics::cycles},

    {"nvk", "Number of GPRs", &CompilerStatistics::registers, 1, "32-bit registers"},
    {"nvk", "SLM Size", &CompilerStatistics::scratch_bytes},
    {"nvk", "Spills to memory", &CompilerStatistics::spills},
    {"nvk", "Fills from memory", &CompilerStatistics::fills},
    {"nvk", "Max warps/SM", &CompilerStatistics::occupancy, 1, "warps per SM"},
    {"nvk", "Static cycle count", &CompilerStatistics::cycles},
    {"nvidia", "Register Count", &CompilerStatistics::registers, 1, "32-bit registers"},
    // NVIDIA's own driver states 2^36 more than there is.
    {"nvidia", "Local Memory Size", &CompilerStatistics::scratch_bytes, 1, "", 0x1p36},
    {"nvidia", "Shared Memory Size", &CompilerStatistics::shared_bytes},

    // Vectors of four; stores to and loads from private memory are its spills.
    {"turnip", "Registers used", &CompilerStatistics::registers, 1, "registers of 4 x 32 bits"},
    {"turnip", "STP Count", &CompilerStatistics::spills},
    {"turnip", "LDP Count", &CompilerStatistics::fills},
    {"turnip", "Max Waves Per Core", &CompilerStatistics::occupancy, 1, "waves per core"},

    {"honeykrisp", "GPRs", &CompilerStatistics::registers, 1, "16-bit registers"},
    {"honeykrisp", "Scratch", &CompilerStatistics::scratch_bytes},
    {"honeykrisp", "Threads", &CompilerStatistics::occupancy, 1, "threads per core"},
    {"honeykrisp", "ALU", &CompilerStatistics::cycles},
    {"honeykrisp", "FSCIB", &CompilerStatistics::cycles},
    {"honeykrisp", "IC", &CompilerStatistics::cycles},

    {"intel", "Max live registers", &CompilerStatistics::registers, 1, "registers live at once"},
    {"intel", "Spill Count", &CompilerStatistics::spills},
    {"intel", "Fill Count", &CompilerStatistics::fills},
    {"intel", "Scratch Memory Size", &CompilerStatistics::scratch_bytes},
    {"intel", "Workgroup Memory Size", &CompilerStatistics::shared_bytes},
    {"intel", "Cycle Count", &CompilerStatistics::cycles},
    {"intel", "Cycles", &CompilerStatistics::cycles},

    {"panvk", "Registers", &CompilerStatistics::registers, 1, "32-bit registers"},
    {"panvk", "Threads", &CompilerStatistics::occupancy, 1, "threads per two slots"},
    {"panvk", "Cycles", &CompilerStatistics::cycles},

    {"v3dv", "Thread Count", &CompilerStatistics::occupancy, 1, "threads per QPU"},
    {"v3dv", "Spill Size", &CompilerStatistics::scratch_bytes},
    {"v3dv", "TMU Spills", &CompilerStatistics::spills},
    {"v3dv", "TMU Fills", &CompilerStatistics::fills},
};

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

// The row of that driver for that statistic, its own before one of every driver; or null.
const Name* find_name(const std::string& driver, std::string_view statistic) {
  const std::string name = lower(statistic);
  const Name* found = nullptr;
  for (const Name& row : kNames) {
    if (lower(row.name) != name || driver.find(row.driver) == driver.npos) continue;
    if (found == nullptr || *row.driver != '\0') found = &row;
  }
  return found;
}

}  // namespace

CompilerStatistics normalize(const Executable& executable, std::string_view driver) {
  const std::string lowered = lower(driver);
  CompilerStatistics result;
  for (const Statistic& statistic : executable.statistics) {
    const Name* row = find_name(lowered, statistic.name);
    if (row == nullptr) continue;
    std::optional<double>& field = result.*row->field;
    double value = number_of(statistic.value) * row->scale;
    if (row->modulo > 0) value = std::fmod(value, row->modulo);
    field = std::max(field.value_or(0), value);
    if (row->field == &CompilerStatistics::registers) result.register_unit = row->unit;
    if (row->field == &CompilerStatistics::occupancy) result.occupancy_unit = row->unit;
  }
  // Every thread of Intel's has the same registers, so that what varies is its width.
  if (!result.occupancy && lowered.find("intel") != lowered.npos && executable.subgroup_size > 0) {
    result.occupancy = executable.subgroup_size;
    result.occupancy_unit = "invocations per thread";
  }
  return result;
}

Result<std::vector<KernelStatistics>> read_kernel_statistics(
    const std::shared_ptr<VulkanDevice>& device) {
  if (!device) return invalid_argument("[statistics] The device is empty; make a Device first.");
  VKF_ASSIGN(const auto pipelines, device->impl().pipelines->compiled());
  std::vector<KernelStatistics> list;
  for (const CompiledPipeline& pipeline : pipelines) {
    for (const Executable& executable : pipeline.executables) {
      KernelStatistics one;
      one.kernel = kernel_info(pipeline.kernel).name;
      one.constants = pipeline.spec;
      one.executable = executable.name;
      one.subgroup_size = executable.subgroup_size;
      one.compile_ms = pipeline.compile_ms;
      one.statistics = normalize(executable, device->info().driver);
      for (const Statistic& statistic : executable.statistics) {
        one.raw.emplace_back(statistic.name, number_of(statistic.value));
      }
      list.push_back(std::move(one));
    }
  }
  return list;
}

}  // namespace vkformer
