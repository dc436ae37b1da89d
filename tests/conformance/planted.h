// Kernels that are wrong, made from right ones: one instruction of their SPIR-V is another.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/test_device.h"

namespace vkformer::testing {

// The opcodes that are exchanged (SPIR-V specification 1.6, section 3.49).
enum SpirvOp : uint16_t {
  kFAdd = 129,
  kFMul = 133,
  kULessThan = 176,
  kULessThanEqual = 178,
};

inline KernelId kernel_named(const std::string& name) {
  for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
    if (kernel_info(static_cast<KernelId>(i)).name == name) return static_cast<KernelId>(i);
  }
  FAIL("no kernel is named " << name);
  return KernelId::kCount;
}

// Where instructions of that opcode begin.
inline std::vector<size_t> places_of(const std::vector<uint32_t>& words, uint16_t opcode) {
  std::vector<size_t> places;
  for (size_t at = 5; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16) {
    if ((words[at] & 0xffff) == opcode) places.push_back(at);
  }
  return places;
}

// The kernel with the `index`-th instruction `from` turned into `to`.
inline std::vector<uint32_t> with_fault(KernelId kernel, uint16_t from, uint16_t to, size_t index) {
  std::vector<uint32_t> words = kernel_spirv(kernel);
  const std::vector<size_t> places = places_of(words, from);
  REQUIRE(index < places.size());
  words[places[index]] = (words[places[index]] & 0xffff0000u) | to;
  return words;
}

// The kernel with every instruction `from` turned into `to`.
inline std::vector<uint32_t> with_faults(KernelId kernel, uint16_t from, uint16_t to) {
  std::vector<uint32_t> words = kernel_spirv(kernel);
  for (const size_t place : places_of(words, from))
    words[place] = (words[place] & 0xffff0000u) | to;
  return words;
}

// A folder for caches that is empty, and goes with the object.
struct CacheFolder {
  std::string path;
  explicit CacheFolder(const std::string& name)
      : path((std::filesystem::temp_directory_path() / ("vkformer_" + name)).string()) {
    std::filesystem::remove_all(path);
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

inline Device planted_device(const PlantedKernels& planted, const std::string& cache,
                             std::optional<Tier> tier = std::nullopt) {
  DeviceTweaks tweaks = test_device_tweaks();
  tweaks.planted = planted;
  DeviceOptions options = test_device_options();
  options.cache_directory = cache;
  if (tier) options.tier = *tier;
  auto device = make_test_device(options, tweaks);
  REQUIRE_MESSAGE(device.ok(), device.error().message);
  return *device;
}

}  // namespace vkformer::testing
