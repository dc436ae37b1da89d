/* Examples of passes of a model. */
#include <stdio.h>

#include "examples.h"

static int show_pass(const vkf_model* model, const vkf_tensors* inputs, vkf_error* error) {
  //! [vkf_session_create vkf_session_run vkf_session_free]
  // Runs one pass of a classifier of two classes over `inputs`: "input_ids" (1,S).
  vkf_session* session = NULL;
  vkf_tensors* outputs = NULL;
  vkf_tensor logits = {.struct_size = sizeof logits};
  const int ok = vkf_session_create(model, NULL, &session, error) == VKF_OK &&
                 vkf_session_run(session, inputs, NULL, &outputs, error) == VKF_OK &&
                 vkf_tensors_get(outputs, "logits", &logits, error) == VKF_OK;
  if (ok) printf("%lld classes\n", (long long)logits.shape[logits.rank - 1]);
  vkf_tensors_free(outputs);
  vkf_session_free(session);
  //! [end]
  return ok;
}

int show_c_session(const c_setting* setting) {
  char directory[PATH_BYTES];
  const int64_t shape[2] = {1, 4};
  const int64_t ids[4] = {1, 5, 7, 2};
  const vkf_tensor tensor = {sizeof tensor, VKF_I64, shape, 2, ids, sizeof ids};
  vkf_error* error = setting->error;
  vkf_tensors* inputs = NULL;
  vkf_model* model = NULL;
  path_in(directory, setting->goldens, "bert-sentiment/model");
  const int ok = vkf_tensors_create(&inputs, error) == VKF_OK &&
                 vkf_tensors_set(inputs, "input_ids", &tensor, error) == VKF_OK &&
                 vkf_model_load(setting->device, directory, NULL, &model, error) == VKF_OK &&
                 show_pass(model, inputs, error);
  vkf_model_free(model);
  vkf_tensors_free(inputs);
  return ok;
}
