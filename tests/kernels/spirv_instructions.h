// The instructions of a SPIR-V module, for tests of what rewrites modules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spirv.h"

namespace vkformer {

struct Instruction {
  uint32_t op = 0;
  std::vector<uint32_t> operands;
  bool operator==(const Instruction&) const = default;
};

inline std::vector<Instruction> instructions(std::span<const uint32_t> words) {
  std::vector<Instruction> all;
  spirv::for_each_instruction(words, [&](uint32_t op, std::span<const uint32_t> operands) {
    all.push_back({op, {operands.begin(), operands.end()}});
  });
  return all;
}

}  // namespace vkformer
