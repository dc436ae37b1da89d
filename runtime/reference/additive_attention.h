// additive_attention: scores, softmax, window and weighted sum of recurrent alignment models
// (Bahdanau et al. 2014; Luong et al. 2015).
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct AlignmentInputs {
  Array q;                      // (B, T, A); predictive: (B, T, A + 1), the center's share last
  Array kv;                     // (B, S, line): begins with the key (A), ends with the value (C)
  const Array* mask = nullptr;  // (B, S), or all ones
  const Array* v = nullptr;     // (A), of additive scores
};

struct AlignmentOptions {
  enum class Score : uint8_t { kAdditive, kDot, kLocation } score = Score::kAdditive;
  enum class Window : uint8_t { kNone, kMonotonic, kPredictive } window = Window::kNone;
  bool raw_scores = false;
  int64_t width = 1;        // A
  int64_t value_width = 1;  // C
  int64_t reach = 0;        // D, tokens
  int64_t first = 0;        // position of the first query
  double temperature = 1;   // divides the scores before the softmax
};

// -> (B, T, C + S): [context | weights]; of raw scores the context is zeros.
Result<Array> additive_attention(const AlignmentInputs& inputs, const AlignmentOptions& options);

}  // namespace vkformer::reference
