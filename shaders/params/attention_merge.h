// Push constants of attention_merge.
#ifndef VKFORMER_PARAMS_ATTENTION_MERGE_H
#define VKFORMER_PARAMS_ATTENTION_MERGE_H
#include "types.h"

struct AttentionMergeParams {
  uint_t heads;     // H
  uint_t y_stride;  // elements from one slot to the next
};
#ifdef __cplusplus
static_assert(sizeof(AttentionMergeParams) == 8);
#endif
#endif
