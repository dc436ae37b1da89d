/* Examples of vkformer as a guest on the application's own Vulkan device. */
#include "guest.h"

#include <stdio.h>

static vkf_device* adopt(const c_guest* guest, vkf_error* error) {
  vkf_adopted_device* host = guest->host;
  //! [vkf_feature_chain_create vkf_feature_chain_queue_family vkf_feature_chain_low_priority]
  //! [vkf_feature_chain_free vkf_device_adopt]
  // Asks what is worth enabling, lets the application make its VkDevice with it, and hands that
  // over. `host` has loader, instance and physical device; make_device adds device and queue.
  vkf_feature_chain* chain = NULL;
  vkf_device* device = NULL;
  if (vkf_feature_chain_create(host, NULL, &chain, error) == VKF_OK) {
    const char* low_priority = vkf_feature_chain_low_priority(chain);
    printf("queue family %u, %s\n", vkf_feature_chain_queue_family(chain),
           low_priority != NULL ? low_priority : "of normal priority");
    if (guest->make_device(guest->application, host)) {
      vkf_device_adopt(host, NULL, &device, error);
    }
  }
  vkf_feature_chain_free(chain);
  //! [end]
  return device;
}

static int show_operator(const c_guest* guest, const vkf_device* device, const vkf_tensors* inputs,
                         vkf_error* error) {
  void* commands = guest->begin(guest->application);
  const uint64_t buffer = guest->buffer;
  vkf_operator_tensor y = {.struct_size = sizeof y};
  //! [vkf_recorded_operator_bind vkf_recorded_operator_record]
  // Appends a softmax to the application's commands, whose output goes to its `buffer`.
  const vkf_operator_call call = {.struct_size = sizeof call, .name = "softmax", .inputs = inputs};
  vkf_recorded_operator* softmax = NULL;
  int ok = vkf_recorded_operator_create(device, &call, &softmax, error) == VKF_OK &&
           vkf_recorded_operator_get(softmax, VKF_OPERATOR_OUTPUTS, 0, &y, error) == VKF_OK;
  const vkf_buffer_range place = {y.name, buffer, 0, y.bytes};
  ok = ok && vkf_recorded_operator_bind(softmax, &place, 1, error) == VKF_OK &&
       vkf_recorded_operator_record(softmax, commands, error) == VKF_OK;
  //! [end]
  ok = guest->submit(guest->application) && ok;
  vkf_recorded_operator_free(softmax);  // after its commands have run
  return ok;
}

static int show_buffers(uint64_t buffer, vkf_session* session, const vkf_tensors* inputs,
                        vkf_error* error) {
  //! [vkf_session_start_on_buffers vkf_session_forget_buffers]
  // Runs a pass whose logits go to the application's `buffer`, then lets the buffer go.
  const vkf_buffer_range logits = {"logits", buffer, 0, 1024};
  const vkf_slice_options slice = {.struct_size = sizeof slice, .microseconds = 500};
  vkf_advance advance = {.struct_size = sizeof advance};
  vkf_tensors* rest = NULL;
  int ok = vkf_session_start_on_buffers(session, inputs, &logits, 1, NULL, error) == VKF_OK;
  do {  // once a frame
    ok = ok && vkf_session_advance(session, &slice, &advance, error) == VKF_OK;
  } while (ok && (advance.progress == VKF_RUNNING || advance.progress == VKF_PREPARING));
  ok = ok && vkf_session_finish(session, &rest, error) == VKF_OK &&
       vkf_session_forget_buffers(session, error) == VKF_OK;
  vkf_tensors_free(rest);
  //! [end]
  return ok;
}

static int show_recording(const c_guest* guest, vkf_session* session, const vkf_tensors* inputs,
                          vkf_error* error) {
  int ok = vkf_session_start(session, inputs, NULL, error) == VKF_OK;
  void* commands = guest->begin(guest->application);
  //! [vkf_session_record vkf_session_drop_recorded]
  // Appends a slice to a command buffer that is then never submitted, as when a window closes: the
  // slice comes again.
  vkf_advance advance = {.struct_size = sizeof advance};
  ok = ok && vkf_session_record(session, commands, 500, &advance, error) == VKF_OK;
  if (ok && advance.progress != VKF_PREPARING) {
    ok = vkf_session_drop_recorded(session, error) == VKF_OK;
  }
  //! [end]
  vkf_frames* frames = NULL;
  vkf_tensors* outputs = NULL;
  uint64_t job = 0;
  ok = ok && vkf_frames_create(&frames, error) == VKF_OK &&
       vkf_frames_add(frames, session, NULL, &job, error) == VKF_OK;
  //! [vkf_frames_record]
  // Records a millisecond of all jobs into the command buffer of each frame.
  while (ok && vkf_frames_count(frames) > 0) {
    commands = guest->begin(guest->application);
    vkf_frame_updates* updates = NULL;
    ok = vkf_frames_record(frames, commands, 1000, &updates, error) == VKF_OK;
    vkf_frame_updates_free(updates);
    ok = guest->submit(guest->application) && ok;
  }
  //! [end]
  ok = ok && vkf_session_finish(session, &outputs, error) == VKF_OK;
  vkf_tensors_free(outputs);
  vkf_frames_free(frames);
  return ok;
}

static int show_images(const char* directory, const vkf_image_input* image, vkf_session* session,
                       vkf_error* error) {
  //! [vkf_session_start_on_images]
  // Classifies one of the application's images, which the GPU resizes and scales itself.
  const vkf_slice_options slice = {.struct_size = sizeof slice, .microseconds = 500};
  vkf_image_inputs images = {.struct_size = sizeof images, .images = image, .count = 1};
  vkf_advance advance = {.struct_size = sizeof advance};
  vkf_picture_processor* processor = NULL;
  vkf_tensors* outputs = NULL;
  int ok = vkf_picture_processor_load(directory, &processor, error) == VKF_OK;
  images.processor = processor;
  ok = ok && vkf_session_start_on_images(session, NULL, &images, NULL, error) == VKF_OK;
  do {  // once a frame
    ok = ok && vkf_session_advance(session, &slice, &advance, error) == VKF_OK;
  } while (ok && (advance.progress == VKF_RUNNING || advance.progress == VKF_PREPARING));
  ok = ok && vkf_session_finish(session, &outputs, error) == VKF_OK;
  vkf_tensors_free(outputs);
  vkf_picture_processor_free(processor);
  //! [end]
  return ok;
}

static int show_sessions(const c_guest* guest, const vkf_device* device, const vkf_tensors* inputs,
                         vkf_error* error) {
  vkf_model* model = NULL;
  vkf_model* vision = NULL;
  vkf_session* session = NULL;
  vkf_session* seeing = NULL;
  const int ok = vkf_model_load(device, guest->classifier, NULL, &model, error) == VKF_OK &&
                 vkf_session_create(model, NULL, &session, error) == VKF_OK &&
                 show_buffers(guest->buffer, session, inputs, error) &&
                 show_recording(guest, session, inputs, error) &&
                 vkf_model_load(device, guest->vision, NULL, &vision, error) == VKF_OK &&
                 vkf_session_create(vision, NULL, &seeing, error) == VKF_OK &&
                 show_images(guest->vision, &guest->image, seeing, error);
  vkf_session_free(seeing);
  vkf_model_free(vision);
  vkf_session_free(session);
  vkf_model_free(model);
  return ok;
}

int show_c_guest(const c_guest* guest, vkf_error* error) {
  const int64_t shape[2] = {1, 4};
  const int64_t ids[4] = {1, 5, 7, 2};
  const float values[4] = {1, 2, 3, 4};
  const vkf_tensor row = {sizeof row, VKF_I64, shape, 2, ids, sizeof ids};
  const vkf_tensor x = {sizeof x, VKF_F32, shape, 2, values, sizeof values};
  vkf_tensors* inputs = NULL;
  vkf_tensors* matrix = NULL;
  vkf_device* device = adopt(guest, error);
  const int ok = device != NULL && vkf_tensors_create(&inputs, error) == VKF_OK &&
                 vkf_tensors_set(inputs, "input_ids", &row, error) == VKF_OK &&
                 vkf_tensors_create(&matrix, error) == VKF_OK &&
                 vkf_tensors_set(matrix, "X", &x, error) == VKF_OK &&
                 show_operator(guest, device, matrix, error) &&
                 show_sessions(guest, device, inputs, error);
  vkf_tensors_free(matrix);
  vkf_tensors_free(inputs);
  vkf_device_free(device);
  return ok;
}
