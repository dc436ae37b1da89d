// What the shader compiler of a software device does with a kernel, as far as the choice and the
// rewriting of kernels depend on it. A driver for hardware has the defaults, but for has_int64,
// has_quads and max_table_parts, which any device may support.
#pragma once

#include <cstdint>

namespace vkformer {

struct CompilerTraits {
  // Keeps uniform loads scalar (Mesa 23 on): smaller tiles win.
  bool fast_uniform_loads = false;
  // Its uniform loads are plain scalar code, also in loops: a weight that is read once streams
  // through them faster than through gathers.
  bool streams_uniform_loads = false;
  // Leaves specialization constants open and does not unroll: it gets their values in the SPIR-V,
  // and tiles of literal size.
  bool wants_literals = false;
  bool has_quads = false;  // subgroup operations within quads, which literal tiles need
  bool has_int64 = false;  // 64-bit integers in shaders: wider loads
  // Buffers that a kernel's array may have (descriptor indexing); 0: kernels have none.
  uint32_t max_table_parts = 0;
};

}  // namespace vkformer
