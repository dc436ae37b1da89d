#include "checkpoint/ggml_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/half.h"

namespace vkformer {
namespace {

constexpr GgmlTypeFacts kTypes[] = {
    {0, "F32", 1, 4, true},         {1, "F16", 1, 2, true},
    {30, "BF16", 1, 2, true},       {28, "F64", 1, 8, true},
    {8, "Q8_0", 32, 34, true},      {2, "Q4_0", 32, 18, true},
    {3, "Q4_1", 32, 20, true},      {6, "Q5_0", 32, 22, true},
    {7, "Q5_1", 32, 24, true},      {10, "Q2_K", 256, 84, true},
    {11, "Q3_K", 256, 110, true},   {12, "Q4_K", 256, 144, true},
    {13, "Q5_K", 256, 176, true},   {14, "Q6_K", 256, 210, true},
    {20, "IQ4_NL", 32, 18, true},   {23, "IQ4_XS", 256, 136, true},
    {39, "MXFP4", 32, 17, true},    {9, "Q8_1", 32, 36, false},
    {15, "Q8_K", 256, 292, false},  {16, "IQ2_XXS", 256, 66, false},
    {17, "IQ2_XS", 256, 74, false}, {18, "IQ3_XXS", 256, 98, false},
    {19, "IQ1_S", 256, 50, false},  {21, "IQ3_S", 256, 110, false},
    {22, "IQ2_S", 256, 82, false},  {24, "I8", 1, 1, false},
    {25, "I16", 1, 2, false},       {26, "I32", 1, 4, false},
    {27, "I64", 1, 8, false},       {29, "IQ1_M", 256, 56, false},
    {34, "TQ1_0", 256, 54, false},  {35, "TQ2_0", 256, 66, false},
    {40, "NVFP4", 64, 36, false},
};

constexpr size_t kLargestBlock = 256;  // weights

// The values of IQ4_NL's and IQ4_XS's codes.
constexpr std::array<int8_t, 16> kNonLinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
// Twice the values of E2M1's first 8 codes; the others are their negatives.
constexpr std::array<int8_t, 16> kDoubledE2m1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                 0, -1, -2, -3, -4, -6, -8, -12};

// The bytes of one block.
class Block {
 public:
  explicit Block(const std::byte* bytes) : bytes_(bytes) {}
  uint32_t byte(size_t at) const { return static_cast<uint32_t>(bytes_[at]); }
  int32_t signed_byte(size_t at) const { return static_cast<int8_t>(bytes_[at]); }
  float half(size_t at) const { return float_from_half(static_cast<uint16_t>(word(at, 2))); }
  // `count` bytes, the lowest first.
  uint32_t word(size_t at, size_t count) const {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= byte(at + i) << (8 * i);
    return value;
  }
  // The 4 bits of weight i among 32: the lower ones of 16 bytes are the first 16 weights.
  uint32_t nibble(size_t at, size_t i) const {
    return i < 16 ? byte(at + i) & 15u : byte(at + i - 16) >> 4u;
  }
  const std::byte* at(size_t offset) const { return bytes_ + offset; }

 private:
  const std::byte* bytes_;
};

using Weights = std::span<float>;

float of(uint32_t value) {
  return static_cast<float>(value);
}
float of(int32_t value) {
  return static_cast<float>(value);
}

// Scale, 32 signed bytes.
void decode_q8_0(const Block& b, Weights out) {
  const float d = b.half(0);
  for (size_t i = 0; i < 32; ++i) out[i] = d * of(b.signed_byte(2 + i));
}

// Scale, 32 values of 4 bits that stand for themselves minus 8.
void decode_q4_0(const Block& b, Weights out) {
  const float d = b.half(0);
  for (size_t i = 0; i < 32; ++i) out[i] = d * of(static_cast<int32_t>(b.nibble(2, i)) - 8);
}

// Scale, minimum, 32 values of 4 bits.
void decode_q4_1(const Block& b, Weights out) {
  const float d = b.half(0), m = b.half(2);
  for (size_t i = 0; i < 32; ++i) out[i] = d * of(b.nibble(4, i)) + m;
}

// Scale, the fifth bits of 32 values, their lower 4 bits; minus 16.
void decode_q5_0(const Block& b, Weights out) {
  const float d = b.half(0);
  const uint32_t high = b.word(2, 4);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t value = b.nibble(6, i) | (high >> i & 1u) << 4u;
    out[i] = d * of(static_cast<int32_t>(value) - 16);
  }
}

// The same with a minimum.
void decode_q5_1(const Block& b, Weights out) {
  const float d = b.half(0), m = b.half(2);
  const uint32_t high = b.word(4, 4);
  for (size_t i = 0; i < 32; ++i) {
    out[i] = d * of(b.nibble(8, i) | (high >> i & 1u) << 4u) + m;
  }
}

// 16 bytes of scale (lower bits) and minimum of 16 weights each, 64 bytes of 2-bit values, the
// scales of both. Weights 128 h + 32 s + r are bits 2 s of byte 32 h + r.
void decode_q2_k(const Block& b, Weights out) {
  const float d = b.half(80), dmin = b.half(82);
  for (size_t i = 0; i < 256; ++i) {
    const uint32_t scale = b.byte(i / 16);
    const uint32_t value = b.byte(16 + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3u;
    out[i] = d * of(scale & 15u) * of(value) - dmin * of(scale >> 4u);
  }
}

// 32 bytes of third bits, 64 bytes of 2-bit values as above, 16 scales of 6 bits minus 32. A third
// bit that is not set takes 4 off.
void decode_q3_k(const Block& b, Weights out) {
  const float d = b.half(108);
  for (size_t i = 0; i < 256; ++i) {
    const size_t s = i / 16;
    const uint32_t low = s < 8 ? b.byte(96 + s) & 15u : b.byte(96 + s - 8) >> 4u;
    const uint32_t high = b.byte(104 + s % 4) >> (s / 4 * 2) & 3u;
    const int32_t scale = static_cast<int32_t>(low | high << 4u) - 32;
    const uint32_t value = b.byte(32 + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3u;
    const bool third = (b.byte(i % 32) >> (i / 32) & 1u) != 0;
    out[i] = d * of(scale) * of(static_cast<int32_t>(value) - (third ? 0 : 4));
  }
}

struct ScaleAndMinimum {
  uint32_t scale;
  uint32_t minimum;
};

// Scale and minimum of 6 bits each of weights [32 s, 32 s + 32), in 12 bytes from `at` on: the
// lower 6 bits of 8 bytes are those of the first four; the others are in the last 4 bytes, with
// their upper bits above the first.
ScaleAndMinimum packed_scale(const Block& b, size_t at, size_t s) {
  if (s < 4) return {b.byte(at + s) & 63u, b.byte(at + 4 + s) & 63u};
  const uint32_t low = b.byte(at + 4 + s);
  return {(low & 15u) | (b.byte(at + s - 4) >> 6u) << 4u, low >> 4u | (b.byte(at + s) >> 6u) << 4u};
}

// Scales of scales and of minima, 12 bytes of them, 128 bytes of 4-bit values: weights 64 h + r and
// 64 h + 32 + r are the two of byte 32 h + r.
void decode_q4_k(const Block& b, Weights out) {
  const float d = b.half(0), dmin = b.half(2);
  for (size_t i = 0; i < 256; ++i) {
    const ScaleAndMinimum s = packed_scale(b, 4, i / 32);
    const uint32_t value = b.byte(16 + i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4) & 15u;
    out[i] = d * of(s.scale) * of(value) - dmin * of(s.minimum);
  }
}

// The same with 32 bytes of fifth bits in front of the values.
void decode_q5_k(const Block& b, Weights out) {
  const float d = b.half(0), dmin = b.half(2);
  for (size_t i = 0; i < 256; ++i) {
    const ScaleAndMinimum s = packed_scale(b, 4, i / 32);
    const uint32_t low = b.byte(48 + i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4) & 15u;
    const uint32_t value = low | (b.byte(16 + i % 32) >> (i / 32) & 1u) << 4u;
    out[i] = d * of(s.scale) * of(value) - dmin * of(s.minimum);
  }
}

// 128 bytes of lower 4 bits, 64 of upper 2, 16 signed scales, their scale; minus 32.
void decode_q6_k(const Block& b, Weights out) {
  const float d = b.half(208);
  for (size_t i = 0; i < 256; ++i) {
    const uint32_t low = b.byte(i / 128 * 64 + i % 64) >> (i % 128 / 64 * 4) & 15u;
    const uint32_t high = b.byte(128 + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3u;
    const int32_t value = static_cast<int32_t>(low | high << 4u) - 32;
    out[i] = d * of(b.signed_byte(192 + i / 16)) * of(value);
  }
}

void decode_iq4_nl(const Block& b, Weights out) {
  const float d = b.half(0);
  for (size_t i = 0; i < 32; ++i) out[i] = d * of(int32_t{kNonLinear[b.nibble(2, i)]});
}

// A scale, upper 2 and lower 4 bits of 8 scales minus 32, then IQ4_NL's codes.
void decode_iq4_xs(const Block& b, Weights out) {
  const float d = b.half(0);
  const uint32_t high = b.word(2, 2);
  for (size_t s = 0; s < 8; ++s) {
    const uint32_t low = b.byte(4 + s / 2) >> (s % 2 * 4) & 15u;
    const int32_t scale = static_cast<int32_t>(low | (high >> (2 * s) & 3u) << 4u) - 32;
    for (size_t i = 0; i < 32; ++i) {
      out[32 * s + i] = d * of(scale) * of(int32_t{kNonLinear[b.nibble(8 + 16 * s, i)]});
    }
  }
}

// The exponent of a power of 2, plus 127, then 32 codes of E2M1.
void decode_mxfp4(const Block& b, Weights out) {
  const uint32_t exponent = b.byte(0);
  float half_scale = std::ldexp(1.0f, static_cast<int>(exponent) - 128);
  if (exponent == 255) half_scale = std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < 32; ++i) {
    out[i] = half_scale * of(int32_t{kDoubledE2m1[ggml_mxfp4_code(b.at(1), i)]});
  }
}

using Decoder = void (*)(const Block&, Weights);

Decoder decoder_of(GgmlType type) {
  switch (type) {
    case GgmlType::kQ8_0:
      return decode_q8_0;
    case GgmlType::kQ4_0:
      return decode_q4_0;
    case GgmlType::kQ4_1:
      return decode_q4_1;
    case GgmlType::kQ5_0:
      return decode_q5_0;
    case GgmlType::kQ5_1:
      return decode_q5_1;
    case GgmlType::kQ2K:
      return decode_q2_k;
    case GgmlType::kQ3K:
      return decode_q3_k;
    case GgmlType::kQ4K:
      return decode_q4_k;
    case GgmlType::kQ5K:
      return decode_q5_k;
    case GgmlType::kQ6K:
      return decode_q6_k;
    case GgmlType::kIq4Nl:
      return decode_iq4_nl;
    case GgmlType::kIq4Xs:
      return decode_iq4_xs;
    case GgmlType::kMxfp4:
      return decode_mxfp4;
    default:
      return nullptr;
  }
}

float plain_weight(GgmlType type, const std::byte* at) {
  const Block b(at);
  if (type == GgmlType::kF16) return b.half(0);
  if (type == GgmlType::kBf16) return float_from_bfloat(static_cast<uint16_t>(b.word(0, 2)));
  if (type == GgmlType::kF64) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return static_cast<float>(value);
  }
  float value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

const GgmlTypeFacts* ggml_type_facts(uint32_t number) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const GgmlTypeFacts& f) { return f.number == number; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string ggml_type_names() {
  std::string names;
  for (const GgmlTypeFacts& facts : kTypes) {
    if (facts.readable) names += std::string(names.empty() ? "" : ", ") + facts.name;
  }
  return names;
}

DType ggml_dtype(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
      return DType::kF32;
    case GgmlType::kF16:
      return DType::kF16;
    case GgmlType::kBf16:
      return DType::kBF16;
    case GgmlType::kF64:
      return DType::kF64;
    default:
      return DType::kU8;
  }
}

void decode_ggml(GgmlType type, std::span<const std::byte> bytes, size_t first,
                 std::span<float> out) {
  const GgmlTypeFacts& facts = *ggml_type_facts(static_cast<uint32_t>(type));
  const Decoder decode = decoder_of(type);
  if (decode == nullptr) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = plain_weight(type, bytes.data() + (first + i) * facts.bytes);
    }
    return;
  }
  std::array<float, kLargestBlock> weights{};
  for (size_t done = 0; done < out.size();) {
    const size_t block = (first + done) / facts.weights, skipped = (first + done) % facts.weights;
    const size_t count = std::min<size_t>(facts.weights - skipped, out.size() - done);
    decode(Block(bytes.data() + block * facts.bytes), {weights.data(), facts.weights});
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(skipped), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

}  // namespace vkformer
