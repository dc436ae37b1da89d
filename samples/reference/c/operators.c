/* Examples of operators and of multi-head attention without a model. */
#include <stdio.h>

#include "examples.h"

static int show_operator(const vkf_device* device, const vkf_tensors* inputs, vkf_error* error) {
  //! [vkf_operator_run]
  // Runs a softmax over the rows of the tensor "X" (2,2), and says what it costs.
  const vkf_operator_call call = {.struct_size = sizeof call, .name = "softmax", .inputs = inputs};
  vkf_operator_costs costs = {.struct_size = sizeof costs};
  vkf_tensors* outputs = NULL;
  float y[4] = {0};
  const int ok =
      vkf_operator_run(device, &call, NULL, &outputs, &costs, error) == VKF_OK &&
      vkf_tensors_get_floats(outputs, vkf_tensors_name(outputs, 0), y, 4, error) == VKF_OK;
  if (ok) printf("%.3f in %d dispatches\n", y[0], costs.dispatches);
  vkf_tensors_free(outputs);
  //! [end]
  return ok && y[0] > 0;
}

static int show_recorded(const vkf_device* device, const vkf_tensors* inputs, vkf_error* error) {
  //! [vkf_recorded_operator_create vkf_recorded_operator_count vkf_recorded_operator_get]
  //! [vkf_recorded_operator_free]
  // Prepares a softmax for command buffers, and lists the buffers that its outputs need.
  const vkf_operator_call call = {.struct_size = sizeof call, .name = "softmax", .inputs = inputs};
  vkf_recorded_operator* softmax = NULL;
  int ok = vkf_recorded_operator_create(device, &call, &softmax, error) == VKF_OK;
  const size_t count = vkf_recorded_operator_count(softmax, VKF_OPERATOR_OUTPUTS);
  for (size_t i = 0; ok && i < count; ++i) {
    vkf_operator_tensor tensor = {.struct_size = sizeof tensor};
    ok = vkf_recorded_operator_get(softmax, VKF_OPERATOR_OUTPUTS, i, &tensor, error) == VKF_OK;
    if (ok) printf("%s: %llu bytes\n", tensor.name, (unsigned long long)tensor.bytes);
  }
  vkf_recorded_operator_free(softmax);
  //! [end]
  return ok && count == 1;
}

static int set_matrix(vkf_tensors* tensors, const char* name, const float values[4], size_t rank,
                      vkf_error* error) {
  static const int64_t kShape[3] = {1, 2, 2};
  const vkf_tensor tensor = {sizeof tensor, VKF_F32, kShape + 3 - rank,
                             rank,          values,  4 * sizeof(float)};
  return vkf_tensors_set(tensors, name, &tensor, error) == VKF_OK;
}

static int show_attention(const vkf_device* device, const vkf_tensors* weights,
                          const vkf_tensors* inputs, vkf_error* error) {
  //! [vkf_attention_create vkf_attention_run vkf_attention_free]
  // Two tokens of width 2 attend to themselves and earlier ones. `weights` holds "query.weight",
  // "key.weight" and "value.weight" (2,2), `inputs` "x" (1,2,2).
  const vkf_attention_options options = {
      .struct_size = sizeof options, .d_model = 2, .heads = 1, .causal = 1};
  vkf_attention* attention = NULL;
  vkf_tensors* outputs = NULL;
  float probabilities[4] = {0};  // (1,1,2,2)
  const int ok = vkf_attention_create(device, &options, weights, &attention, error) == VKF_OK &&
                 vkf_attention_run(attention, inputs, &outputs, error) == VKF_OK &&
                 vkf_tensors_get_floats(outputs, "weights", probabilities, 4, error) == VKF_OK;
  printf("%.3f %.3f\n", probabilities[2], probabilities[3]);
  vkf_tensors_free(outputs);
  vkf_attention_free(attention);
  //! [end]
  return ok && probabilities[0] == 1;
}

int show_c_operators(const c_setting* setting) {
  static const float kValues[4] = {1, 2, 3, 4};
  static const float kIdentity[4] = {1, 0, 0, 1};
  vkf_error* error = setting->error;
  vkf_tensors* matrix = NULL;
  vkf_tensors* weights = NULL;
  vkf_tensors* inputs = NULL;
  const int ok =
      vkf_tensors_create(&matrix, error) == VKF_OK && set_matrix(matrix, "X", kValues, 2, error) &&
      show_operator(setting->device, matrix, error) &&
      show_recorded(setting->device, matrix, error) &&
      vkf_tensors_create(&weights, error) == VKF_OK &&
      set_matrix(weights, "query.weight", kIdentity, 2, error) &&
      set_matrix(weights, "key.weight", kIdentity, 2, error) &&
      set_matrix(weights, "value.weight", kIdentity, 2, error) &&
      vkf_tensors_create(&inputs, error) == VKF_OK && set_matrix(inputs, "x", kValues, 3, error) &&
      show_attention(setting->device, weights, inputs, error);
  vkf_tensors_free(inputs);
  vkf_tensors_free(weights);
  vkf_tensors_free(matrix);
  return ok;
}
