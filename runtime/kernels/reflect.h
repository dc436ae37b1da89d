// Reads a compute shader's interface out of its SPIR-V, so that host and shader cannot disagree.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace vkformer {

enum class BindingType : uint8_t { kStorage, kUniform };

struct KernelBinding {
  uint32_t binding = 0;
  BindingType type = BindingType::kStorage;
  bool readonly = false;   // every block at this binding is NonWritable
  bool writeonly = false;  // every block at this binding is NonReadable
};

struct KernelInterface {
  std::vector<KernelBinding> bindings;  // of set 0, ascending, without gaps
  bool has_table = false;  // binding 0 of set 1 is an array of buffers, as long as the host likes
  uint32_t push_bytes = 0;
  std::vector<uint32_t> spec_ids;  // ascending
  // Workgroup size as written; an axis set by a specialization constant has its id here, else ~0.
  std::array<uint32_t, 3> local_size = {1, 1, 1};
  std::array<uint32_t, 3> local_size_spec_id = {~0u, ~0u, ~0u};
};

// An error names what is malformed; hostile words are never read out of bounds.
Result<KernelInterface> reflect_spirv(std::span<const uint32_t> words);

}  // namespace vkformer
