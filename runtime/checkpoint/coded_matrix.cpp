#include "checkpoint/coded_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"

namespace vkformer {
namespace {

template <class T>
T loaded(std::span<const std::byte> bytes, size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// A float of 8 bits: 1 sign bit, `exponent_bits`, and the rest.
float float8_value(uint32_t code, uint32_t exponent_bits) {
  const uint32_t fraction_bits = 7 - exponent_bits;
  const uint32_t fraction = code & ((1u << fraction_bits) - 1);
  const uint32_t exponent = code >> fraction_bits & ((1u << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const bool last = exponent == (1u << exponent_bits) - 1;
  const float sign = (code & 128u) != 0 ? -1.0f : 1.0f;
  // E5M2 has infinities as IEEE 754 has; E4M3 gives up all but one NaN for numbers.
  if (exponent_bits == 5 && last) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent_bits == 4 && last && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  const auto step = static_cast<int>(fraction_bits);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - bias - step);
  return sign * std::ldexp(static_cast<float>(fraction + (1u << fraction_bits)),
                           static_cast<int>(exponent) - bias - step);
}

double power_of_2(uint8_t biased) {
  if (biased == 255) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, biased - 127);
}

bool is_bfloat(double value) {
  const auto narrow = static_cast<float>(value);
  return std::isfinite(value) && double{narrow} == value &&
         double{float_from_bfloat(bfloat_from_float(narrow))} == value;
}

// The elements of a tensor of scales that its grid reaches are all of them.
template <class Test>
bool all_scales(const ScaleGrid& grid, Test test) {
  const auto count = static_cast<size_t>(element_count(grid.view.shape));
  for (size_t i = 0; i < count; ++i) {
    if (!test(scale_element(grid.view, i))) return false;
  }
  return true;
}

bool is_half(double value) {
  const auto narrow = static_cast<float>(value);
  return std::isfinite(value) && float_from_half(half_from_float(narrow)) == value;
}

// A power of 2 so far from the ends of f32's range that products with 8-bit floats stay normal.
bool is_moderate_power(double value) {
  int exponent = 0;
  return std::isfinite(value) && std::frexp(value, &exponent) == 0.5 && exponent > -90 &&
         exponent < 90;
}

class IntegerMatrix : public CodedMatrix {
 public:
  IntegerMatrix(std::string name, size_t k, uint64_t bytes, CodedIntegers integers)
      : CodedMatrix(std::move(name), k, bytes), integers_(std::move(integers)) {
    format_ = find_format();
  }

  void read(size_t n, size_t first, std::span<float> out) const override {
    const CodedIntegers& of = integers_;
    size_t known = SIZE_MAX;
    double scale = 0;
    int32_t zero = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t block = block_of(first + i);
      if (block != known) {
        scale = of.scales.at(n, block);
        zero = zero_of(n, block);
        known = block;
      }
      const double product = scale * double(code(n, first + i) - zero);
      out[i] = static_cast<float>(of.scales.divisor == 1 ? product : product / of.scales.divisor);
    }
  }

  MatrixFormat exact_format() const override { return format_; }

  QuantizedValue value(size_t n, size_t k) const override {
    const size_t block = block_of(k);
    QuantizedValue out{.scale = static_cast<float>(integers_.scales.at(n, block))};
    if (format_ == MatrixFormat::kQ4 || format_ == MatrixFormat::kQ4_0) {
      out.value = code(n, k);
      out.minimum = -8 * out.scale;
    } else {
      out.value = code(n, k) - zero_of(n, block);
    }
    return out;
  }

 private:
  size_t block_of(size_t k) const {
    return integers_.blocks.empty() ? k / integers_.scales.columns : integers_.blocks[k];
  }

  int32_t code(size_t n, size_t k) const {
    const CodedIntegers& of = integers_;
    if (!of.signed_codes.empty()) return loaded<int8_t>(of.signed_codes, n * this->k() + k);
    return of.lines == CodedIntegers::Lines::kRows ? of.codes.at(n, k) : of.codes.at(k, n);
  }

  int32_t zero_of(size_t n, size_t block) const {
    const CodedIntegers& of = integers_;
    if (of.zeros) return of.zero + of.zeros->at(block, n);
    if (of.signed_zeros == nullptr) return of.zero;
    const ScaleGrid& grid = of.scales;
    return of.zero + loaded<int8_t>(of.signed_zeros->bytes,
                                    n / grid.rows * grid.row_stride + block * grid.column_stride);
  }

  // Blocks of whole 32 columns in turn, and scales that bfloat16 holds, are those of q8 and q4.
  // With scales that halves hold they are those of q8_0 and q4_0.
  MatrixFormat find_format() const {
    const CodedIntegers& of = integers_;
    const bool whole = of.scales.columns % kBlockSteps == 0 || of.scales.columns >= k();
    if (!whole || !of.blocks.empty() || of.scales.divisor != 1) return MatrixFormat::kF32;
    const bool bfloats = all_scales(of.scales, is_bfloat);
    if (!bfloats && !all_scales(of.scales, is_half)) return MatrixFormat::kF32;
    const MatrixFormat bytes = bfloats ? MatrixFormat::kQ8 : MatrixFormat::kQ8_0;
    const bool constant = !of.zeros && of.signed_zeros == nullptr;
    if (!of.signed_codes.empty()) return constant ? bytes : MatrixFormat::kF32;
    if (of.codes.bits == 4 && constant && of.zero == 8) {
      return bfloats ? MatrixFormat::kQ4 : MatrixFormat::kQ4_0;
    }
    return of.codes.bits < 8 || (constant && of.zero == 128) ? bytes : MatrixFormat::kF32;
  }

  CodedIntegers integers_;
  MatrixFormat format_ = MatrixFormat::kF32;
};

class FloatMatrix : public CodedMatrix {
 public:
  FloatMatrix(std::string name, size_t k, uint64_t bytes, CodedFloats floats)
      : CodedMatrix(std::move(name), k, bytes), floats_(std::move(floats)) {
    const bool exact = floats_.table.size() == 256 &&
                       (!floats_.scales || (floats_.scales->divisor == 1 &&
                                            all_scales(*floats_.scales, is_moderate_power)));
    if (exact) format_ = MatrixFormat::kBF16;
  }

  void read(size_t n, size_t first, std::span<float> out) const override {
    size_t known = SIZE_MAX;
    double scale = 1;
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t at = first + i;
      if (floats_.scales && at / floats_.scales->columns != known) {
        known = at / floats_.scales->columns;
        scale = floats_.scales->at(n, known) / floats_.scales->divisor;
      }
      out[i] = static_cast<float>(scale * double{floats_.table[code(n * k() + at)]});
    }
  }

  MatrixFormat exact_format() const override { return format_; }

 private:
  size_t code(size_t index) const {
    if (floats_.table.size() == 256) return static_cast<uint8_t>(floats_.codes[index]);
    const auto byte = static_cast<uint8_t>(floats_.codes[index / 2]);
    return index % 2 == 0 ? byte & 15u : byte >> 4u;
  }

  CodedFloats floats_;
  MatrixFormat format_ = MatrixFormat::kF32;
};

class TableMatrix : public CodedMatrix {
 public:
  TableMatrix(std::string name, size_t k, uint64_t bytes, CodedTable table)
      : CodedMatrix(std::move(name), k, bytes), table_(std::move(table)) {}

  void read(size_t n, size_t first, std::span<float> out) const override {
    size_t known = SIZE_MAX;
    double largest = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t index = n * k() + first + i;
      if (index / table_.block != known) {
        known = index / table_.block;
        largest = absmax(known);
      }
      const auto byte = static_cast<uint8_t>(table_.codes[index / 2]);
      const size_t code = index % 2 == 0 ? byte >> 4u : byte & 15u;
      out[i] = static_cast<float>(largest * double{loaded<float>(table_.table.bytes, code)});
    }
  }

 private:
  double absmax(size_t block) const {
    if (table_.absmax.dtype == DType::kF32) return loaded<float>(table_.absmax.bytes, block);
    const auto code = loaded<uint8_t>(table_.absmax.bytes, block);
    return double{loaded<float>(table_.nested_table.bytes, code)} *
               double{loaded<float>(table_.nested.bytes, block / table_.nested_block)} +
           table_.nested_offset;
  }

  CodedTable table_;
};

}  // namespace

QuantizedValue CodedMatrix::value(size_t n, size_t k) const {
  QuantizedValue out{.value = 1};
  read(n, k, {&out.scale, 1});
  return out;
}

bool is_scale(const TensorView& view) {
  switch (view.dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
    case DType::kU8:
      return view.blocks == nullptr;
    default:
      return false;
  }
}

double scale_element(const TensorView& view, size_t index) {
  switch (view.dtype) {
    case DType::kF16:
      return float_from_half(loaded<uint16_t>(view.bytes, index));
    case DType::kBF16:
      return float_from_bfloat(loaded<uint16_t>(view.bytes, index));
    case DType::kF32:
      return loaded<float>(view.bytes, index);
    case DType::kF64:
      return loaded<double>(view.bytes, index);
    default:
      break;
  }
  const auto code = loaded<uint8_t>(view.bytes, index);
  if (view.float8 == Float8::kE4m3) return float8_value(code, 4);
  if (view.float8 == Float8::kE5m2) return float8_value(code, 5);
  return power_of_2(code);
}

int32_t PackedInts::at(size_t line, size_t index) const {
  const size_t base = line * line_stride;
  if (order == Order::kAwq) {
    constexpr uint32_t kPlaces[] = {0, 16, 4, 20, 8, 24, 12, 28};
    return static_cast<int32_t>(loaded<uint32_t>(words, base + index / 8) >> kPlaces[index % 8] &
                                15u);
  }
  const size_t bit = index * bits;
  const auto shift = static_cast<uint32_t>(bit % 32);
  const size_t word = base + bit / 32 * word_stride;
  uint64_t value = loaded<uint32_t>(words, word) >> shift;
  if (shift + bits > 32) {
    value |= uint64_t{loaded<uint32_t>(words, word + word_stride)} << (32 - shift);
  }
  return static_cast<int32_t>(value & ((1u << bits) - 1));
}

std::vector<float> float8_table(Float8 type) {
  std::vector<float> table;
  for (uint32_t code = 0; code < 256; ++code) {
    table.push_back(float8_value(code, type == Float8::kE5m2 ? 5 : 4));
  }
  return table;
}

std::vector<float> float4_table() {
  return {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
}

std::shared_ptr<const CodedMatrix> coded_integers(std::string name, size_t k, uint64_t bytes,
                                                  CodedIntegers integers) {
  return std::make_shared<IntegerMatrix>(std::move(name), k, bytes, std::move(integers));
}

std::shared_ptr<const CodedMatrix> coded_floats(std::string name, size_t k, uint64_t bytes,
                                                CodedFloats floats) {
  return std::make_shared<FloatMatrix>(std::move(name), k, bytes, std::move(floats));
}

std::shared_ptr<const CodedMatrix> coded_table(std::string name, size_t k, uint64_t bytes,
                                               CodedTable table) {
  return std::make_shared<TableMatrix>(std::move(name), k, bytes, std::move(table));
}

}  // namespace vkformer
