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

// The bytes of one block.
class Block {
 public:
  explicit Block(const std::byte* bytes) : bytes_(bytes) {}
  int32_t byte(size_t at) const { return static_cast<int32_t>(bytes_[at]); }
  int32_t signed_byte(size_t at) const { return static_cast<int8_t>(bytes_[at]); }
  float half(size_t at) const { return float_from_half(static_cast<uint16_t>(word(at, 2))); }
  // `count` bytes, the lowest first.
  uint32_t word(size_t at, size_t count) const {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= static_cast<uint32_t>(byte(at + i)) << (8 * i);
    return value;
  }
  // The 4 bits of weight i among 32: the lower ones of 16 bytes are the first 16 weights.
  int32_t nibble(size_t at, size_t i) const {
    return i < 16 ? byte(at + i) & 15 : byte(at + i - 16) >> 4;
  }
  int32_t bit(size_t at, size_t i) const { return byte(at + i / 8) >> (i % 8) & 1; }

 private:
  const std::byte* bytes_;
};

// What follows reads weights 32 `part` to 32 `part` + 31 of a block.

// Scale, 32 signed bytes.
void read_q8_0(const Block& b, size_t /*part*/, WeightBlock& out) {
  out.scale = b.half(0);
  for (size_t i = 0; i < 32; ++i) out.values[i] = b.signed_byte(2 + i);
}

// Scale, 32 values of 4 bits that stand for themselves minus 8.
void read_q4_0(const Block& b, size_t /*part*/, WeightBlock& out) {
  out.scale = b.half(0);
  out.minimum = -8 * out.scale;
  for (size_t i = 0; i < 32; ++i) out.values[i] = b.nibble(2, i);
}

// Scale, minimum, 32 values of 4 bits.
void read_q4_1(const Block& b, size_t /*part*/, WeightBlock& out) {
  out.scale = b.half(0);
  out.minimum = b.half(2);
  for (size_t i = 0; i < 32; ++i) out.values[i] = b.nibble(4, i);
}

// Scale, the fifth bits of 32 values, their lower 4 bits; minus 16.
void read_q5_0(const Block& b, size_t /*part*/, WeightBlock& out) {
  out.scale = b.half(0);
  out.minimum = -16 * out.scale;
  for (size_t i = 0; i < 32; ++i) out.values[i] = b.nibble(6, i) | b.bit(2, i) << 4;
}

// The same with a minimum.
void read_q5_1(const Block& b, size_t /*part*/, WeightBlock& out) {
  out.scale = b.half(0);
  out.minimum = b.half(2);
  for (size_t i = 0; i < 32; ++i) out.values[i] = b.nibble(8, i) | b.bit(4, i) << 4;
}

// 16 bytes of scale (lower bits) and minimum of 16 weights each, 64 bytes of 2-bit values, the
// scales of both. Weights 128 h + 32 s + r are bits 2 s of byte 32 h + r.
void read_q2_k(const Block& b, size_t part, WeightBlock& out) {
  out.scale = b.half(80);
  out.minimum = b.half(82);
  for (size_t h = 0; h < 2; ++h) {
    out.parts[h] = b.byte(2 * part + h) & 15;
    out.minimum_parts[h] = b.byte(2 * part + h) >> 4;
  }
  for (size_t i = 0; i < 32; ++i) {
    out.values[i] = b.byte(16 + part / 4 * 32 + i) >> (part % 4 * 2) & 3;
  }
}

// 32 bytes of third bits, 64 bytes of 2-bit values as above, 16 scales of 6 bits minus 32. A third
// bit that is not set takes 4 off.
void read_q3_k(const Block& b, size_t part, WeightBlock& out) {
  out.scale = b.half(108);
  for (size_t h = 0; h < 2; ++h) {
    const size_t s = 2 * part + h;
    const int32_t low = s < 8 ? b.byte(96 + s) & 15 : b.byte(96 + s - 8) >> 4;
    const int32_t high = b.byte(104 + s % 4) >> (s / 4 * 2) & 3;
    out.parts[h] = (low | high << 4) - 32;
  }
  for (size_t i = 0; i < 32; ++i) {
    const int32_t value = b.byte(32 + part / 4 * 32 + i) >> (part % 4 * 2) & 3;
    const bool third = (b.byte(i) >> part & 1) != 0;
    out.values[i] = value + (third ? 4 : 0);
  }
}

// Scale and minimum of 6 bits each, in 12 bytes from `at` on. The lower 6 bits of 8 bytes are those
// of the first four parts. The others are in the last 4 bytes, with their upper bits above the
// first.
void read_packed_scale(const Block& b, size_t at, size_t part, WeightBlock& out) {
  int32_t scale = b.byte(at + part) & 63, minimum = b.byte(at + 4 + part) & 63;
  if (part >= 4) {
    const int32_t low = b.byte(at + 4 + part);
    scale = (low & 15) | (b.byte(at + part - 4) >> 6) << 4;
    minimum = low >> 4 | (b.byte(at + part) >> 6) << 4;
  }
  out.parts = {scale, scale};
  out.minimum_parts = {minimum, minimum};
}

// Scales of scales and of minima, 12 bytes of them, 128 bytes of 4-bit values. Weights 64 h + r and
// 64 h + 32 + r are the two of byte 32 h + r.
void read_q4_k(const Block& b, size_t part, WeightBlock& out) {
  out.scale = b.half(0);
  out.minimum = b.half(2);
  read_packed_scale(b, 4, part, out);
  for (size_t i = 0; i < 32; ++i) {
    out.values[i] = b.byte(16 + part / 2 * 32 + i) >> (part % 2 * 4) & 15;
  }
}

// The same with 32 bytes of fifth bits before the values.
void read_q5_k(const Block& b, size_t part, WeightBlock& out) {
  out.scale = b.half(0);
  out.minimum = b.half(2);
  read_packed_scale(b, 4, part, out);
  for (size_t i = 0; i < 32; ++i) {
    const int32_t low = b.byte(48 + part / 2 * 32 + i) >> (part % 2 * 4) & 15;
    out.values[i] = low | (b.byte(16 + i) >> part & 1) << 4;
  }
}

// 128 bytes of lower 4 bits, 64 of upper 2, 16 signed scales, their scale; minus 32.
void read_q6_k(const Block& b, size_t part, WeightBlock& out) {
  out.scale = b.half(208);
  out.parts = {b.signed_byte(192 + 2 * part), b.signed_byte(192 + 2 * part + 1)};
  for (size_t i = 0; i < 32; ++i) {
    const int32_t low = b.byte(part / 4 * 64 + part % 2 * 32 + i) >> (part % 4 / 2 * 4) & 15;
    const int32_t high = b.byte(128 + part / 4 * 32 + i) >> (part % 4 * 2) & 3;
    out.values[i] = low | high << 4;
  }
}

void read_iq4_nl(const Block& b, size_t /*part*/, WeightBlock& out) {
  out.scale = b.half(0);
  for (size_t i = 0; i < 32; ++i) out.values[i] = b.nibble(2, i);
}

// A scale, upper 2 and lower 4 bits of 8 scales minus 32, then IQ4_NL's codes.
void read_iq4_xs(const Block& b, size_t part, WeightBlock& out) {
  out.scale = b.half(0);
  const int32_t low = b.byte(4 + part / 2) >> (part % 2 * 4) & 15;
  const int32_t high = b.byte(2 + part / 4) >> (part % 4 * 2) & 3;
  const int32_t scale = (low | high << 4) - 32;
  out.parts = {scale, scale};
  for (size_t i = 0; i < 32; ++i) out.values[i] = b.nibble(8 + 16 * part, i);
}

// The exponent of a power of 2, plus 127, then 32 codes of E2M1.
void read_mxfp4(const Block& b, size_t /*part*/, WeightBlock& out) {
  std::array<uint8_t, kBlockSteps> codes{};
  for (size_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(b.nibble(1, i));
  out = mxfp4_block(static_cast<uint8_t>(b.byte(0)), codes);
}

// Reads 32 weights of a block.
using Reader = void (*)(const Block&, size_t part, WeightBlock&);

struct TypeReader {
  GgmlType type;
  Reader read;
  MatrixFormat format;  // which holds every weight exactly
};
constexpr TypeReader kReaders[] = {
    {GgmlType::kQ8_0, read_q8_0, MatrixFormat::kQ8_0},
    {GgmlType::kQ4_0, read_q4_0, MatrixFormat::kQ4_0},
    {GgmlType::kQ4_1, read_q4_1, MatrixFormat::kQ4_1},
    {GgmlType::kQ5_0, read_q5_0, MatrixFormat::kQ5_0},
    {GgmlType::kQ5_1, read_q5_1, MatrixFormat::kQ5_1},
    {GgmlType::kQ2K, read_q2_k, MatrixFormat::kQ2K},
    {GgmlType::kQ3K, read_q3_k, MatrixFormat::kQ3K},
    {GgmlType::kQ4K, read_q4_k, MatrixFormat::kQ4K},
    {GgmlType::kQ5K, read_q5_k, MatrixFormat::kQ5K},
    {GgmlType::kQ6K, read_q6_k, MatrixFormat::kQ6K},
    {GgmlType::kIq4Nl, read_iq4_nl, MatrixFormat::kIq4Nl},
    {GgmlType::kIq4Xs, read_iq4_xs, MatrixFormat::kIq4Xs},
    {GgmlType::kMxfp4, read_mxfp4, MatrixFormat::kMxfp4},
};

// Null of plain types.
const TypeReader* reader_of(GgmlType type) {
  const auto found = std::find_if(std::begin(kReaders), std::end(kReaders),
                                  [&](const TypeReader& one) { return one.type == type; });
  return found == std::end(kReaders) ? nullptr : found;
}

void decode_block(const TypeReader& reader, const Block& block, std::span<float> out) {
  for (size_t part = 0; part < out.size() / kBlockSteps; ++part) {
    WeightBlock weights;
    reader.read(block, part, weights);
    for (size_t i = 0; i < kBlockSteps; ++i) {
      out[part * kBlockSteps + i] = block_weight(weights, i, reader.format);
    }
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
  const TypeReader* reader = reader_of(type);
  if (reader == nullptr) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = plain_weight(type, bytes.data() + (first + i) * facts.bytes);
    }
    return;
  }
  std::array<float, kLargestBlock> weights{};
  for (size_t done = 0; done < out.size();) {
    const size_t block = (first + done) / facts.weights, skipped = (first + done) % facts.weights;
    const size_t count = std::min<size_t>(facts.weights - skipped, out.size() - done);
    decode_block(*reader, Block(bytes.data() + block * facts.bytes),
                 {weights.data(), facts.weights});
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(skipped), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

MatrixFormat ggml_format(GgmlType type) {
  const TypeReader* reader = reader_of(type);
  return reader == nullptr ? MatrixFormat::kF32 : reader->format;
}

WeightBlock ggml_block(GgmlType type, std::span<const std::byte> bytes, size_t first) {
  const GgmlTypeFacts& facts = *ggml_type_facts(static_cast<uint32_t>(type));
  WeightBlock block;
  reader_of(type)->read(Block(bytes.data() + first / facts.weights * facts.bytes),
                        first % facts.weights / kBlockSteps, block);
  return block;
}

WeightBlock mxfp4_block(uint8_t exponent, const std::array<uint8_t, kBlockSteps>& codes) {
  WeightBlock block{.scale = std::ldexp(1.0f, exponent - 128)};
  if (exponent == 255) block.scale = std::numeric_limits<float>::quiet_NaN();
  std::copy(codes.begin(), codes.end(), block.values.begin());
  return block;
}

}  // namespace vkformer
