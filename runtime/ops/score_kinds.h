// VKF_KIND_* of score terms: what kernels are compiled for, so that they omit the rest.
#pragma once

#include "params/score_kinds.h"
#include "params/score_terms.h"

namespace vkformer {

inline uint32_t score_kinds(const ScoreTermsParams& t) {
  constexpr uint32_t kNear = VKF_TERM_CAUSAL | VKF_TERM_WINDOW_LEFT | VKF_TERM_WINDOW_RIGHT;
  constexpr uint32_t kSparse = VKF_TERM_SPARSE | VKF_TERM_MASKED_QUERIES;
  uint32_t kinds = 0;
  if ((t.flags & kNear) != 0) kinds |= VKF_KIND_NEAR;
  if ((t.flags & kSparse) != 0) kinds |= VKF_KIND_SPARSE;
  if (t.key_mask_offset != VKF_NO_TERM) kinds |= VKF_KIND_KEY_MASK;
  if (t.mask_offset != VKF_NO_TERM) kinds |= VKF_KIND_MASK;
  if (t.bias_offset != VKF_NO_TERM) kinds |= VKF_KIND_BIAS;
  if (t.slopes_offset != VKF_NO_TERM) kinds |= VKF_KIND_DISTANCE;
  return kinds;
}

}  // namespace vkformer
