// Numbers of SPIR-V (Khronos specification, version 1.x) that more than one reader of modules here
// knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vkformer::spirv {

inline constexpr size_t kHeaderWords = 5;
inline constexpr uint32_t kSpecId = 1;  // decorations
inline constexpr uint32_t kArrayStride = 6;
inline constexpr uint32_t kClassStorageBuffer = 12;

enum Op : uint32_t {
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpTypeVoid = 19,
  kOpTypeBool = 20,
  kOpTypeInt = 21,
  kOpTypeFloat = 22,
  kOpTypeVector = 23,
  kOpTypeMatrix = 24,
  kOpTypeArray = 28,
  kOpTypeRuntimeArray = 29,
  kOpTypeStruct = 30,
  kOpTypePointer = 32,
  kOpConstantTrue = 41,
  kOpConstantFalse = 42,
  kOpConstant = 43,
  kOpConstantComposite = 44,
  kOpSpecConstantTrue = 48,
  kOpSpecConstantFalse = 49,
  kOpSpecConstant = 50,
  kOpSpecConstantComposite = 51,
  kOpSpecConstantOp = 52,
  kOpFunction = 54,
  kOpVariable = 59,
  kOpAccessChain = 65,
  kOpInBoundsAccessChain = 66,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
  kOpDecorationGroup = 73,
  kOpIAdd = 128,
  kOpISub = 130,
  kOpIMul = 132,
  kOpUDiv = 134,
  kOpUMod = 137,
  kOpLogicalOr = 166,
  kOpLogicalAnd = 167,
  kOpLogicalNot = 168,
  kOpSelect = 169,
  kOpIEqual = 170,
  kOpINotEqual = 171,
  kOpUGreaterThan = 172,
  kOpUGreaterThanEqual = 174,
  kOpULessThan = 176,
  kOpULessThanEqual = 178,
  kOpShiftRightLogical = 194,
  kOpShiftLeftLogical = 196,
  kOpBitwiseOr = 197,
  kOpBitwiseAnd = 199,
  kOpNot = 200,
  kOpLabel = 248,
  kOpExecutionModeId = 331,
};

// Calls f(op, operands) for every instruction. Precondition: a module that reflect_spirv takes.
template <class F>
void for_each_instruction(std::span<const uint32_t> words, const F& f) {
  for (size_t at = kHeaderWords; at < words.size();) {
    const size_t count = words[at] >> 16;
    f(words[at] & 0xffffu, words.subspan(at + 1, count - 1));
    at += count;
  }
}

inline void put_instruction(std::vector<uint32_t>& out, uint32_t op,
                            std::span<const uint32_t> operands) {
  out.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
  out.insert(out.end(), operands.begin(), operands.end());
}

}  // namespace vkformer::spirv
