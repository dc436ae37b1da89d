// c/entities.h: entities of labels that the caller names.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_ENTITIES_H
#define VKFORMER_C_ENTITIES_H

#include "vkformer/c/tasks.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bits of vkf_entity_options::flags: entities may lie inside others; one may have several labels.
enum { VKF_ENTITY_NESTED = 1, VKF_ENTITY_MULTI_LABEL = 2 };
typedef struct vkf_entity_options {
  uint32_t struct_size;
  uint32_t flags;             // VKF_ENTITY_NESTED, VKF_ENTITY_MULTI_LABEL
  const char* const* labels;  // at least one
  size_t label_count;
  double threshold;  // an entity's probability is above it; 0: 0.5
} vkf_entity_options;

// The entities of each text with one of the options' labels, in text order, by a GLiNER loaded as
// "classify". [one]
VKFORMER_API vkf_status vkf_task_zero_shot_entities(vkf_task* task, const char* const* texts,
                                                    size_t count, const vkf_entity_options* options,
                                                    vkf_findings** findings, vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_ENTITIES_H
