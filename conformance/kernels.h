// Names and needs of the compiled kernels, without their SPIR-V, which is in the runtime.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/catalogue.h"
#include "plan/device_caps.h"

namespace vkformer::conformance {

const char* name_of(KernelId kernel);
// Its specialization constants by their names in C++ ("local_size"), in the order of their ids.
std::vector<std::string_view> constants_of(KernelId kernel);
// Every variant.
std::vector<KernelId> all_kernels();
// Why a device cannot run it; empty: it can.
std::string why_not(KernelId kernel, const DeviceCaps& caps);

}  // namespace vkformer::conformance
