// c/frames.h: several sessions that share the GPU time of a frame. See frame_scheduler.h.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_FRAMES_H
#define VKFORMER_C_FRAMES_H

#include "vkformer/c/session.h"
#include "vkformer/c/slices.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vkf_job_priority;
// All that is left of a frame goes to the next one; those of one priority take turns.
enum { VKF_JOB_HIGH = 0, VKF_JOB_NORMAL = 1, VKF_JOB_BACKGROUND = 2 };
typedef struct vkf_frame_job {
  uint32_t struct_size;
  vkf_job_priority priority;
  double deadline_ms;  // from now; while it would be missed the job comes first; 0: none
} vkf_frame_job;

// What became of a job in one frame.
typedef struct vkf_frame_progress {
  uint32_t struct_size;
  // As vkf_advance has it; of no meaning where there is an error.
  int32_t progress;
  uint64_t job;
  double fraction;
  double last_microseconds;
  double expected_microseconds;
  const char* error;  // what ended the job, or null
} vkf_frame_progress;

typedef struct vkf_frames vkf_frames;
typedef struct vkf_frame_updates vkf_frame_updates;
// A scheduler without jobs. [one]
VKFORMER_API vkf_status vkf_frames_create(vkf_frames** frames, vkf_error* error);
VKFORMER_API void vkf_frames_free(vkf_frames* frames);
// What the session has started, or starts next. The session must live until the job is done or
// removed. A null `job` is one of normal priority without a deadline. [one]
VKFORMER_API vkf_status vkf_frames_add(vkf_frames* frames, vkf_session* session,
                                       const vkf_frame_job* job, uint64_t* number,
                                       vkf_error* error);
// What the session has started stays started. A number of no job is passed over. [one]
VKFORMER_API vkf_status vkf_frames_remove(vkf_frames* frames, uint64_t number, vkf_error* error);
// Jobs that are not done. [one]
VKFORMER_API size_t vkf_frames_count(const vkf_frames* frames);
// Hands out the GPU microseconds of one frame, in submits of the sessions. Jobs that are done or
// failed are removed. [one]
VKFORMER_API vkf_status vkf_frames_advance(vkf_frames* frames, double microseconds,
                                           vkf_frame_updates** updates, vkf_error* error);
// The same into a command buffer of the application (VkCommandBuffer); see vkf_session_record.
// [one]
VKFORMER_API vkf_status vkf_frames_record(vkf_frames* frames, void* command_buffer,
                                          double microseconds, vkf_frame_updates** updates,
                                          vkf_error* error);
// [any]
VKFORMER_API size_t vkf_frame_updates_count(const vkf_frame_updates* updates);
// [any]
VKFORMER_API vkf_status vkf_frame_updates_get(const vkf_frame_updates* updates, size_t index,
                                              vkf_frame_progress* progress, vkf_error* error);
VKFORMER_API void vkf_frame_updates_free(vkf_frame_updates* updates);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_FRAMES_H
