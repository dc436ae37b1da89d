// What checks are filled with: the same numbers on every machine, exact in f32.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "conformance/check.h"

namespace vkformer::conformance {

// SplitMix64 (Steele, Lea and Flood, 2014); standard distributions differ between libraries.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t bits();
  double uniform();               // [0, 1)
  double normal();                // sum of twelve uniform ones, less 6: mean 0, variance 1
  int64_t below(int64_t count) {  // 0 ... count - 1
    return static_cast<int64_t>(uniform() * static_cast<double>(count));
  }

 private:
  uint64_t state_;
};

// Kinds of content. kWide: up to 10^5, beyond what f16 holds. kTiny: denormals and near. kSpecial:
// NaN, infinities and zeros of both signs among normal ones.
enum class Content : uint8_t { kNormal, kWide, kTiny, kSpecial };
const char* content_name(Content content);
Array random_array(const Shape& shape, uint64_t seed, Content content = Content::kNormal);
Array scaled(Array array, double factor);
// Two rows (D), one below the other: (2, D), as norms take gain and bias.
Array stacked_rows(Array first, const Array& second);
// The same with ties everywhere: 16 values only, where they are small.
Array with_ties(Array array);
// Whole numbers below `count`.
Array random_ids(const Shape& shape, uint64_t seed, int64_t count);
// 0 or 1, about `share` of them 1.
Array random_mask(const Shape& shape, uint64_t seed, double share = 0.6);
// The largest finite magnitude, at least 1.
double magnitude_of(const Array& array);

Tensor floats(const Array& array);
Tensor integers(const Array& array);               // I64
Tensor mask_bytes(const Array& array);             // U8
Tensor words(const std::vector<uint32_t>& words);  // (count), U32

// "2x3x33"
std::string size_text(const Shape& shape);

// What a check expects where nothing may be written: the poison.
inline constexpr double kUntouched = std::numeric_limits<double>::quiet_NaN();
// Of a sum of `terms` products of normal numbers: the order of the root.
double magnitude_of_sum(int64_t terms, Content content);

// An operator by name with its outputs, by docs/operators.md.
struct Call {
  std::string name;
  std::string attributes = "{}";
  TensorMap inputs = {};
  WeightFormat weights = WeightFormat::kF32;
};
Result<CheckCase> call_case(const Call& call, std::map<std::string, Expected> expected);

// The F32 row for sums of `count` terms.
inline Tolerance terms(int64_t count) {
  return reference::tolerance_for(DType::kF32, count);
}

}  // namespace vkformer::conformance
