// The types of tensors in GGUF files, and what their bytes stand for. They are blocks of 32 or 256
// weights along a row, as ggml defines them (https://github.com/ggml-org/ggml, docs/gguf.md).
//
// A type whose values vkformer does not read has no decoder; its sizes are known all the same, so
// that a message can name it.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/weight_block.h"
#include "vkformer/tensor.h"

namespace vkformer {

// The numbers are those of the file.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2K = 10,
  kQ3K = 11,
  kQ4K = 12,
  kQ5K = 13,
  kQ6K = 14,
  kIq4Nl = 20,
  kIq4Xs = 23,
  kF64 = 28,
  kBf16 = 30,
  kMxfp4 = 39,
};

struct GgmlTypeFacts {
  uint32_t number = 0;    // in the file
  const char* name = "";  // "Q4_K"
  uint32_t weights = 1;   // of a block, along a row
  uint32_t bytes = 0;     // of a block
  bool readable = false;  // vkformer decodes it
};

// What is known of the type of that number, or nullptr.
const GgmlTypeFacts* ggml_type_facts(uint32_t number);
// The names of all types that vkformer reads: "F32, F16, ...".
std::string ggml_type_names();

// The plain element type that the bytes already are (F32, F16, BF16, F64), or kU8 for blocks.
DType ggml_dtype(GgmlType type);

// The weights [first, first + out.size()) of a tensor whose rows are whole blocks, as f32. Each is
// the value that the file's numbers stand for, rounded once. Precondition: they are inside.
void decode_ggml(GgmlType type, std::span<const std::byte> bytes, size_t first,
                 std::span<float> out);

// The format of a type in blocks; kF32 of plain types.
MatrixFormat ggml_format(GgmlType type);

// The weights [first, first + 32) of a tensor as a block of that format. Precondition: it is in
// blocks, and `first` is a multiple of 32.
WeightBlock ggml_block(GgmlType type, std::span<const std::byte> bytes, size_t first);

// An MXFP4 block: its exponent plus 127, and its codes. An exponent of 255 is no number.
WeightBlock mxfp4_block(uint8_t exponent, const std::array<uint8_t, kBlockSteps>& codes);

}  // namespace vkformer
