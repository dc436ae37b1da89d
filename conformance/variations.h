// The ways in which one check can be planned on a device: its tier and the tiers below, the
// workgroups of every class of device, kernels of one compiler, every kernel of a matrix product.
#pragma once

#include <string>
#include <vector>

#include "plan/device_caps.h"

namespace vkformer::conformance {

struct Variation {
  std::string tier;
  std::string name;  // "subgroup-wide"
  DeviceCaps caps;
};

// `rows`: of a matrix product, whose every kernel is tried; 0: none.
std::vector<Variation> variations_of(const DeviceCaps& caps, uint32_t rows, Precision precision);

}  // namespace vkformer::conformance
