// matmul: the matrix product.
//
//   a (..., M, K) x b (..., K, N) -> y (..., M, N)
//   y = alpha * op(a) op(b) + beta * c + bias               c: (N), (M, N) or (..., M, N)
//
// Fusion (ops/fusion.h) puts what precedes and follows a product into its node:
//
//   y = act(alpha * op(a) op(b) + beta * c + bias)
//   y = act(alpha * x W + bias) + residual
//   y_i = act(z_2i) * z_2i+1, z = alpha * x W + bias        gated linear layers: y (..., N / 2)
//   y = act(alpha * norm(x) W + bias)
//
// Accumulation is f32 on every tier. Leading (batch) axes broadcast as in NumPy. The right side is
// a tensor of the graph or a packed weight. A weight is packed at load (weights/pack.h), in one of
// the formats of base/matrix_format.h.
#pragma once

#include "base/matrix_format.h"
#include "ops/gated_activation.h"
#include "ops/op.h"

namespace vkformer {

// Columns [first, first + n) of a packed weight, in a tensor of their own with their bias.
struct LinearSlice {
  TensorId tensor = kNoTensor;
  uint32_t first = 0;          // a multiple of kPanelColumns
  uint32_t n = 0;              // columns
  uint32_t bias_offset = ~0u;  // in 32-bit words; ~0 = no bias
  MatrixFormat format = MatrixFormat::kF32;
};

// A packed weight: panels of kPanelColumns columns (params/matmul.h), each (K, kPanelColumns)
// row-major, then N bias values in f32 where there is a bias. All in one binding.
struct LinearWeight {
  TensorId tensor = kNoTensor;
  uint32_t n = 0;              // N, output features
  uint32_t k = 0;              // K, input features
  uint32_t bias_offset = ~0u;  // in 32-bit words; ~0 = no bias
  MatrixFormat format = MatrixFormat::kF32;
  bool exact = false;  // multiplied in f32, whatever the precision
  // A matrix too large for one binding, or stored in several formats: its columns by slice, the
  // first of which is `tensor` and has `format`. Empty where that is all of it.
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
};

// A linear layer and what follows its product.
struct LinearAttrs {
  float alpha = 1.0f;  // multiplies x W, not the bias
  ActivationKind activation = ActivationKind::kNone;
  // kPairs: SwiGLU and its kin (gated_activation.h), of a weight whose columns 2i are the gates of
  // columns 2i + 1.
  GatePairs gate = GatePairs::kNo;
  TensorId residual = kNoTensor;  // of y's shape, added last
};

// The output's description, or why the inputs do not fit; c may be null.
Result<TensorDesc> check_matmul(const TensorDesc& a, const TensorDesc& b, const TensorDesc* c,
                                const MatmulAttrs& attrs);
// The product's description (..., N) without what follows it.
Result<TensorDesc> check_linear(const TensorDesc& x, const LinearWeight& weight);

// Add the product and what follows it to the graph, each as a node: activation, gated_activation
// and combine. Return the last one's output.
//
// y = act(alpha op(a) op(b) + beta c), both sides tensors of the graph; c may be kNoTensor.
Result<TensorId> add_matmul(Graph& graph, TensorId a, TensorId b, TensorId c,
                            const MatmulAttrs& attrs);
// y (..., N) = act(alpha x (..., K) W + bias) + residual, W packed; of a gated layer (..., N / 2).
Result<TensorId> add_linear(Graph& graph, TensorId x, const LinearWeight& weight,
                            const LinearAttrs& attrs);

// What follows a linear layer's product y (..., N): the gate or activation, then the residual.
Result<TensorId> finish_linear(Graph& graph, TensorId y, const LinearAttrs& attrs);

Status lower_matmul(LowerContext& context, const Node& node);

}  // namespace vkformer
