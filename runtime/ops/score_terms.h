// Packs masks and biases of a score matrix into the one binding that kernels read them from
// (shaders/params/score_terms.h). softmax, attention and attention_weights share it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "params/score_terms.h"
#include "vkformer/tensor.h"

namespace vkformer {

// No masks, no bias.
inline ScoreTermsParams no_score_terms() {
  return {VKF_NO_TERM, VKF_NO_TERM, VKF_NO_TERM, VKF_NO_TERM, 0, 0, 0, 0, VKF_NO_TERM};
}

// The terms present, on the host. Dimensions of mask and bias may be 1 where they broadcast, the
// last one too.
struct ScoreTermsInput {
  std::optional<Tensor> key_mask;   // (B, S), non-zero = allowed; U8, BOOL or integer
  std::optional<Tensor> mask;       // (B|1, H|1, T|1, S|1), non-zero = allowed; U8, BOOL or integer
  std::optional<Tensor> bias;       // (B|1, H|1, T|1, S|1), f32; -inf forbids
  std::vector<float> alibi_slopes;  // (H) or empty
  std::vector<float> sink_scores;   // (H) or empty; not with global, documents, prefix, block_map
  std::optional<Tensor> global;     // (B, S), non-zero = global; needs T = S
  std::optional<Tensor> documents;  // (B, S), the number of each token's document; needs T = S
  std::optional<Tensor> prefix;     // (B), keys that causal and windows never hide
  // How often each block of keys counts for each block of queries; 0 = hidden. U8 or integer.
  std::optional<Tensor> block_map;  // (B|1, H|1, T / block_size, S / block_size)
  int64_t block_size = 0;           // tokens; divides T and S
  // What causal and windows leave of distances j - i: blocks beyond are omitted from the block map.
  std::optional<int64_t> least_distance;
  std::optional<int64_t> most_distance;
};

struct ScoreTerms {
  Tensor words;              // (words), U32; at least one word, so that it can always be bound
  ScoreTermsParams params;   // offsets and broadcast flags; the causal and window fields are zero
  uint32_t most_global = 0;  // global tokens of the item that has most
  uint32_t keys_of_blocks = 0;  // keys that the block map shows to a query, on average; 0: none
  uint32_t most_of_blocks = 0;  // as most_visited_keys gives it; 0: no block map
};

// `dims` is B, H, T, S. An error names the term whose shape does not fit.
Result<ScoreTerms> pack_score_terms(const ScoreTermsInput& input, std::span<const int64_t, 4> dims);

// Words of single terms, as models feed them (params/score_terms.h has their layouts).
// Global tokens: flags (B, S), 1 = global -> (B, 1 + ceil(S/32) + S) words.
std::vector<uint32_t> pack_global_tokens(std::span<const uint8_t> flags, int64_t batch,
                                         int64_t keys);
inline int64_t global_token_words(int64_t batch, int64_t keys) {
  return batch * (1 + (keys + 31) / 32 + keys);
}
// A block of keys that a block of queries sees, and how often it counts.
struct SeenBlock {
  uint32_t block = 0;
  uint32_t count = 1;
};
// A block map: rows (slices, query blocks) with their blocks in any order, where one may come
// twice -> words.
std::vector<uint32_t> pack_block_map(uint32_t block_size,
                                     const std::vector<std::vector<SeenBlock>>& rows);

// Keys that any kQueryNeighbors queries of a slice of `slice_rows` rows visit in all: kernels
// visit the entries of neighbors one after the other.
inline constexpr uint32_t kQueryNeighbors = 16;
uint32_t most_visited_keys(uint32_t block_size, size_t slice_rows,
                           const std::vector<std::vector<SeenBlock>>& rows);

// The largest causal offset and windows, in tokens.
inline constexpr int32_t kMostScoreReach = 1 << 29;

// Why what kernels read of the terms (include/score_terms.glsl) does not fit into `words` words or
// the sizes B, H, T, S. Empty: it does.
std::string score_terms_error(const ScoreTermsParams& params, uint64_t words,
                              std::span<const uint64_t, 4> dims);

// Packs a key mask alone, as sessions do for every run: (B, S) -> (B, ceil(S/32)) words.
std::vector<uint32_t> pack_key_mask(std::span<const uint8_t> allowed, int64_t batch, int64_t keys);

}  // namespace vkformer
