// Subgroups of sizes that no device here has: the kernels' own algorithm over emulated operations
// (tests/emulated), planned as for a device of that size.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>

#include "conformance/planted.h"
#include "vkformer/conformance.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {

inline constexpr uint32_t kEmulatedSizeConstant = 60;  // emulated_subgroup.glsl

inline std::vector<uint32_t> read_words(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<uint32_t> words(bytes.size() / 4);
  std::copy_n(bytes.data(), words.size() * 4, reinterpret_cast<char*>(words.data()));
  REQUIRE_MESSAGE(words.size() > 5, path.string());
  return words;
}

// The constant becomes a plain one of that value: plans know nothing of it.
inline void set_emulated_size(std::vector<uint32_t>& words, uint32_t size) {
  // The opcodes of SPIR-V specification 1.6, section 3.49, and its decoration of constants.
  constexpr uint16_t kDecorate = 71, kConstant = 43, kSpecConstant = 50;
  constexpr uint32_t kSpecId = 1;
  uint32_t constant = 0;
  for (const size_t at : places_of(words, kDecorate)) {
    if (words[at + 2] != kSpecId || words[at + 3] != kEmulatedSizeConstant) continue;
    constant = words[at + 1];
    words.erase(words.begin() + static_cast<ptrdiff_t>(at),
                words.begin() + static_cast<ptrdiff_t>(at) + 4);
    break;
  }
  int changed = 0;
  for (const size_t at : places_of(words, kSpecConstant)) {
    if (words[at + 2] != constant) continue;
    words[at] = 4u << 16 | kConstant;
    words[at + 3] = size;
    ++changed;
  }
  REQUIRE(changed == 1);
}

inline PlantedKernels emulated_kernels(uint32_t size) {
  PlantedKernels kernels;
  for (const auto& entry : std::filesystem::directory_iterator(VKFORMER_EMULATED_DIR)) {
    if (entry.path().extension() != ".spv") continue;
    std::vector<uint32_t> words = read_words(entry.path());
    set_emulated_size(words, size);
    kernels[kernel_named(entry.path().stem().string())] = std::move(words);
  }
  return kernels;
}

inline Device emulated_device(uint32_t size, DeviceClass device_class) {
  Device device = planted_device(emulated_kernels(size), "none", Tier::kSubgroup);
  DeviceCaps& caps = vulkan_of(device)->impl().context.caps;
  caps.subgroup_size = size;
  caps.device_class = device_class;
  caps.compiler.wants_literals = caps.compiler.streams_uniform_loads = caps.compiler.has_int64 =
      false;
  return device;
}

inline bool has_subgroups() {
  // Once a driver is enough: these do not depend on the tier under test.
  if (!have_test_device() || test_environment("VKFORMER_TEST_TIER") == "baseline") return false;
  DeviceOptions options = test_device_options();
  options.tier = Tier::kSubgroup;
  return make_test_device(options, test_device_tweaks()).ok();
}

// The emulated kernels that ran; every check must pass.
inline std::vector<std::string> run_emulated(uint32_t size, DeviceClass device_class,
                                             const std::vector<std::string>& filters) {
  ConformanceOptions options;
  options.extent = ConformanceExtent::kQuick;
  options.filters = filters;
  options.repeats = 2;
  const auto report = run_conformance(emulated_device(size, device_class), options);
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  for (const ConformanceCheck& check : report->checks) {
    CHECK_MESSAGE(!check.failed(), size << " lanes: " << check.name << ": " << check.message);
  }
  std::vector<std::string> ran;
  for (const std::string& name : report->kernels_run) {
    if (name.find("_subgroup") != name.npos) ran.push_back(name);
  }
  return ran;
}

}  // namespace vkformer::testing
