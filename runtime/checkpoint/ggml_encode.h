// Weights as the types of GGUF files hold them, rounded as ggml's own reference rounds
// (quantize_row_q8_0_ref and its kin in ggml-quants.c).
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/ggml_types.h"
#include "vkformer/result.h"

namespace vkformer {

// That the type has no number near that weight of a tensor.
Error ggml_cannot_hold(GgmlType type, const std::string& name, float weight);

// Whether that is so of the type: F32, F16, BF16, Q8_0, Q4_0 and Q4_1.
bool encodes_ggml(GgmlType type);

// The bytes of whole blocks of weights. An error says which weight the type cannot hold; `name` is
// that of the tensor. Preconditions: encodes_ggml, and as many bytes as the weights take.
Status encode_ggml(GgmlType type, const std::string& name, std::span<const float> weights,
                   std::span<std::byte> out);

}  // namespace vkformer
