// c/picture_tasks.h: tasks that give something for each pixel of a picture: depths, masks; and
// prompts with pictures as a batch reads them.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_PICTURE_TASKS_H
#define VKFORMER_C_PICTURE_TASKS_H

#include "vkformer/c/tasks.h"

#ifdef __cplusplus
extern "C" {
#endif

// A place in pixels of a picture; `outside` 1: of what a mask is not wanted of. Never changes.
typedef struct vkf_prompt_point {
  double x;
  double y;
  int32_t outside;
  int32_t reserved;
} vkf_prompt_point;
// What one mask is wanted of: points, a box (left, top, right and bottom in pixels; null: none), or
// both. Never changes.
typedef struct vkf_mask_prompt {
  const vkf_prompt_point* points;
  size_t point_count;
  const double* box;
} vkf_mask_prompt;

// Tensors with "depth", how far or near each pixel of the picture is (height,width): of a relative
// model the larger, the nearer. [one]
VKFORMER_API vkf_status vkf_task_depth(vkf_task* task, const vkf_picture* picture,
                                       vkf_tensors** tensors, vkf_error* error);
// Tensors with "masks" (count,masks,height,width), bytes of which 1 is inside, and "scores"
// (count,masks). Of each prompt the `top` best (0: all) are given, best first. [one]
VKFORMER_API vkf_status vkf_task_segment(vkf_task* task, const vkf_picture* picture,
                                         const vkf_mask_prompt* prompts, size_t count, int32_t top,
                                         vkf_tensors** tensors, vkf_error* error);

// Prompts with pictures as tensors, for a model that is loaded already; see image_prompt_reader.h.
typedef struct vkf_image_prompts vkf_image_prompts;
// The source has the model's files. [any]
VKFORMER_API vkf_status vkf_image_prompts_load(const vkf_model* model, const vkf_source* source,
                                               vkf_image_prompts** reader, vkf_error* error);
VKFORMER_API void vkf_image_prompts_free(vkf_image_prompts* reader);
// What stands for a picture in a prompt, such as "<image>"; empty of a model that describes a
// picture; null of a null reader. [any]
VKFORMER_API const char* vkf_image_prompts_placeholder(const vkf_image_prompts* reader);
// Tensors with "input_ids" (1, T) and those of the pictures, for vkf_batch_submit and
// vkf_session_generate_from. Of a model that describes a picture, input_ids is what the
// description begins with. It is absent if the text is empty, and for vkf_batch_submit alone. [any]
VKFORMER_API vkf_status vkf_image_prompts_read(const vkf_image_prompts* reader,
                                               const vkf_prompt* prompt, vkf_tensors** tensors,
                                               vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_PICTURE_TASKS_H
