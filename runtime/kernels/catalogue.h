// The catalogue of compute kernels: one enumerator per compiled variant, its embedded SPIR-V and
// its reflected interface. No policy: which kernel to use is decided in ops/ and plan/.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/reflect.h"

namespace vkformer {

// What a compiled variant needs beyond the baseline.
enum KernelFeature : uint32_t {
  kFeature_subgroup = 1u << 0,
  kFeature_fp16 = 1u << 1,
  kFeature_int64 = 1u << 2,
  kFeature_matrix = 1u << 3,
  kFeature_matrix2 = 1u << 4,
  kFeature_tables = 1u << 5,  // arrays of buffers, indexed (descriptor indexing)
  // No need of a device: only the strategies of software/ choose it.
  kFeature_software = 1u << 6,
  kFeature_absent = 1u << 7,  // this build left it out; it has no words
  kFeature_dot8 = 1u << 8,    // integer dot products of packed bytes
};

// Named <op>_<strategy>__<in>_<weight>_<acc>[_<feature>]; shaders list theirs.
enum class KernelId : uint16_t {
#define VKF_KERNEL(name, group, features, list) name,
#include "kernel_list.inc"
#undef VKF_KERNEL
  kCount
};

struct KernelInfo {
  std::string_view name;
  uint32_t features = 0;  // KernelFeature bits
  // Its specialization constants: the list that the shader declares (shaders/params/constants.h)
  // and the number of its entries. A variant may use a part of them.
  std::string_view constants_list;
  uint32_t constants = 0;
  // Its group's SPIR-V, one after the other, compressed by Zstandard (RFC 8878).
  std::span<const uint8_t> packed;
  uint32_t first_word = 0;  // in the group
  uint32_t words = 0;
};

const KernelInfo& kernel_info(KernelId id);

// The SPIR-V of a kernel. Its group is unpacked as far as the kernel's end each time (about a
// millisecond at most, once for a pipeline). Empty where memory runs out.
std::vector<uint32_t> kernel_spirv(KernelId id);

// The interface reflected from the embedded SPIR-V; computed at each call (it takes microseconds
// and happens once per pipeline).
Result<KernelInterface> kernel_interface(KernelId id);

}  // namespace vkformer
