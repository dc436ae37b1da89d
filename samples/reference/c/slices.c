/* Examples of sessions that work within the budget of a frame. */
#include <stdio.h>

#include "examples.h"

static int show_preparing(vkf_session* session, vkf_error* error) {
  //! [vkf_session_warm_up vkf_session_warmed_up vkf_session_finish_warm_up]
  // Prepares passes over 8 tokens while frames go on, then waits for the rest.
  const vkf_session_sizes sizes = {.struct_size = sizeof sizes, .tokens = 8};
  double part = 0;
  int ok = vkf_session_warm_up(session, &sizes, error) == VKF_OK &&
           vkf_session_warmed_up(session, &part, error) == VKF_OK;  // once a frame
  printf("%.0f %% prepared\n", 100 * part);
  ok = ok && vkf_session_finish_warm_up(session, error) == VKF_OK;
  //! [end]

  //! [vkf_session_estimate]
  // How many frames a pass takes if each gives it half a millisecond of GPU time.
  vkf_frame_estimate estimate = {.struct_size = sizeof estimate};
  ok = ok && vkf_session_estimate(session, &sizes, 500, &estimate, error) == VKF_OK;
  printf("%lld frames\n", (long long)estimate.frames);
  //! [end]
  return ok && estimate.frames > 0;
}

static int show_advancing(vkf_session* session, const vkf_tensors* inputs, vkf_error* error) {
  //! [vkf_session_start vkf_session_advance vkf_session_finish]
  // Runs a pass in slices of half a millisecond, one in each frame.
  const vkf_slice_options slice = {.struct_size = sizeof slice, .microseconds = 500};
  vkf_advance advance = {.struct_size = sizeof advance};
  vkf_tensors* outputs = NULL;
  int ok = vkf_session_start(session, inputs, NULL, error) == VKF_OK;
  do {  // once a frame
    ok = ok && vkf_session_advance(session, &slice, &advance, error) == VKF_OK;
  } while (ok && (advance.progress == VKF_RUNNING || advance.progress == VKF_PREPARING));
  ok = ok && vkf_session_finish(session, &outputs, error) == VKF_OK;
  vkf_tensors_free(outputs);
  //! [end]
  return ok;
}

static int show_generating(vkf_session* session, const vkf_tensors* inputs, vkf_error* error) {
  //! [vkf_session_start_generation vkf_session_finish_generation]
  // Generates 4 tokens in slices.
  const vkf_slice_options slice = {.struct_size = sizeof slice, .microseconds = 500};
  const vkf_generate_options options = {
      .struct_size = sizeof options, .set = VKF_SET_MAX_NEW_TOKENS, .max_new_tokens = 4};
  vkf_advance advance = {.struct_size = sizeof advance};
  vkf_generation* generation = NULL;
  int ok = vkf_session_start_generation(session, inputs, &options, error) == VKF_OK;
  do {  // once a frame
    ok = ok && vkf_session_advance(session, &slice, &advance, error) == VKF_OK;
  } while (ok && (advance.progress == VKF_RUNNING || advance.progress == VKF_PREPARING));
  ok = ok && vkf_session_finish_generation(session, &generation, error) == VKF_OK;
  vkf_generation_free(generation);
  //! [end]
  return ok;
}

static int show_places(vkf_session* session, const vkf_tensors* inputs, vkf_error* error) {
  int ok = vkf_session_start(session, inputs, NULL, error) == VKF_OK;
  //! [vkf_session_pass_buffers vkf_pass_buffers_count vkf_pass_buffers_get]
  //! [vkf_pass_buffers_free]
  // Lists where the tensors of a pass that was started are, for shaders of the application.
  vkf_pass_buffers* buffers = NULL;
  ok = ok && vkf_session_pass_buffers(session, &buffers, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_pass_buffers_count(buffers); ++i) {
    vkf_pass_buffer place = {.struct_size = sizeof place};
    ok = vkf_pass_buffers_get(buffers, i, &place, error) == VKF_OK;
    if (ok) printf("%s: %llu bytes\n", place.range.name, (unsigned long long)place.range.bytes);
  }
  vkf_pass_buffers_free(buffers);
  //! [end]

  //! [vkf_session_cancel]
  // Gives up what was started, as when a scene ends.
  ok = vkf_session_cancel(session, error) == VKF_OK && ok;
  //! [end]
  return ok;
}

static int show_frames(vkf_session* first, vkf_session* second, const vkf_tensors* inputs,
                       vkf_error* error) {
  //! [vkf_frames_create vkf_frames_add vkf_frames_remove vkf_frames_free]
  // Two sessions are to share each frame; the second one is given up again.
  const vkf_frame_job urgent = {.struct_size = sizeof urgent, .priority = VKF_JOB_HIGH};
  uint64_t job = 0, unwanted = 0;
  vkf_frames* frames = NULL;
  int ok = vkf_session_start(first, inputs, NULL, error) == VKF_OK &&
           vkf_session_start(second, inputs, NULL, error) == VKF_OK &&
           vkf_frames_create(&frames, error) == VKF_OK &&
           vkf_frames_add(frames, first, &urgent, &job, error) == VKF_OK &&
           vkf_frames_add(frames, second, NULL, &unwanted, error) == VKF_OK &&
           vkf_frames_remove(frames, unwanted, error) == VKF_OK;
  //! [end]

  //! [vkf_frames_advance vkf_frames_count vkf_frame_updates_count vkf_frame_updates_get]
  //! [vkf_frame_updates_free]
  // Gives all jobs together a millisecond of each frame, and tells which have failed.
  while (ok && vkf_frames_count(frames) > 0) {
    vkf_frame_updates* updates = NULL;
    ok = vkf_frames_advance(frames, 1000, &updates, error) == VKF_OK;
    for (size_t i = 0; ok && i < vkf_frame_updates_count(updates); ++i) {
      vkf_frame_progress progress = {.struct_size = sizeof progress};
      ok = vkf_frame_updates_get(updates, i, &progress, error) == VKF_OK;
      if (ok && progress.error != NULL) fprintf(stderr, "%s\n", progress.error);
    }
    vkf_frame_updates_free(updates);
  }
  //! [end]
  vkf_tensors* outputs = NULL;
  ok = ok && vkf_session_finish(first, &outputs, error) == VKF_OK;
  vkf_tensors_free(outputs);
  ok = vkf_session_cancel(second, error) == VKF_OK && ok;
  vkf_frames_free(frames);
  return ok;
}

int show_c_slices(const c_setting* setting) {
  static const int64_t kIds[4] = {1, 5, 7, 2};
  const int64_t shape[2] = {1, 4};
  const vkf_tensor tensor = {sizeof tensor, VKF_I64, shape, 2, kIds, sizeof kIds};
  char directory[PATH_BYTES];
  vkf_error* error = setting->error;
  vkf_tensors* inputs = NULL;
  vkf_model* model = NULL;
  vkf_session* first = NULL;
  vkf_session* second = NULL;
  path_in(directory, setting->models, "shakespeare");
  const int ok = vkf_tensors_create(&inputs, error) == VKF_OK &&
                 vkf_tensors_set(inputs, "input_ids", &tensor, error) == VKF_OK &&
                 vkf_model_load(setting->device, directory, NULL, &model, error) == VKF_OK &&
                 vkf_session_create(model, NULL, &first, error) == VKF_OK &&
                 vkf_session_create(model, NULL, &second, error) == VKF_OK &&
                 show_preparing(first, error) && show_advancing(first, inputs, error) &&
                 show_generating(first, inputs, error) && show_places(first, inputs, error) &&
                 show_frames(first, second, inputs, error);
  vkf_session_free(second);
  vkf_session_free(first);
  vkf_model_free(model);
  vkf_tensors_free(inputs);
  return ok;
}
