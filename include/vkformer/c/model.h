// c/model.h: what a model directory holds, and models on a device.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_MODEL_H
#define VKFORMER_C_MODEL_H

#include "vkformer/c/device.h"
#include "vkformer/c/source.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a model directory holds.
typedef struct vkf_description vkf_description;
typedef struct vkf_model_info {
  uint32_t struct_size;
  uint32_t reserved;
  const char* family;         // model_type of config.json
  const char* kind;           // "encoder", "decoder" or "encoder-decoder"
  const char* source;         // what it reads: "tokens", "pictures", "features" of sound, ...
  const char* head;           // "none", "language", "masked", "sequence", "tokens", "spans", ...
  const char* architecture;   // class it was saved from
  const char* const* labels;  // classes of a classifying head
  size_t label_count;
  const char* const* tasks;  // names for vkf_task_load
  size_t task_count;
  size_t tensor_count;
  size_t prompt_token_count;
  int64_t parameters;  // elements in all tensors
  int64_t width;       // D
  int64_t encoder_layers;
  int64_t decoder_layers;
  int64_t encoder_heads;
  int64_t decoder_heads;
  int64_t source_vocab;
  int64_t target_vocab;
  int64_t max_source;  // tokens
  int64_t max_target;  // tokens
} vkf_model_info;
typedef struct vkf_tensor_info {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;
  const char* dtype;  // as safetensors spells it: "F32"
  const char* file;
  const int64_t* shape;
  size_t rank;
} vkf_tensor_info;
// Reads and checks a model directory without a device. [any]
VKFORMER_API vkf_status vkf_describe_directory(const char* path, vkf_description** description,
                                               vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_description_get(const vkf_description* description,
                                            vkf_model_info* info, vkf_error* error);
// One tensor of the checkpoint. [any]
VKFORMER_API vkf_status vkf_description_get_tensor(const vkf_description* description, size_t index,
                                                   vkf_tensor_info* info, vkf_error* error);
// A token that vkf_generate_options::decoder_prompt can hold, by name: a language, a task. [any]
VKFORMER_API vkf_status vkf_description_get_prompt_token(const vkf_description* description,
                                                         size_t index, const char** name,
                                                         int64_t* id, vkf_error* error);
VKFORMER_API void vkf_description_free(vkf_description* description);

// What the models of each family can do.
typedef struct vkf_families vkf_families;
typedef struct vkf_family {
  uint32_t struct_size;
  uint32_t generates;        // 1: greedily and with beams
  const char* family;        // model_type of config.json
  const char* kind;          // as in vkf_model_info
  const char* source;        // as in vkf_model_info
  const char* const* heads;  // as in vkf_model_info, of the models that load
  size_t head_count;
  const char* attention_maps;  // "layers", "stages" or "none"
  const char* inputs;          // what makes its inputs: "BPE", "pictures", ...
} vkf_family;
// [any]
VKFORMER_API vkf_status vkf_families_list(vkf_families** families, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_families_count(const vkf_families* families);
// [any]
VKFORMER_API vkf_status vkf_families_get(const vkf_families* families, size_t index,
                                         vkf_family* family, vkf_error* error);
VKFORMER_API void vkf_families_free(vkf_families* families);

// Sizes of what a session shall run.
typedef struct vkf_session_sizes {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t batch;       // inputs at once; 0: 1
  int64_t tokens;      // of each, or of each prompt; 0: 32
  int64_t new_tokens;  // of a generation; frames of a second pass (vits); 0: one pass
  int64_t beams;       // 0: 1; -1: all that the model's own settings of a generation say
  // Instead of batch and tokens; models that read arrays need them. Null: none.
  const vkf_tensors* inputs;
} vkf_session_sizes;

typedef struct vkf_model_options {
  uint32_t struct_size;
  uint32_t reserved;
  // "stored" (the default), "f32", "f16", "bf16", "q8", "q4", "q4m", "q8_0", "q4_0", "q4_1",
  // "q5_0", "q5_1", "iq4_nl", "mxfp4", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs"
  const char* weights;
  const char* precision;       // arithmetic: "f32" (the default), "f16", "reproducible" or "int8"
  uint64_t most_weight_bytes;  // a matrix of more is stored in slices; 0: the device's limit
  // Called from the loading thread after every weight, with bytes, then while pipelines of
  // first_use are being made, with all bytes; 0 stops with VKF_CANCELLED.
  int (*progress)(void* data, uint64_t loaded, uint64_t total);
  void* progress_data;
  // What the first session will run: its pipelines are made while the weights go up. Null: nothing.
  const vkf_session_sizes* first_use;
  // 1: of vkf_load_start, weights are copied to device memory as vkf_load_advance allows.
  uint32_t paced;
  // 1: the weights of a pack that has them as GPUs read them are copied, also where the device
  // could read the file's pages.
  uint32_t copy_weights;
  // LoRA or DoRA adapters, directories in PEFT's layout or GGUF files, and what multiplies each. Of
  // a model in memory or from a reader, they are looked for among its files before the disk.
  const char* const* adapters;  // adapter_count of them
  const float* adapter_scales;  // likewise, or null: 1
  size_t adapter_count;
  // Devices that hold the model together; the one that it is loaded onto is then not looked at.
  // Slices, warm-up and batches of an encoder-decoder need one device. Null: one device.
  const vkf_device_group* group;
  // Bytes of weights in device memory at most. The others are in host memory that the GPU reads:
  // matrices of experts first, then whole layers from the last one on. 0: what has room.
  uint64_t device_memory;
  // Directories of LoRA adapters that generations choose from, beside the weights, and the names by
  // which they do (vkf_generate_options::adapters).
  const char* const* request_adapters;       // request_adapter_count of them
  const char* const* request_adapter_names;  // request_adapter_count of them
  size_t request_adapter_count;
} vkf_model_options;

typedef struct vkf_plan_options {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t batch;     // 0: 1
  int64_t source;    // tokens; 0: 32
  int64_t target;    // tokens; 0: 32
  int64_t beams;     // 0: 1
  const char* pass;  // "forward" (the default), "prompt" or "step"
} vkf_plan_options;

// Immutable once loaded: sessions on any threads may share one.
typedef struct vkf_model vkf_model;
// Loads a model directory. [any]
VKFORMER_API vkf_status vkf_model_load(const vkf_device* device, const char* directory,
                                       const vkf_model_options* options, vkf_model** model,
                                       vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_model_load_from(const vkf_device* device, const vkf_source* source,
                                            const vkf_model_options* options, vkf_model** model,
                                            vkf_error* error);
VKFORMER_API void vkf_model_free(vkf_model* model);
// [any]
VKFORMER_API vkf_status vkf_model_describe(const vkf_model* model, vkf_description** description,
                                           vkf_error* error);
// Bytes of device memory that the weights take. [any]
VKFORMER_API uint64_t vkf_model_weight_bytes(const vkf_model* model);
// Who of a group has which layers, in words, a line a device; empty on one device. [any]
VKFORMER_API vkf_status vkf_model_group_plan(const vkf_model* model, vkf_bytes** text,
                                             vkf_error* error);
// Other scales for the adapters that it was loaded with, in their order; 0 leaves one out. No
// session of the model may run at the same time.
VKFORMER_API vkf_status vkf_model_set_adapter_scales(vkf_model* model, const float* scales,
                                                     size_t count, vkf_error* error);
// The plan of a pass in words: tensors, memory offsets, dispatches, barriers, costs. [any]
VKFORMER_API vkf_status vkf_model_plan(const vkf_model* model, const vkf_plan_options* options,
                                       vkf_bytes** text, vkf_error* error);

// Device memory, in bytes.
typedef struct vkf_memory_needs {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t weights;
  uint64_t arena;    // activations, of all passes together
  uint64_t cache;    // keys, values and states that a generation carries on
  uint64_t tensors;  // inputs, outputs, masks, tables, the state of a search
  uint64_t staging;  // where the host cannot see device memory
  uint64_t total;
  uint64_t arena_bound;  // the most that is needed at one time: no arena could be smaller
} vkf_memory_needs;
// What a model and one session that runs that much will hold, without loading it: what
// vkf_device_memory_in_use then grows by. [any]
VKFORMER_API vkf_status vkf_model_memory_needs(const vkf_device* device, const vkf_source* source,
                                               const vkf_model_options* options,
                                               const vkf_session_sizes* sizes,
                                               vkf_memory_needs* needs, vkf_error* error);

// Loads on its own thread, from which options->progress is called.
typedef struct vkf_load vkf_load;
// The source's handle may be freed at once; what it refers to must stay. [any]
VKFORMER_API vkf_status vkf_load_start(const vkf_device* device, const vkf_source* source,
                                       const vkf_model_options* options, vkf_load** load,
                                       vkf_error* error);
// Bytes so far, and in all once that is known. [any]
VKFORMER_API vkf_status vkf_load_progress(const vkf_load* load, uint64_t* loaded, uint64_t* total,
                                          vkf_error* error);
// 1 if vkf_load_wait would return at once. [any]
VKFORMER_API int vkf_load_done(const vkf_load* load);
// Asks to stop; the wait then gives VKF_CANCELLED, unless loading was over already. [any]
VKFORMER_API void vkf_load_cancel(vkf_load* load);
// Once a frame, where the load is paced: for how long weights may be copied at most.
// vkf_load_wait lets all that is left go. [any]
VKFORMER_API void vkf_load_advance(vkf_load* load, double microseconds);
// The model, or why there is none; may be called again and gives another handle. [any]
VKFORMER_API vkf_status vkf_load_wait(vkf_load* load, vkf_model** model, vkf_error* error);
// Cancels, and waits for the thread.
VKFORMER_API void vkf_load_free(vkf_load* load);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_MODEL_H
