// c/slices.h: passes and generations within the budget of a frame.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_SLICES_H
#define VKFORMER_C_SLICES_H

#include "vkformer/c/generation.h"
#include "vkformer/c/model.h"
#include "vkformer/c/session.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// A pass within the budget of a frame, slice by slice; its results are the bits that
// vkf_session_run gives. See session.h and vulkan_interop.h.
enum { VKF_RUNNING = 0, VKF_SUBMITTED = 1, VKF_DONE = 2, VKF_PREPARING = 3 };
typedef struct vkf_advance {
  uint32_t struct_size;
  int32_t progress;  // VKF_RUNNING, VKF_SUBMITTED, VKF_DONE (the GPU has finished) or VKF_PREPARING
  double fraction;   // 0 to 1, submitted so far, by our estimate
  double last_microseconds;      // GPU time of the latest slice known to have run; 0: none yet
  double expected_microseconds;  // of the slice that this call submitted, by our estimate
} vkf_advance;
// A semaphore that a submit waits for or signals. Never changes.
typedef struct vkf_semaphore_use {
  uint64_t semaphore;  // VkSemaphore
  uint64_t value;      // of a timeline semaphore; 0 for a binary one
} vkf_semaphore_use;
typedef struct vkf_slice_options {
  uint32_t struct_size;
  uint32_t reserved;
  double microseconds;            // of GPU time
  const vkf_semaphore_use* wait;  // before all commands
  size_t wait_count;
  const vkf_semaphore_use* signal;  // after them
  size_t signal_count;
} vkf_slice_options;
// A part of one of the application's storage buffers. Never changes.
typedef struct vkf_buffer_range {
  const char* name;  // of the tensor
  uint64_t buffer;   // VkBuffer
  uint64_t offset;   // bytes; a multiple of minStorageBufferOffsetAlignment
  uint64_t bytes;
} vkf_buffer_range;
// A tensor of a pass that was started, and where it lies.
typedef struct vkf_pass_buffer {
  uint32_t struct_size;
  vkf_dtype dtype;
  const int64_t* shape;
  size_t rank;
  vkf_buffer_range range;
} vkf_pass_buffer;
typedef struct vkf_pass_buffers vkf_pass_buffers;
// Prepares what runs of these sizes need while frames go on, and returns at once. A run of these
// sizes then begins without VKF_PREPARING. [one]
VKFORMER_API vkf_status vkf_session_warm_up(vkf_session* session, const vkf_session_sizes* sizes,
                                            vkf_error* error);
// How much of all that was asked for is there, 0 to 1. [one]
VKFORMER_API vkf_status vkf_session_warmed_up(vkf_session* session, double* fraction,
                                              vkf_error* error);
// Waits until all of it is there. [one]
VKFORMER_API vkf_status vkf_session_finish_warm_up(vkf_session* session, vkf_error* error);
// What slices of a run come to. One time is until the first token of a generation, or the end of a
// pass. The other is until the end. Milliseconds are of GPU time.
typedef struct vkf_frame_estimate {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t first_frames;
  int64_t frames;
  double first_milliseconds;
  double milliseconds;
  double measured;  // part of that time, 0 to 1, that goes by measurements on this device
} vkf_frame_estimate;
// How many slices of that budget a run of these sizes takes; nothing runs. [one]
VKFORMER_API vkf_status vkf_session_estimate(vkf_session* session, const vkf_session_sizes* sizes,
                                             double microseconds, vkf_frame_estimate* estimate,
                                             vkf_error* error);
// Begins a pass. Until it is finished or cancelled nothing else runs in this session. [one]
VKFORMER_API vkf_status vkf_session_start(vkf_session* session, const vkf_tensors* inputs,
                                          const vkf_run_options* options, vkf_error* error);
// The same with some tensors in the application's own buffers; `inputs` holds these inputs too, for
// their shapes. [one]
VKFORMER_API vkf_status vkf_session_start_on_buffers(vkf_session* session,
                                                     const vkf_tensors* inputs,
                                                     const vkf_buffer_range* ranges, size_t count,
                                                     const vkf_run_options* options,
                                                     vkf_error* error);
// Begins a generation, which the calls below carry out too. [one]
VKFORMER_API vkf_status vkf_session_start_generation(vkf_session* session,
                                                     const vkf_tensors* inputs,
                                                     const vkf_generate_options* options,
                                                     vkf_error* error);
// Submits the next slice and does not wait for it. [one]
VKFORMER_API vkf_status vkf_session_advance(vkf_session* session, const vkf_slice_options* options,
                                            vkf_advance* advance, vkf_error* error);
// The same into a VkCommandBuffer of the application's. [one]
VKFORMER_API vkf_status vkf_session_record(vkf_session* session, void* command_buffer,
                                           double microseconds, vkf_advance* advance,
                                           vkf_error* error);
// The command buffer that vkf_session_record appended to last was not submitted and never will be,
// as when a swapchain was lost: its slice comes again. Call it once for each slice that was
// dropped, before anything else is submitted. [one]
VKFORMER_API vkf_status vkf_session_drop_recorded(vkf_session* session, vkf_error* error);
// Outputs of what was started; waits for the GPU. [one]
VKFORMER_API vkf_status vkf_session_finish(vkf_session* session, vkf_tensors** outputs,
                                           vkf_error* error);
// Sequences of the generation that was started; waits for the GPU. [one]
VKFORMER_API vkf_status vkf_session_finish_generation(vkf_session* session,
                                                      vkf_generation** generation,
                                                      vkf_error* error);
// Gives up what was started. [one]
VKFORMER_API vkf_status vkf_session_cancel(vkf_session* session, vkf_error* error);
// Drops recordings on buffers of the application, before it destroys such a buffer. [one]
VKFORMER_API vkf_status vkf_session_forget_buffers(vkf_session* session, vkf_error* error);
// Where inputs and outputs of what was started lie. [one]
VKFORMER_API vkf_status vkf_session_pass_buffers(vkf_session* session, vkf_pass_buffers** buffers,
                                                 vkf_error* error);
// [any]
VKFORMER_API size_t vkf_pass_buffers_count(const vkf_pass_buffers* buffers);
// [any]
VKFORMER_API vkf_status vkf_pass_buffers_get(const vkf_pass_buffers* buffers, size_t index,
                                             vkf_pass_buffer* buffer, vkf_error* error);
VKFORMER_API void vkf_pass_buffers_free(vkf_pass_buffers* buffers);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_SLICES_H
