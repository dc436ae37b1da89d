// What a recurrent decoder looks at of its encoder: the alignment models of Bahdanau et al. (2014)
// and Luong et al. (2015), by kind of score and by window.
//
// Weight rows: attention.query (A, Hd) of bahdanau, (A, Hd + C) of concat, (L, Hd) of location.
// attention.key (A, C) of bahdanau, (Hd, C) of general. attention.place (Hd, Hd) and
// attention.center (1, Hd) of predictive windows.
#pragma once

#include "model/model.h"
#include "ops/additive_attention.h"

namespace vkformer {

struct AlignmentConfig {
  enum class Kind : uint8_t { kNone, kBahdanau, kDot, kGeneral, kConcat, kLocation };
  Kind kind = Kind::kBahdanau;
  AdditiveAttentionAttrs::Window window = AdditiveAttentionAttrs::Window::kNone;
  int64_t reach = 0;          // D, tokens
  int64_t width = 0;          // A, of additive scores; L, positions of location scores
  int64_t decoder_width = 0;  // Hd
  int64_t memory = 0;         // C
  std::vector<float> v;       // v_a (A) of additive scores

  bool additive() const { return kind == Kind::kBahdanau || kind == Kind::kConcat; }
  // Columns of a query, and of a row of keys and values.
  int64_t query_width() const {
    return additive() || kind == Kind::kLocation ? width : decoder_width;
  }
  int64_t line_width() const;
};

// What a pass attends to.
struct AlignmentMemory {
  TensorId kv = kNoTensor;   // (B, S, line)
  TensorId aux = kNoTensor;  // key mask (B, ceil(S/32)), then v (A)
  int64_t source = 0;        // S
  int64_t batch = 0;         // B
};

// The external words of the key mask of (B, S) tokens with v after it; who builds the pass feeds
// key_mask.
TensorId add_alignment_words(ModelBuilder& builder, const AlignmentConfig& config, int64_t batch,
                             int64_t source);
// Rows of keys and values of the encoder's states (B, S, C) -> (B, S, line).
Result<TensorId> add_alignment_keys(ModelBuilder& builder, const AlignmentConfig& config,
                                    TensorId states);

// Queries of a pass or a step.
struct AlignmentQueries {
  TensorId states = kNoTensor;  // s (B, T, Hd), (B, Hd) of one position, or (slots, Hd)
  int64_t first = 0;            // position of the first one
  TensorId step = kNoTensor;    // DecodeState (words), in a step
  int64_t beams = 1;            // rows of an item, in a step
  AdditiveAttentionAttrs::Result result = AdditiveAttentionAttrs::Result::kWeights;
};
// -> (..., C + S): [context | weights].
Result<TensorId> add_alignment(ModelBuilder& builder, const AlignmentConfig& config,
                               const AlignmentMemory& memory, const AlignmentQueries& queries);

}  // namespace vkformer
