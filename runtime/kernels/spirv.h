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
inline constexpr uint32_t kNoContraction = 42;
inline constexpr uint32_t kClassStorageBuffer = 12;

enum Op : uint32_t {
  kOpExtension = 10,
  kOpExtInstImport = 11,
  kOpExtInst = 12,
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpCapability = 17,
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
  kOpTypeFunction = 33,
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
  kOpFunctionParameter = 55,
  kOpFunctionEnd = 56,
  kOpFunctionCall = 57,
  kOpVariable = 59,
  kOpAccessChain = 65,
  kOpInBoundsAccessChain = 66,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
  kOpDecorationGroup = 73,
  kOpCompositeConstruct = 80,
  kOpCompositeExtract = 81,
  kOpCopyObject = 83,
  kOpConvertFToS = 110,
  kOpConvertSToF = 111,
  kOpConvertUToF = 112,
  kOpFConvert = 115,
  kOpQuantizeToF16 = 116,
  kOpBitcast = 124,
  kOpFNegate = 127,
  kOpIAdd = 128,
  kOpFAdd = 129,
  kOpISub = 130,
  kOpFSub = 131,
  kOpIMul = 132,
  kOpFMul = 133,
  kOpUDiv = 134,
  kOpFDiv = 136,
  kOpUMod = 137,
  kOpFRem = 140,
  kOpFMod = 141,
  kOpVectorTimesScalar = 142,
  kOpMatrixTimesScalar = 143,
  kOpDot = 148,
  kOpLogicalOr = 166,
  kOpLogicalAnd = 167,
  kOpLogicalNot = 168,
  kOpSelect = 169,
  kOpIEqual = 170,
  kOpINotEqual = 171,
  kOpUGreaterThan = 172,
  kOpUGreaterThanEqual = 174,
  kOpULessThan = 176,
  kOpSLessThan = 177,
  kOpULessThanEqual = 178,
  kOpFOrdEqual = 180,
  kOpFOrdLessThan = 184,
  kOpFUnordGreaterThanEqual = 191,
  kOpShiftRightLogical = 194,
  kOpShiftLeftLogical = 196,
  kOpBitwiseOr = 197,
  kOpBitwiseXor = 198,
  kOpBitwiseAnd = 199,
  kOpNot = 200,
  kOpLabel = 248,
  kOpReturnValue = 254,
  kOpExecutionModeId = 331,
  kOpGroupNonUniformFAdd = 350,
  kOpGroupNonUniformFMul = 352,
  kOpGroupNonUniformFMin = 355,
  kOpGroupNonUniformFMax = 358,
};

// Of the extended set GLSL.std.450.
enum ExtendedOp : uint32_t {
  kExtFAbs = 4,
  kExtFSign = 6,
  kExtFloor = 8,
  kExtCeil = 9,
  kExtPow = 26,
  kExtExp = 27,
  kExtLog = 28,
  kExtSqrt = 31,
  kExtInverseSqrt = 32,
  kExtFMin = 37,
  kExtFMax = 40,
  kExtFClamp = 43,
  kExtFMix = 46,
  kExtFma = 50,
  kExtPackHalf2x16 = 58,
  kExtUnpackHalf2x16 = 62,
};

// Capabilities and execution modes of SPV_KHR_float_controls, part of SPIR-V 1.4.
inline constexpr uint32_t kDenormFlushToZero = 4465;
inline constexpr uint32_t kSignedZeroInfNanPreserve = 4466;
inline constexpr uint32_t kRoundingModeRTE = 4467;
inline constexpr uint32_t kModeDenormFlushToZero = 4460;
inline constexpr uint32_t kModeSignedZeroInfNanPreserve = 4461;
inline constexpr uint32_t kModeRoundingModeRTE = 4462;

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
