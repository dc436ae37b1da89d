// Quantized matrices in safetensors files, as `vkformer quantize` writes them.
//
// The matrix X (N, K) is up to three tensors; K is cut into blocks of 32, the last one shorter:
//   X          I8 (N, K) values of q8; or U8 (N, K / 2) values of q4 and q4m, of an even K, the
//              first of two in the lower 4 bits
//   X.scales   BF16 (N, ceil(K / 32))
//   X.minima   BF16 (N, ceil(K / 32)), in q4m only
// A weight is scale * value in q8, scale * (value - 8) in q4, minimum + scale * value in q4m. Where
// the file's matrix is (K, N), so are these: (K, N) or (K / 2, N), and (ceil(K / 32), N).
//
// Matrices in MXFP4 (Open Compute Project, 2023, "OCP microscaling formats"), as GPT-OSS publishes
// its experts, are two tensors, and together X (..., K) in row-major order:
//   X_blocks   U8 (..., K / 32, 16): E2M1 values, the first of two in the lower 4 bits
//   X_scales   U8 (..., K / 32): the exponents of powers of 2, plus 127
//
// Matrices that other libraries quantized are joined in coded_tensors.h.
//
// Matrices of a GGUF file keep its blocks (ggml_types.h).
//
// Lifetime: views of the file's bytes.
#pragma once

#include <optional>

#include "base/matrix_format.h"
#include "checkpoint/coded_matrix.h"
#include "checkpoint/ggml_types.h"
#include "checkpoint/safetensors.h"

namespace vkformer {

// What a quantized TensorView's values are multiplied with.
struct QuantizedBlocks {
  MatrixFormat format = MatrixFormat::kQ8;
  bool blocks_down = false;           // the matrix is (K, N)
  bool mxfp4 = false;                 // values and scales are MXFP4's, of no GGUF file
  std::optional<GgmlType> ggml = {};  // the view's bytes are blocks of that type, scales included
  std::shared_ptr<const CodedMatrix> coded = {};  // of another library, which then has it all
  std::span<const std::byte> scales;  // (N, ceil(K / 32)) or (ceil(K / 32), N), bfloat16
  std::span<const std::byte> minima;  // the same; of q4m only
};

// A view and its blocks, which stay where they are when the map that holds them moves.
struct QuantizedTensor {
  QuantizedBlocks blocks;
  TensorView view;
};

// Names of the tensors that belong to matrix `name`.
std::string scales_name(const std::string& name);
std::string minima_name(const std::string& name);

// The matrix that values and scales, and in q4m minima, are together. An error names it and says
// what does not fit.
Result<QuantizedTensor> join_blocks(const std::string& name, const TensorView& values,
                                    const TensorView& scales, const TensorView* minima);

// Names of the tensors of an MXFP4 matrix, and the matrix (..., K) that they are.
std::string mxfp4_blocks_name(const std::string& name);
std::string mxfp4_scales_name(const std::string& name);
Result<QuantizedTensor> join_mxfp4(const std::string& name, const TensorView& blocks,
                                   const TensorView& scales);

// Sizes of a quantized (N, K), or (K, N), matrix; of MXFP4 N are all rows of length K.
struct QuantizedSize {
  size_t n = 0;
  size_t k = 0;
};
QuantizedSize quantized_size(const TensorView& view);

// The weights of output feature n from input feature `first` on, as a block of the view's format.
// What is beyond the last one stands for nothing. Precondition: view.blocks is set, its format
// is_quantized(), `first` a multiple of 32 and inside.
WeightBlock quantized_block(const TensorView& view, size_t n, size_t first);

// Element `index` of the matrix, row-major.
float quantized_element(const TensorView& view, size_t index);
// Elements [first, first + out.size()) of a matrix of a GGUF file or of another library.
void quantized_elements(const TensorView& view, size_t first, std::span<float> out);
// Is the matrix one that quantized_elements decodes?
bool decodes_rows(const TensorView& view);

// A matrix of another library, of the shape (..., N, K).
QuantizedTensor join_coded(std::shared_ptr<const CodedMatrix> matrix, Shape shape,
                           const TensorView& codes);
// The matrix of that shape whose blocks and exponents are MXFP4 in row-major order.
QuantizedTensor mxfp4_of_shape(Shape shape, const TensorView& codes, const TensorView& scales);

// A tensor of a GGUF file: the shape's last axis is whole blocks.
QuantizedTensor join_ggml(GgmlType type, Shape shape, std::span<const std::byte> bytes);

}  // namespace vkformer
