// c/operators.h: one operator by name, and multi-head attention without a model.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_OPERATORS_H
#define VKFORMER_C_OPERATORS_H

#include "vkformer/c/device.h"
#include "vkformer/c/slices.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// One application of an operator; names, attributes and shapes are those of docs/operators.md.
typedef struct vkf_operator_call {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;             // "gemm", "attention", "layer_norm", ...
  const char* attributes_json;  // {"causal": true}; null: none
  const vkf_tensors* inputs;
} vkf_operator_call;
typedef struct vkf_operator_options {
  uint32_t struct_size;
  int32_t repeats;  // runs, which must all give the same bits; 0: 1
  uint32_t poison;  // 1: outputs and temporaries are filled with NaN before each run
  uint32_t reserved;
  const char* precision;  // "f32" (the default), "f16", "reproducible" or "int8"
  const char* weights;    // how weight-like inputs are stored, as vkf_model_options; f32 if null
} vkf_operator_options;
typedef struct vkf_operator_costs {
  uint32_t struct_size;
  int32_t dispatches;
  uint64_t scratch_bytes;  // device memory beyond inputs and outputs
  double milliseconds;     // median device time of a run
  double flops;            // of all dispatches, an upper bound where masks hide pairs
  double bytes;            // that they read and write, likewise
} vkf_operator_costs;
// The names that can be run. [any]
VKFORMER_API vkf_status vkf_operator_names(vkf_strings** names, vkf_error* error);
// Runs one; `costs` may be null. [any]
VKFORMER_API vkf_status vkf_operator_run(const vkf_device* device, const vkf_operator_call* call,
                                         const vkf_operator_options* options, vkf_tensors** outputs,
                                         vkf_operator_costs* costs, vkf_error* error);

// One operator for fixed shapes, appended to the application's own command buffers. It and its
// buffers must outlive the execution of every command buffer that it was recorded into.
typedef struct vkf_recorded_operator vkf_recorded_operator;
// A tensor that it reads or writes: contiguous, 4 bytes an element.
typedef struct vkf_operator_tensor {
  uint32_t struct_size;
  vkf_dtype dtype;
  const char* name;
  const int64_t* shape;
  size_t rank;
  uint64_t bytes;  // that its buffer must have at least
} vkf_operator_tensor;
enum { VKF_OPERATOR_INPUTS = 0, VKF_OPERATOR_OUTPUTS = 1 };
// Of inputs that will be bound only dtype and shape are used; the others are uploaded, here. [any]
VKFORMER_API vkf_status vkf_recorded_operator_create(const vkf_device* device,
                                                     const vkf_operator_call* call,
                                                     vkf_recorded_operator** recorded,
                                                     vkf_error* error);
VKFORMER_API void vkf_recorded_operator_free(vkf_recorded_operator* recorded);
// What can be bound; `side` is VKF_OPERATOR_INPUTS or VKF_OPERATOR_OUTPUTS. [any]
VKFORMER_API size_t vkf_recorded_operator_count(const vkf_recorded_operator* recorded,
                                                int32_t side);
// [any]
VKFORMER_API vkf_status vkf_recorded_operator_get(const vkf_recorded_operator* recorded,
                                                  int32_t side, size_t index,
                                                  vkf_operator_tensor* tensor, vkf_error* error);
// Says where tensors lie; every output must have a place. Once, before recording. [one]
VKFORMER_API vkf_status vkf_recorded_operator_bind(vkf_recorded_operator* recorded,
                                                   const vkf_buffer_range* ranges, size_t count,
                                                   vkf_error* error);
// Appends to a VkCommandBuffer that is being recorded, outside a render pass: see
// RecordedOperator::record in vulkan_interop.h. [one]
VKFORMER_API vkf_status vkf_recorded_operator_record(vkf_recorded_operator* recorded,
                                                     void* command_buffer, vkf_error* error);

// Multi-head attention (Vaswani et al. 2017) without any model. Immutable.
typedef struct vkf_attention vkf_attention;
enum { VKF_PROJECT_SEPARATE = 0, VKF_PROJECT_MERGED = 1, VKF_PROJECT_SHARED_BY_HEADS = 2 };
typedef struct vkf_attention_options {
  uint32_t struct_size;
  int32_t projection;     // how query, key and value weights are stored
  int64_t d_model;        // D, the width of a token
  int64_t heads;          // H, a divisor of D; 0: 1
  uint32_t causal;        // 1: a token may not look at later tokens
  uint32_t drop_weights;  // 1: vkf_attention_run gives no "weights", which saves a pass
} vkf_attention_options;
// `weights` as MultiHeadAttention::create names them (attention.h): "query.weight" (D,D), ... [any]
VKFORMER_API vkf_status vkf_attention_create(const vkf_device* device,
                                             const vkf_attention_options* options,
                                             const vkf_tensors* weights, vkf_attention** attention,
                                             vkf_error* error);
// Inputs: "x" (B,T,D), and "key_mask" (B,T), nonzero = may be looked at, or none. Outputs: "output"
// (B,T,D), "weights" (B,H,T,T). [any]
VKFORMER_API vkf_status vkf_attention_run(const vkf_attention* attention, const vkf_tensors* inputs,
                                          vkf_tensors** outputs, vkf_error* error);
VKFORMER_API void vkf_attention_free(vkf_attention* attention);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_OPERATORS_H
