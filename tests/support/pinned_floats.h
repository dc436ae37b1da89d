// What is left in a rewritten kernel of what reproducible precision must not have.
#pragma once

#include <set>
#include <vector>

#include "kernels/spirv.h"

namespace vkformer::testing {

struct PinnedFloats {
  int open = 0;        // operations whose result Vulkan leaves open
  int contracted = 0;  // additions and products that a driver may join
};
inline PinnedFloats floats_in(const std::vector<uint32_t>& words) {
  using namespace spirv;
  std::set<uint32_t> marked;
  PinnedFloats found;
  for_each_instruction(words, [&](uint32_t op, std::span<const uint32_t> in) {
    if (op == kOpDecorate && in[1] == kNoContraction) marked.insert(in[0]);
    if (op == kOpFDiv || op == kOpDot || op == kOpFConvert) ++found.open;
    if (op == kOpExtInst && in[3] != kExtFloor && in[3] < 64 && in[3] != 5 && in[3] != 7) {
      const bool integers =
          (in[3] >= 38 && in[3] <= 45) && in[3] != kExtFMax && in[3] != kExtFClamp;
      found.open += integers ? 0 : 1;
    }
    if (op == kOpFAdd || op == kOpFSub || op == kOpFMul || op == kOpVectorTimesScalar) {
      found.contracted += marked.count(in[1]) == 0 ? 1 : 0;
    }
  });
  return found;
}

}  // namespace vkformer::testing
