// The ways in which one check can be planned on a device. These are its tier and the tiers below
// and the workgroups of every class of device. They are also kernels of one compiler and every
// kernel of a matrix product.
#pragma once

#include <string>
#include <vector>

#include "conformance/check.h"
#include "plan/device_caps.h"

namespace vkformer::conformance {

struct Variation {
  Tier tier = Tier::kBaseline;
  std::string name;  // "subgroup-wide"
  DeviceCaps caps;
};

// Of a check and what it made: a matrix product is tried with every kernel for its rows.
std::vector<Variation> variations_of(const DeviceCaps& caps, const Check& check,
                                     const CheckCase& made);

}  // namespace vkformer::conformance
