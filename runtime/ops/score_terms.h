// Packs masks and biases of a score matrix into the one binding that kernels read them from
// (shaders/params/score_terms.h), shared by softmax, attention and attention_weights.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "params/score_terms.h"
#include "vkformer/tensor.h"

namespace vkformer {

// No masks, no bias.
inline ScoreTermsParams no_score_terms() {
  return {VKF_NO_TERM, VKF_NO_TERM, VKF_NO_TERM, VKF_NO_TERM, 0, 0, 0, 0};
}

// The terms present, on the host. Dimensions of mask and bias may be 1 where they broadcast, the
// last one too.
struct ScoreTermsInput {
  std::optional<Tensor> key_mask;   // (B, S), non-zero = allowed; U8, BOOL or integer
  std::optional<Tensor> mask;       // (B|1, H|1, T|1, S|1), non-zero = allowed; U8, BOOL or integer
  std::optional<Tensor> bias;       // (B|1, H|1, T|1, S|1), f32; -inf forbids
  std::vector<float> alibi_slopes;  // (H) or empty
};

struct ScoreTerms {
  Tensor words;             // (words), U32; at least one word, so that it can always be bound
  ScoreTermsParams params;  // offsets and broadcast flags; the causal and window fields are zero
};

// `dims` is B, H, T, S. An error names the term whose shape does not fit.
Result<ScoreTerms> pack_score_terms(const ScoreTermsInput& input, std::span<const int64_t, 4> dims);

// Packs a key mask alone, as sessions do for every run: (B, S) -> (B, ceil(S/32)) words.
std::vector<uint32_t> pack_key_mask(std::span<const uint8_t> allowed, int64_t batch, int64_t keys);

}  // namespace vkformer
