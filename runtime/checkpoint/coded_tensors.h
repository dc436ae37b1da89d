// Finds the tensors that are one matrix of a quantized checkpoint, and checks that they fit
// together. Names end as the libraries that write them have it:
//
//   gptq, awq           X.qweight, X.qzeros, X.scales, X.g_idx
//   compressed-tensors  X.weight_packed, X.weight_shape or X.weight; X.weight_scale,
//                       X.weight_zero_point, X.weight_g_idx, X.weight_global_scale
//   bitsandbytes        X.weight and X.SCB, or X.weight, X.weight.absmax, X.weight.quant_map,
//                       X.weight.nested_absmax, X.weight.nested_quant_map and
//                       X.weight.quant_state.bitsandbytes__nf4
//   fp8                 X.weight and X.weight_scale_inv or X.weight_scale
//
// Each becomes one tensor X.weight (N, K). Tensors that quantize activations are dropped:
// activations stay f32.
//
// Lifetime: views of the file's bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/coded_matrix.h"
#include "checkpoint/quantization_method.h"

namespace vkformer {

struct CodedTensor {
  std::string name;                // X.weight
  Shape shape;                     // (N, K), or of experts (X, N, K)
  std::string from;                // the tensor that has the codes
  std::vector<std::string> parts;  // all tensors that it is made of, `from` too
  // The matrix, or null: then it is MXFP4 with these scales.
  std::shared_ptr<const CodedMatrix> matrix;
  const TensorView* mxfp4_scales = nullptr;
};

struct CodedTensors {
  std::vector<CodedTensor> tensors;
  std::vector<std::string> dropped;  // that inference does not use
};

using TensorFinder = std::function<const TensorView*(const std::string& name)>;

// An error names the tensor, its shape and what would fit.
Result<CodedTensors> find_coded_tensors(const QuantizationMethod& method,
                                        const std::vector<std::string>& names,
                                        const TensorFinder& find);

// A tensor of 8-bit floats that no scale belongs to. Precondition: its type is kE4m3 or kE5m2.
CodedTensor plain_float8(const std::string& name, const TensorView& view);

}  // namespace vkformer
