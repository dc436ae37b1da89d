// Matrices that other libraries store as codes of few bits and their scales: GPTQ, AWQ,
// compressed-tensors, bitsandbytes, FP8. quantization_method.h lists the methods, coded_tensors.h
// finds the tensors of a matrix.
//
// A matrix is (N, K) in row-major order: N output features of K input features. Leading axes of
// stacked experts count as rows.
//
// Threading: immutable.
// Lifetime: views of the file's bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/matrix_format.h"
#include "checkpoint/safetensors.h"

namespace vkformer {

// A quantized weight is minimum + scale * value.
struct QuantizedValue {
  int32_t value = 0;
  float scale = 0;
  float minimum = 0;
};

class CodedMatrix {
 public:
  virtual ~CodedMatrix() = default;

  // Weights [first, first + out.size()) of row n, each rounded once to f32. Precondition: inside.
  virtual void read(size_t n, size_t first, std::span<float> out) const = 0;
  // The format of vkformer that holds every weight exactly; kF32 where no smaller one does.
  virtual MatrixFormat exact_format() const { return MatrixFormat::kF32; }
  // The weight in that format. Precondition: it is kQ8, kQ4, kQ8_0 or kQ4_0.
  virtual QuantizedValue value(size_t n, size_t k) const;

  // Whether its axes are those that the model's own file has for the tensor; else it is (N, K).
  virtual bool follows_file() const { return false; }

  size_t k() const { return k_; }
  // What the method calls it: "GPTQ 4 bits".
  const std::string& name() const { return name_; }
  // Of all tensors that it is made of.
  uint64_t bytes() const { return bytes_; }

 protected:
  CodedMatrix(std::string name, size_t k, uint64_t bytes)
      : name_(std::move(name)), k_(k), bytes_(bytes) {}

 private:
  std::string name_;
  size_t k_ = 0;
  uint64_t bytes_ = 0;
};

// Element `index` of F16, BF16, F32, F64 or 8-bit floats; U8 and F8_E8M0 are exponents of 2 plus
// 127. Precondition: is_scale(view), and it has that many elements.
double scale_element(const TensorView& view, size_t index);
bool is_scale(const TensorView& view);

// Scales over blocks of a matrix: one for `rows` rows and `columns` columns.
struct ScaleGrid {
  TensorView view;
  size_t rows = 1;           // N of a block
  size_t columns = 1;        // K of a block
  size_t row_stride = 0;     // elements from one block to the block of the next rows
  size_t column_stride = 0;  // elements from one block to the block of the next columns
  // Experts that lie one after the other: rows of each, and elements from one to the next.
  size_t matrix_rows = SIZE_MAX;
  size_t matrix_stride = 0;
  double divisor = 1;  // the tensor holds a multiple of the scales

  double at(size_t n, size_t column_block) const {
    const size_t own = n % matrix_rows;
    return scale_element(view, n / matrix_rows * matrix_stride + own / rows * row_stride +
                                   column_block * column_stride);
  }
};

// Unsigned numbers of few bits in 32-bit words: a line is a stream of bits, the lowest first.
struct PackedInts {
  std::span<const std::byte> words;
  size_t line_stride = 0;  // words from one line to the next
  size_t word_stride = 1;  // words from one word of a line to its next
  uint32_t bits = 4;
  // AWQ: numbers 0 to 7 of a word lie at its bits 0, 16, 4, 20, 8, 24, 12, 28.
  enum class Order : uint8_t { kInTurn, kAwq } order = Order::kInTurn;

  int32_t at(size_t line, size_t index) const;
};

// Weights (code - zero) * scale.
struct CodedIntegers {
  PackedInts codes;
  enum class Lines : uint8_t { kRows, kColumns } lines = Lines::kRows;  // of the codes: n, or k
  std::span<const std::byte> signed_codes;   // (N, K) signed bytes in place of `codes`; or empty
  std::optional<PackedInts> zeros;           // a line is a block of columns, its numbers are rows
  const TensorView* signed_zeros = nullptr;  // I8, as `scales`, in place of `zeros`; or null
  int32_t zero = 0;                          // added to all zeros
  ScaleGrid scales;
  std::vector<uint32_t> blocks;  // the block of every column; or empty: columns in turn
};
std::shared_ptr<const CodedMatrix> coded_integers(std::string name, size_t k, uint64_t bytes,
                                                  CodedIntegers integers);

// Weights table[code] * scale / divisor, of codes of 4 bits, two in a byte, or of 8.
struct CodedFloats {
  std::span<const std::byte> codes;
  std::vector<float> table;         // 16 or 256
  std::optional<ScaleGrid> scales;  // none: 1
};
std::shared_ptr<const CodedMatrix> coded_floats(std::string name, size_t k, uint64_t bytes,
                                                CodedFloats floats);

// What codes of 8-bit floats stand for. Precondition: kE4m3 or kE5m2.
std::vector<float> float8_table(Float8 type);
// The same of E2M1, 4 bits.
std::vector<float> float4_table();

// 4-bit codes of bitsandbytes, the first of two in the upper bits: table[code] * absmax of the
// block. Blocks are runs of the matrix's elements, whatever its rows.
struct CodedTable {
  std::span<const std::byte> codes;
  TensorView table;         // F32 (16)
  TensorView absmax;        // F32 (blocks), or U8 that index nested_table
  TensorView nested_table;  // F32 (256)
  TensorView nested;        // F32, the largest of every run of nested_block of them
  size_t block = 64;
  size_t nested_block = 256;
  double nested_offset = 0;
};
std::shared_ptr<const CodedMatrix> coded_table(std::string name, size_t k, uint64_t bytes,
                                               CodedTable table);

}  // namespace vkformer
