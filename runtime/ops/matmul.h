// matmul: the matrix product with everything fused to it.
//
//   a (..., M, K) x b (..., K, N) -> y (..., M, N)
//   y = act(alpha * op(a) op(b) + beta * c + bias)          c: (N), (M, N) or (..., M, N)
//   y = act(alpha * op(a) op(b) + bias) + beta * residual   as add_linear uses it
//   y_i = act(z_2i) * z_2i+1, z = alpha x W + bias          gated linear layers: y (..., N / 2)
//
// Accumulation is f32 on every tier. Leading (batch) axes broadcast as in NumPy. The right side is
// a tensor of the graph, or a weight packed at load (weights/pack.h) in one of the formats of
// base/matrix_format.h.
#pragma once

#include "base/matrix_format.h"
#include "ops/activation.h"
#include "ops/op.h"

namespace vkformer {

// Columns [first, first + n) of a packed weight, in a tensor of their own with their bias.
struct LinearSlice {
  TensorId tensor = kNoTensor;
  uint32_t first = 0;          // a multiple of kPanelColumns
  uint32_t n = 0;              // columns
  uint32_t bias_offset = ~0u;  // in 32-bit words; ~0 = no bias
};

// A packed weight: panels of kPanelColumns columns (params/matmul.h), each (K, kPanelColumns)
// row-major, then N bias values in f32 where there is a bias. All in one binding.
struct LinearWeight {
  TensorId tensor = kNoTensor;
  uint32_t n = 0;              // N, output features
  uint32_t k = 0;              // K, input features
  uint32_t bias_offset = ~0u;  // in 32-bit words; ~0 = no bias
  MatrixFormat format = MatrixFormat::kF32;
  // A matrix too large for one binding: its columns by slice, the first of which is `tensor`. Empty
  // where that is all of it.
  std::vector<LinearSlice> slices = {};
};

// Its slices; one where it is not sliced.
std::vector<LinearSlice> slices_of(const LinearWeight& weight);

struct MatmulAttrs {
  bool trans_a = false;  // the last two axes of a are swapped: a (..., K, M)
  bool trans_b = false;  // b (..., N, K)
  float alpha = 1.0f;
  float beta = 1.0f;  // of c; ignored without c
  ActivationKind activation = ActivationKind::kNone;
  // c is added after the activation (a residual) instead of before it.
  enum class Addend : uint8_t { kBefore, kAfter } addend = Addend::kBefore;
  // Packed weights only, without c: columns are pairs of a gate and what it lets through.
  enum class Gate : uint8_t { kNo, kPairs } gate = Gate::kNo;
};

struct LinearAttrs {
  float alpha = 1.0f;  // multiplies x W, not the bias
  ActivationKind activation = ActivationKind::kNone;
  TensorId residual = kNoTensor;  // (..., N), added after the activation
  // kPairs: SwiGLU and its kin (Shazeer, 2020, "GLU variants improve Transformer"), of a weight
  // whose columns 2i are the gates of columns 2i + 1; without a residual.
  MatmulAttrs::Gate gate = MatmulAttrs::Gate::kNo;
};

// The output's description, or why the inputs do not fit; c may be null.
Result<TensorDesc> check_matmul(const TensorDesc& a, const TensorDesc& b, const TensorDesc* c,
                                const MatmulAttrs& attrs);
Result<TensorDesc> check_linear(const TensorDesc& x, const LinearWeight& weight,
                                const TensorDesc* residual,
                                MatmulAttrs::Gate gate = MatmulAttrs::Gate::kNo);

// y = alpha op(a) op(b) + ..., both sides tensors of the graph; c may be kNoTensor.
Result<TensorId> add_matmul(Graph& graph, TensorId a, TensorId b, TensorId c,
                            const MatmulAttrs& attrs);
// y (..., N) = act(x (..., K) W + bias) + residual, W packed; of a gated layer (..., N / 2).
Result<TensorId> add_linear(Graph& graph, TensorId x, const LinearWeight& weight,
                            const LinearAttrs& attrs);
// The same into an existing tensor `y` (..., N).
Status add_linear_into(Graph& graph, TensorId x, const LinearWeight& weight,
                       const LinearAttrs& attrs, TensorId y);

Status lower_matmul(LowerContext& context, const Node& node);

}  // namespace vkformer
