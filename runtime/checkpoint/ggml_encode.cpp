#include "checkpoint/ggml_encode.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/message.h"

namespace vkformer {
namespace {

constexpr size_t kBlockWeights = 32;
constexpr uint16_t kHalfInfinity = 0x7c00;

using Weights32 = std::span<const float>;

void store_half(std::byte* to, uint16_t bits) {
  std::memcpy(to, &bits, sizeof bits);
}

// 1 / d, or 0 of a block whose weights are all alike.
float inverse(float d) {
  return d != 0.0f ? 1.0f / d : 0.0f;
}

// A value of 4 bits: truncated, since half a step was added, and never above 15.
std::byte nibble(float value) {
  return static_cast<std::byte>(std::min(15, static_cast<int>(value)));
}

// The first 16 weights are the lower bits of 16 bytes.
template <class Code>
void store_nibbles(Weights32 weights, std::byte* to, Code code) {
  for (size_t i = 0; i < kBlockWeights / 2; ++i) {
    to[i] = nibble(code(weights[i])) | nibble(code(weights[i + kBlockWeights / 2])) << 4;
  }
}

void encode_q8_0(Weights32 weights, std::byte* to) {
  float most = 0.0f;
  for (const float w : weights) most = std::max(most, std::abs(w));
  const float d = most / 127.0f, inv = inverse(d);
  store_half(to, half_from_float(d));
  for (size_t i = 0; i < kBlockWeights; ++i) {
    to[2 + i] = static_cast<std::byte>(static_cast<int8_t>(std::round(weights[i] * inv)));
  }
}

// The weight that is farthest from 0 becomes the value -8.
void encode_q4_0(Weights32 weights, std::byte* to) {
  float most = 0.0f, farthest = 0.0f;
  for (const float w : weights) {
    if (std::abs(w) <= most) continue;
    most = std::abs(w);
    farthest = w;
  }
  const float d = farthest / -8.0f, inv = inverse(d);
  store_half(to, half_from_float(d));
  store_nibbles(weights, to + 2, [&](float w) { return w * inv + 8.5f; });
}

void encode_q4_1(Weights32 weights, std::byte* to) {
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  const float d = (*most - *least) / 15.0f, inv = inverse(d), minimum = *least;
  store_half(to, half_from_float(d));
  store_half(to + 2, half_from_float(minimum));
  store_nibbles(weights, to + 4, [&](float w) { return (w - minimum) * inv + 0.5f; });
}

using Encoder = void (*)(Weights32 weights, std::byte* to);

Encoder encoder_of(GgmlType type) {
  switch (type) {
    case GgmlType::kQ8_0:
      return encode_q8_0;
    case GgmlType::kQ4_0:
      return encode_q4_0;
    case GgmlType::kQ4_1:
      return encode_q4_1;
    default:
      return nullptr;
  }
}

// Whether the halves at the beginning of a block hold its scale and minimum.
bool holds_scales(GgmlType type, const std::byte* block) {
  const size_t halves = type == GgmlType::kQ4_1 ? 2 : 1;
  for (size_t i = 0; i < halves; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, block + 2 * i, sizeof bits);
    if ((bits & kHalfInfinity) == kHalfInfinity) return false;
  }
  return true;
}

}  // namespace

Error ggml_cannot_hold(GgmlType type, const std::string& name, float weight) {
  return unsupported(message({"[", name, "] holds ", weight, " near what ",
                              ggml_type_facts(static_cast<uint32_t>(type))->name,
                              " cannot store; choose bf16 or f32."}));
}

bool encodes_ggml(GgmlType type) {
  return type == GgmlType::kF32 || type == GgmlType::kF16 || type == GgmlType::kBf16 ||
         encoder_of(type) != nullptr;
}

Status encode_ggml(GgmlType type, const std::string& name, std::span<const float> weights,
                   std::span<std::byte> out) {
  if (type == GgmlType::kF32) {
    if (!weights.empty()) std::memcpy(out.data(), weights.data(), weights.size_bytes());
    return {};
  }
  if (type == GgmlType::kF16 || type == GgmlType::kBf16) {
    for (size_t i = 0; i < weights.size(); ++i) {
      const bool half = type == GgmlType::kF16;
      const uint16_t bits = half ? half_from_float(weights[i]) : bfloat_from_float(weights[i]);
      if (half && (bits & 0x7fffu) == kHalfInfinity && std::isfinite(weights[i])) {
        return ggml_cannot_hold(type, name, weights[i]);
      }
      store_half(out.data() + 2 * i, bits);
    }
    return {};
  }
  const Encoder encode = encoder_of(type);
  const size_t bytes = ggml_type_facts(static_cast<uint32_t>(type))->bytes;
  for (size_t block = 0; block * kBlockWeights < weights.size(); ++block) {
    const Weights32 some = weights.subspan(block * kBlockWeights, kBlockWeights);
    // Codes of numbers that are not finite have no value in the language.
    const auto odd =
        std::find_if(some.begin(), some.end(), [](float w) { return !std::isfinite(w); });
    if (odd != some.end()) return ggml_cannot_hold(type, name, *odd);
    std::byte* to = out.data() + block * bytes;
    encode(some, to);
    if (!holds_scales(type, to)) return ggml_cannot_hold(type, name, some[0]);
  }
  return {};
}

}  // namespace vkformer
