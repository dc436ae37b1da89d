// vkformer.h: the C interface, for C99 and for every language that can call C. docs/c_api.md shows
// its shape and two whole programs.
//
// Objects are opaque handles: vkf_x_create, _load and the like make one, vkf_x_free gives it back
// (null is allowed). They keep alive what they were made from: a model its device, a session its
// model, in whatever order they are freed. Texts are UTF-8, end with a zero byte, and are copied.
// What a getter points to stays until its handle is freed, unless its comment says otherwise.
//
// Structs that begin with struct_size carry their version: set it to sizeof, and all that you do
// not set to zero, which always means the default:
//   vkf_run_options options = {.struct_size = sizeof options};
// A shorter struct, of a program built with an older header, gets defaults for what it lacks; a
// longer one, of a newer header, is taken as long as what this library does not know is zero, and
// is VKF_UNSUPPORTED otherwise. Where the library fills a struct, it does so up to struct_size, and
// with zeros beyond what it knows. A null pointer to options means all defaults. The few structs
// without struct_size never change.
//
// Calls that can fail return a vkf_status and describe the failure in the vkf_error that they are
// given, or nowhere if that is null. Handles that they make are then null. Nothing throws, nothing
// aborts, nothing is global. A callback must not throw or jump out of the call.
//
// Threading, at the end of each comment:
//   [any]   from any thread, on the same handles at the same time too
//   [one]   one thread at a time for the first handle; other handles of its kind do not matter
// A vkf_error is [one] in every call. Nothing may be freed while another call uses it.
#ifndef VKFORMER_VKFORMER_H
#define VKFORMER_VKFORMER_H

#include <stddef.h>
#include <stdint.h>

#include "vkformer/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// Grows by one when functions, fields or values are added; none is changed or taken away while the
// library's soname stays.
#define VKF_API_VERSION 1u

// The VKF_API_VERSION of the library that is linked. [any]
VKFORMER_API uint32_t vkf_api_version(void);
// Its version in words, "0.1.0". [any]
VKFORMER_API const char* vkf_version_text(void);

// ---- Errors, bytes, lists of strings

typedef int32_t vkf_status;
enum {
  VKF_OK = 0,
  VKF_INVALID_ARGUMENT = 1,  // the caller's value is outside what the call accepts
  VKF_NOT_FOUND = 2,         // a file, device, tensor or name does not exist
  VKF_INVALID_FILE = 3,      // a file's content is malformed, truncated or hostile
  VKF_UNSUPPORTED = 4,       // well-formed, but this build, model family or device cannot do it
  VKF_OUT_OF_MEMORY = 5,     // host or device memory, or a configured budget, is exhausted
  VKF_DEVICE_LOST = 6,       // the Vulkan device was lost; make a new device
  VKF_DRIVER = 7,            // a Vulkan call failed in another way
  VKF_CANCELLED = 8,         // the caller asked to stop
  VKF_INTERNAL = 9,          // a bug in vkformer; please report it
  VKF_QUEUE_FULL = 10  // a queue holds its maximum; try again after some of its work has ended
};
// "VKF_NOT_FOUND" and so on; "unknown" for a number that is no status. [any]
VKFORMER_API const char* vkf_status_name(vkf_status status);

// Holds the outcome of the last call that it was given to: make one per thread, and reuse it.
typedef struct vkf_error vkf_error;
// Null when memory is exhausted. [any]
VKFORMER_API vkf_error* vkf_error_create(void);
VKFORMER_API void vkf_error_free(vkf_error* error);
// VKF_OK after a success. [one]
VKFORMER_API vkf_status vkf_error_status(const vkf_error* error);
// One full sentence with the value, the limit and what to do; "" after a success. Stays until the
// next call that is given this error. [one]
VKFORMER_API const char* vkf_error_message(const vkf_error* error);

// A text or a file's bytes that a call made.
typedef struct vkf_bytes vkf_bytes;
// [any]
VKFORMER_API const void* vkf_bytes_data(const vkf_bytes* bytes);
// Without the zero byte that always follows. [any]
VKFORMER_API size_t vkf_bytes_size(const vkf_bytes* bytes);
// The same as a text. [any]
VKFORMER_API const char* vkf_bytes_text(const vkf_bytes* bytes);
VKFORMER_API void vkf_bytes_free(vkf_bytes* bytes);

typedef struct vkf_strings vkf_strings;
// [any]
VKFORMER_API size_t vkf_strings_count(const vkf_strings* strings);
// Null beyond the last. [any]
VKFORMER_API const char* vkf_strings_get(const vkf_strings* strings, size_t index);
VKFORMER_API void vkf_strings_free(vkf_strings* strings);

// Token ids, as token.h has them: 0 to 2^31 - 1, in 64 bits everywhere. Never changes.
typedef struct vkf_ids {
  const int64_t* ids;
  size_t count;
} vkf_ids;

// ---- Tensors

typedef int32_t vkf_dtype;
enum {
  VKF_F32 = 0,
  VKF_F64 = 1,
  VKF_F16 = 2,
  VKF_BF16 = 3,
  VKF_I64 = 4,
  VKF_I32 = 5,
  VKF_I16 = 6,
  VKF_I8 = 7,
  VKF_U64 = 8,
  VKF_U32 = 9,
  VKF_U16 = 10,
  VKF_U8 = 11,
  VKF_BOOL = 12
};

// A dense array in host memory: row-major, slowest dimension first, little-endian.
typedef struct vkf_tensor {
  uint32_t struct_size;
  vkf_dtype dtype;
  const int64_t* shape;  // of `rank` elements; null for a scalar
  size_t rank;
  const void* data;
  size_t bytes;
} vkf_tensor;

// Tensors by name: inputs and outputs of models and operators. Functions that only read them are
// [any] as long as nobody sets one.
typedef struct vkf_tensors vkf_tensors;
// [any]
VKFORMER_API vkf_status vkf_tensors_create(vkf_tensors** tensors, vkf_error* error);
// Every tensor of a safetensors file. [any]
VKFORMER_API vkf_status vkf_tensors_read(const char* path, vkf_tensors** tensors, vkf_error* error);
// Writes a safetensors file; an existing one is replaced whole or not at all. [any]
VKFORMER_API vkf_status vkf_tensors_write(const vkf_tensors* tensors, const char* path,
                                          vkf_error* error);
VKFORMER_API void vkf_tensors_free(vkf_tensors* tensors);
// Copies a tensor in; one of that name is replaced. [one]
VKFORMER_API vkf_status vkf_tensors_set(vkf_tensors* tensors, const char* name,
                                        const vkf_tensor* tensor, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_tensors_count(const vkf_tensors* tensors);
// In order of names; null beyond the last. [any]
VKFORMER_API const char* vkf_tensors_name(const vkf_tensors* tensors, size_t index);
// A look at one; it stays until the tensor is replaced or the tensors are freed. [any]
VKFORMER_API vkf_status vkf_tensors_get(const vkf_tensors* tensors, const char* name,
                                        vkf_tensor* tensor, vkf_error* error);
// Copies the elements of a tensor of any float type, widened to f32; `count` must be their number.
// [any]
VKFORMER_API vkf_status vkf_tensors_get_floats(const vkf_tensors* tensors, const char* name,
                                               float* values, size_t count, vkf_error* error);
// The same for integers and booleans. [any]
VKFORMER_API vkf_status vkf_tensors_get_ints(const vkf_tensors* tensors, const char* name,
                                             int64_t* values, size_t count, vkf_error* error);

// ---- Devices

typedef struct vkf_device vkf_device;
typedef struct vkf_devices vkf_devices;

typedef int32_t vkf_log_level;
enum { VKF_LOG_INFO = 0, VKF_LOG_WARNING = 1, VKF_LOG_ERROR = 2 };
// Called from whichever thread has something to say, perhaps from several at once; it must not call
// vkformer. `message` is valid during the call.
typedef void (*vkf_log_function)(void* data, vkf_log_level level, const char* message);
// Any function; cast it back to its own type before calling it.
typedef void (*vkf_any_function)(void);

typedef int32_t vkf_queue_priority;
// Low where the driver has an extension for it, so that it does not starve graphics.
enum { VKF_PRIORITY_LOW = 0, VKF_PRIORITY_NORMAL = 1 };
#define VKF_NO_COMPILE_THREADS UINT32_MAX

typedef struct vkf_device_options {
  uint32_t struct_size;
  // 1: enable the Khronos validation layer when it is installed; its messages go to `log`.
  uint32_t validation;
  // "best" (the default), an index as `vkformer devices` prints it, or a part of a name.
  const char* device;
  // Highest tier to use: "best" (the default), "baseline", "subgroup", "fp16" or "matrix".
  const char* tier;
  // Limits to clamp to: "" (the default), "android-2022" or "vulkan-minimum".
  const char* limits;
  // Directory of the pipeline cache; "" (the default) is the user's cache directory, "none" none.
  const char* cache_directory;
  // Gets what is worth knowing beside results and errors; null: validation messages go to stderr.
  vkf_log_function log;
  void* log_data;
  // const VkAllocationCallbacks*, for the host memory of Vulkan objects; copied. Null: the
  // driver's.
  const void* allocator;
  // Bytes of device memory that vkformer may allocate on this device; 0: as many as there are.
  uint64_t memory_budget;
  // How a queue of vkformer's own stands against others.
  vkf_queue_priority queue_priority;
  // 1: choose kernels as vkf_device_tune found them fastest on this device.
  uint32_t tuning;
  // Threads beside the calling one that make pipelines; 0: 3, VKF_NO_COMPILE_THREADS: none.
  uint32_t compile_threads;
  uint32_t reserved;
} vkf_device_options;

typedef struct vkf_device_info {
  uint32_t struct_size;
  int32_t index;             // among the devices of this machine
  const char* name;          // as the driver gives it
  const char* driver;        // driver name and version
  const char* kind;          // "discrete", "integrated", "software" or "other"
  const char* api_version;   // "1.3.230"
  const char* uuid;          // 32 hexadecimal digits
  const char* best_tier;     // the highest tier the device can run
  const char* const* notes;  // features that are missing, workarounds in force
  size_t note_count;
  uint64_t memory_bytes;       // the largest device-local heap
  uint64_t max_storage_range;  // bytes one binding can cover
  uint32_t subgroup_size;      // invocations
  uint32_t max_shared_bytes;   // per workgroup
  uint32_t max_invocations;    // per workgroup
  uint32_t reserved;
} vkf_device_info;

// An application's own Vulkan device, handed over as it is; Vulkan's types are void* here, so that
// this header needs none of its headers. Its objects must outlive everything made from them.
typedef struct vkf_adopted_device {
  uint32_t struct_size;
  uint32_t queue_family;  // must support compute
  uint32_t api_version;   // as in VkApplicationInfo::apiVersion; 0: Vulkan 1.1
  uint32_t enabled_extension_count;
  const char* const* enabled_extensions;    // device extensions
  vkf_any_function get_instance_proc_addr;  // PFN_vkGetInstanceProcAddr
  void* instance;                           // VkInstance
  void* physical_device;                    // VkPhysicalDevice
  void* device;                             // VkDevice
  void* queue;                              // VkQueue
  // const VkPhysicalDeviceFeatures2*, as passed to vkCreateDevice; null: none is assumed.
  const void* enabled_features;
  // Called around every submission, when the application submits to this queue too.
  void (*queue_lock)(void* data);
  void (*queue_unlock)(void* data);
  void* queue_lock_data;
  // VkPipelineCache of the application's, in place of a cache file of vkformer's; 0: none.
  uint64_t pipeline_cache;
} vkf_adopted_device;

// Every Vulkan device of this machine, software ones included. [any]
VKFORMER_API vkf_status vkf_devices_list(vkf_devices** devices, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_devices_count(const vkf_devices* devices);
// [any]
VKFORMER_API vkf_status vkf_devices_get(const vkf_devices* devices, size_t index,
                                        vkf_device_info* info, vkf_error* error);
VKFORMER_API void vkf_devices_free(vkf_devices* devices);
// Makes a Vulkan instance and device of vkformer's own. [any]
VKFORMER_API vkf_status vkf_device_create(const vkf_device_options* options, vkf_device** device,
                                          vkf_error* error);
// What is worth enabling before the application makes its VkDevice; nothing is required.
typedef struct vkf_device_requirements {
  uint32_t struct_size;
  uint32_t queue_family;    // for our own queue, computing beside graphics where there is one
  uint32_t shader_float16;  // 1: worth enabling, as are the next two
  uint32_t timeline_semaphore;
  uint32_t shader_int64;
  uint32_t extension_count;
  const char* extensions[4];           // device extensions; the names never go away
  const char* low_priority_extension;  // with which that queue can be made of low priority; or null
  uint32_t cooperative_matrix;         // 1: worth enabling, with vulkanMemoryModel and -DeviceScope
  uint32_t subgroup_size_control;      // 1: the same, with computeFullSubgroups
  // 1: the same for cooperativeMatrixReductions, -Conversions and -PerElementOperations, with
  // maintenance4
  uint32_t cooperative_matrix2;
  // 1: the same for shaderStorageBufferArrayDynamicIndexing, runtimeDescriptorArray and
  // descriptorBindingVariableDescriptorCount and -StorageBufferUpdateAfterBind, without
  // robustBufferAccess
  uint32_t descriptor_indexing;
} vkf_device_requirements;
// Of `host` only get_instance_proc_addr, instance, physical_device and api_version count. [any]
VKFORMER_API vkf_status vkf_device_require(const vkf_adopted_device* host,
                                           vkf_device_requirements* requirements, vkf_error* error);
// Wraps the application's device; options->device does not count. [any]
VKFORMER_API vkf_status vkf_device_adopt(const vkf_adopted_device* adopted,
                                         const vkf_device_options* options, vkf_device** device,
                                         vkf_error* error);
// Models and sessions keep the Vulkan device alive behind this handle.
VKFORMER_API void vkf_device_free(vkf_device* device);
// The device as chosen, with its clamped limits. [any]
VKFORMER_API vkf_status vkf_device_get_info(const vkf_device* device, vkf_device_info* info,
                                            vkf_error* error);
// The tier in use: "baseline", "subgroup", "fp16" or "matrix". [any]
VKFORMER_API const char* vkf_device_tier(const vkf_device* device);
// Bytes of device memory held by vkformer's objects on this device. [any]
VKFORMER_API uint64_t vkf_device_memory_in_use(const vkf_device* device);
// Bytes of device memory allocated for them, in blocks: what memory_budget limits. [any]
VKFORMER_API uint64_t vkf_device_memory_allocated(const vkf_device* device);

// The tuner: times the kernels of matrix products on this device and keeps the fastest in a file
// beside the pipeline cache, for devices that are then made with vkf_device_options' tuning.
typedef struct vkf_tune_options {
  uint32_t struct_size;
  uint32_t quick;        // 1: one shape for each number of rows and fewer rounds, for a first look
  double ms_per_choice;  // measured time for each choice, milliseconds; 0: as `quick` says
  double least_gain;     // share of time saved from which a faster kernel is taken; 0: 0.05
} vkf_tune_options;
// One number of rows and one dtype of weights.
typedef struct vkf_tuned_choice {
  uint32_t struct_size;
  int32_t tried;       // kernels and tiles, the usual one included
  const char* shape;   // "8x1024x1024 f16": rows, output features, input features, weights
  const char* usual;   // what is used without tuning: "rows 8x1"
  const char* winner;  // the same, or what is faster
  double usual_ms;
  double winner_ms;
} vkf_tuned_choice;
typedef struct vkf_tune_report vkf_tune_report;
// What the device does at best, by shaders that do nothing else.
typedef struct vkf_roofline {
  uint32_t struct_size;
  uint32_t reserved;
  double fma_gflops;      // f32 multiply-adds, two operations each, 10^9 per second
  double fma_f16_gflops;  // the same in f16; 0 below tier fp16
  double units_gflops;    // f16 products with f32 sums by matrix units; 0 below tier matrix
  double fma_int_gops;    // the same of 32-bit integers
  double copy_gbytes;     // bytes read plus written, 10^9 per second
  double dispatch_us;     // one empty dispatch among many that may overlap, microseconds
  double barrier_us;      // what a barrier before each of them adds
  double submit_us;       // one submit and wait, microseconds
} vkf_roofline;
// Wants the device for itself. [any]
VKFORMER_API vkf_status vkf_device_roofline(const vkf_device* device, vkf_roofline* roofline,
                                            vkf_error* error);

// Times of every dispatch that a device runs.
typedef struct vkf_profile vkf_profile;
typedef struct vkf_dispatch_time {
  uint32_t struct_size;
  uint32_t submit;      // which submit it was part of, from 0
  const char* op;       // operator
  const char* label;    // where in the model
  const char* kernel;   // variant
  const char* shapes;   // of its tensors
  double start;         // microseconds since the first one began
  double microseconds;  // 0 if the device has no timestamps
  double flops;         // upper bounds, where a size is only known on the GPU
  double bytes;
} vkf_dispatch_time;

// From here on every dispatch is timed, of sessions whose first run of a shape comes after this
// call; each pass is then submitted and waited for by itself. [one]
VKFORMER_API vkf_status vkf_device_start_profile(vkf_device* device, vkf_error* error);
// What ran since the start, or since the last call; goes on. [one]
VKFORMER_API vkf_status vkf_device_take_profile(vkf_device* device, vkf_profile** profile,
                                                vkf_error* error);
// [one]
VKFORMER_API vkf_status vkf_device_stop_profile(vkf_device* device, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_profile_count(const vkf_profile* profile);
// [any]
VKFORMER_API vkf_status vkf_profile_get(const vkf_profile* profile, size_t index,
                                        vkf_dispatch_time* time, vkf_error* error);
VKFORMER_API void vkf_profile_free(vkf_profile* profile);
// Wants the device for itself. [any]
VKFORMER_API vkf_status vkf_device_tune(const vkf_device* device, const vkf_tune_options* options,
                                        vkf_tune_report** report, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_tune_report_count(const vkf_tune_report* report);
// [any]
VKFORMER_API vkf_status vkf_tune_report_get(const vkf_tune_report* report, size_t index,
                                            vkf_tuned_choice* choice, vkf_error* error);
// The file that was written; "" where the device keeps no cache, so nothing is stored. [any]
VKFORMER_API const char* vkf_tune_report_file(const vkf_tune_report* report);
VKFORMER_API void vkf_tune_report_free(vkf_tune_report* report);

// ---- Models

// Where a model's files come from. Bytes in memory, and whatever a reader refers to, must stay
// until loading has returned; the loaded model does not need them.
typedef struct vkf_source vkf_source;
// A file by the name that it has in a model directory. Never changes.
typedef struct vkf_file {
  const char* name;
  const void* data;
  size_t size;
} vkf_file;
// The host's own files, read by the thread that loads.
typedef struct vkf_file_reader {
  uint32_t struct_size;
  uint32_t reserved;
  // Stores a file's size and returns 1, or returns 0 where there is none of that name.
  int (*size)(void* data, const char* name, uint64_t* size);
  // Fills `out` with the file's bytes from `offset` on; 0 if that failed, else 1.
  int (*read)(void* data, const char* name, uint64_t offset, void* out, size_t bytes);
  void* data;
} vkf_file_reader;
// A model directory. [any]
VKFORMER_API vkf_status vkf_source_directory(const char* path, vkf_source** source,
                                             vkf_error* error);
// Files in memory, not copied; `name` stands for them in messages. [any]
VKFORMER_API vkf_status vkf_source_memory(const vkf_file* files, size_t count, const char* name,
                                          vkf_source** source, vkf_error* error);
// Files that the host reads. [any]
VKFORMER_API vkf_status vkf_source_reader(const vkf_file_reader* reader, const char* name,
                                          vkf_source** source, vkf_error* error);
VKFORMER_API void vkf_source_free(vkf_source* source);

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
  int64_t new_tokens;  // of a generation; 0: a forward pass
  int64_t beams;       // 0: 1; -1: all that the model's own settings of a generation say
  // Instead of batch and tokens; models that read arrays need them. Null: none.
  const vkf_tensors* inputs;
} vkf_session_sizes;

typedef struct vkf_model_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* weights;         // "stored" (the default), "f32", "f16", "bf16", "q8", "q4", "q4m"
  const char* precision;       // arithmetic: "f32" (the default) or "f16"
  uint64_t most_weight_bytes;  // a matrix of more is stored in slices; 0: the device's limit
  // Called from the loading thread after every weight, with bytes; 0 stops with VKF_CANCELLED.
  int (*progress)(void* data, uint64_t loaded, uint64_t total);
  void* progress_data;
  // What the first session will run: its pipelines are made while the weights go up. Null: nothing.
  const vkf_session_sizes* first_use;
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

// Loads on a thread of its own, from which options->progress is called.
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
// The model, or why there is none; may be called again and gives another handle. [any]
VKFORMER_API vkf_status vkf_load_wait(vkf_load* load, vkf_model** model, vkf_error* error);
// Cancels, and waits for the thread.
VKFORMER_API void vkf_load_free(vkf_load* load);

typedef struct vkf_quantise_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* weights;  // "q8" (the default), "q4", "q4m", "bf16", "f16"
} vkf_quantise_options;
typedef struct vkf_quantise_report {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t tensors;   // of the model
  int64_t matrices;  // of them in the new format
  uint64_t bytes_before;
  uint64_t bytes_after;
} vkf_quantise_report;
// Writes the model of the directory `model`, with smaller matrices, into the directory `target`,
// which is made where it is missing and then loads as the model did. `report` may be null. [any]
VKFORMER_API vkf_status vkf_quantise_model(const char* model, const char* target,
                                           const vkf_quantise_options* options,
                                           vkf_quantise_report* report, vkf_error* error);

// ---- Sessions

typedef struct vkf_session vkf_session;
typedef struct vkf_grammar vkf_grammar;
typedef struct vkf_constraint vkf_constraint;
typedef struct vkf_generation vkf_generation;

typedef struct vkf_session_options {
  uint32_t struct_size;
  int32_t recordings;        // kept per kind of pass; 0: 8
  int32_t steps_per_submit;  // decoding steps per submit; 0: 8
  uint32_t prefix_reuse;     // 1: only what follows the longest cached prefix is computed
  const char* cache;         // a generation's keys and values: "f32" (the default), "f16" or "q8"
} vkf_session_options;

// Bits of vkf_run_options::flags.
enum {
  VKF_RUN_ATTENTIONS = 1,        // attentions.l, encoder_attentions.l and so on (B,H,T,S)
  VKF_RUN_SCORES = 2,            // these are scaled scores, -inf where masked, not probabilities
  VKF_RUN_ENTROPY = 4,           // attention_entropy.l and so on, in nats (B,H,T)
  VKF_RUN_HIDDEN_STATES = 8,     // hidden_states.l and so on: the input of layer l (B,T,D)
  VKF_RUN_ATTENTION_LAYER = 16,  // attentions and entropy of layer attention_layer only
  VKF_RUN_ATTENTION_HEAD = 32,   // attentions and entropy of head attention_head only
  VKF_RUN_CLAMP_POSITIONS = 64   // tokens beyond the model's last position take that one
};
typedef struct vkf_run_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t attention_layer;  // counts with VKF_RUN_ATTENTION_LAYER
  int32_t attention_head;   // counts with VKF_RUN_ATTENTION_HEAD
  double temperature;       // divides the scores of every attention; 0: 1
} vkf_run_options;

// Bits of vkf_generate_options::set and vkf_text_options::set: the fields that count.
enum {
  VKF_SET_BEAMS = 1,
  VKF_SET_MAX_NEW_TOKENS = 2,
  VKF_SET_MIN_NEW_TOKENS = 4,
  VKF_SET_RETURN_SEQUENCES = 8,
  VKF_SET_LENGTH_PENALTY = 16,
  VKF_SET_EARLY_STOPPING = 32,
  VKF_SET_EOS = 64,
  VKF_SET_PAD = 128,
  VKF_SET_DECODER_START = 256,
  VKF_SET_DECODER_PROMPT = 512,
  VKF_SET_FORCED_BOS = 1024,
  VKF_SET_FORCED_EOS = 2048,
  VKF_SET_SUPPRESS = 4096,
  VKF_SET_BEGIN_SUPPRESS = 8192,
  VKF_SET_CONTEXT = 16384,
  VKF_SET_SINKS = 32768,
  VKF_SET_BIASES = 65536,
  VKF_SET_BAD_WORDS = 131072
};
// Bits of vkf_choice_options::set.
enum {
  VKF_CHOICE_DRAWN = 1,
  VKF_CHOICE_TEMPERATURE = 2,
  VKF_CHOICE_TOP_K = 4,
  VKF_CHOICE_TOP_P = 8,
  VKF_CHOICE_MIN_P = 16,
  VKF_CHOICE_TYPICAL_P = 32,
  VKF_CHOICE_SEED = 64,
  VKF_CHOICE_REPETITION = 128,
  VKF_CHOICE_PRESENCE = 256,
  VKF_CHOICE_FREQUENCY = 512,
  VKF_CHOICE_NO_REPEAT = 1024,
  VKF_CHOICE_BEAM_GROUPS = 2048,
  VKF_CHOICE_DIVERSITY = 4096,
  VKF_CHOICE_CONTRASTIVE = 8192,
  VKF_CHOICE_CONTRAST = 16384
};
// How tokens are chosen; what has no bit in `set` is as the model says.
typedef struct vkf_choice_options {
  uint32_t struct_size;
  uint32_t set;
  int32_t drawn;               // 1: by chance; 0: the best, or with beams the best texts
  int32_t top_k;               // so many of the likeliest; 0: all
  double temperature;          // divides the scores; 0: the best token
  double top_p;                // the fewest of the likeliest whose probabilities reach so much
  double min_p;                // least probability, as a share of the likeliest token's
  double typical_p;            // those of typical surprise whose probabilities reach so much
  uint64_t seed;               // same seed, same text
  double repetition_penalty;   // divides scores of tokens seen; 1: off
  double presence_penalty;     // subtracted from scores of tokens generated
  double frequency_penalty;    // subtracted for every time a token was generated
  int32_t no_repeat_ngram;     // so many tokens never come twice in the same order; 0: off
  int32_t beam_groups;         // groups of beams, each with a search of its own
  double diversity;            // what a token costs for every beam of other groups that chose it
  double contrast;             // of contrastive search: its weight of likeness to what was before
  int32_t contrastive_tokens;  // contrastive search among so many likeliest tokens; 0: off
  int32_t reserved;
} vkf_choice_options;
// Added to the score of the last token wherever the others come right before it. Never changes.
typedef struct vkf_token_bias {
  vkf_ids tokens;
  double bias;  // -infinity forbids it
} vkf_token_bias;
// What to do behind a token or a piece of text.
typedef int32_t vkf_verdict;
enum {
  VKF_GO_ON = 0,
  VKF_END_TEXT = 1,          // the text ends here
  VKF_CANCEL_GENERATION = 2  // the call fails with VKF_CANCELLED
};
// Gets the tokens of each sequence in order, between submits.
typedef vkf_verdict (*vkf_on_token)(void* user, size_t input, size_t sequence, int64_t id,
                                    double log_probability);
// Settings of a generation; those without their bit in `set` are the model's own.
typedef struct vkf_generate_options {
  uint32_t struct_size;
  uint32_t set;
  int32_t beams;  // 1 is greedy
  int32_t max_new_tokens;
  int32_t min_new_tokens;      // before which no end token may come
  int32_t return_sequences;    // best hypotheses per input, at most `beams`
  double length_penalty;       // exponent of the length a beam's score is divided by
  const char* early_stopping;  // "false", "true" or "never"
  vkf_ids eos;                 // end tokens, at most 8; none: always max_new_tokens
  int64_t pad;
  int64_t decoder_start;
  vkf_ids decoder_prompt;  // what the decoder starts with instead: a language, a task
  int64_t forced_bos;      // token forced first; -1: none
  int64_t forced_eos;      // token forced at the last possible position; -1: none
  vkf_ids suppress;        // never chosen
  vkf_ids begin_suppress;  // not chosen first
  // Of a model that is one decoder: keys that its cache keeps of a row; unset: all. Beyond it the
  // first `sinks` stay and the oldest of the others give way.
  int32_t context;
  int32_t sinks;
  const vkf_choice_options* choice;  // null: as the model says
  const vkf_token_bias* biases;
  size_t bias_count;
  const vkf_ids* bad_words;  // tokens that never come in that order
  size_t bad_word_count;
  vkf_on_token on_token;  // null: nobody; not with beams
  void* on_token_user;
  vkf_constraint* constraint;  // null: none; not with beams. Its call's alone meanwhile.
} vkf_generate_options;

typedef struct vkf_sequence {
  uint32_t struct_size;
  uint32_t reserved;
  vkf_ids ids;   // prompt or start token, what was generated, the end token if one came
  double score;  // sum of log-probabilities; with beams divided by length^length_penalty
  const float* log_probabilities;  // of the tokens that were generated, by the logits
  size_t log_probability_count;    // 0 with beams
} vkf_sequence;

typedef struct vkf_generation_counters {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t steps;            // decoding steps that had live rows
  int64_t submits;          // queue submissions
  int64_t recordings;       // recordings made; 0 when all were reused
  int64_t cache_bytes;      // of keys and values that a decoder writes to in its steps
  vkf_ids step_workgroups;  // of each step, in order; with steps_per_submit = 1 only
  int64_t reused_tokens;    // of prompts, whose keys an earlier call left
} vkf_generation_counters;

// [any]
VKFORMER_API vkf_status vkf_session_create(const vkf_model* model,
                                           const vkf_session_options* options,
                                           vkf_session** session, vkf_error* error);
VKFORMER_API void vkf_session_free(vkf_session* session);
// One full pass. Inputs by name: input_ids (B,S), attention_mask (B,S), token_type_ids,
// position_ids (B,S), decoder_input_ids (B,T), decoder_attention_mask (B,T),
// pixel_values (B,C,height,width), input_features (B,mel,frames), and what the family adds.
// Outputs: last_hidden_state (B,T,D), what the model's head gives, and what the options ask for.
// [one]
VKFORMER_API vkf_status vkf_session_run(vkf_session* session, const vkf_tensors* inputs,
                                        const vkf_run_options* options, vkf_tensors** outputs,
                                        vkf_error* error);
// The model's own settings, with every bit set; what it points to stays until the next call on this
// session. [one]
VKFORMER_API vkf_status vkf_session_generation_defaults(vkf_session* session,
                                                        vkf_generate_options* options,
                                                        vkf_error* error);
// Generates from `count` rows of token ids: the encoder's, or the prompts of a model that is one
// decoder. [one]
VKFORMER_API vkf_status vkf_session_generate(vkf_session* session, const vkf_ids* rows,
                                             size_t count, const vkf_generate_options* options,
                                             vkf_generation** generation, vkf_error* error);
// The same from tensors: input_ids (B,S) with attention_mask (B,S) or none, pixel_values,
// input_features. [one]
VKFORMER_API vkf_status vkf_session_generate_from(vkf_session* session, const vkf_tensors* inputs,
                                                  const vkf_generate_options* options,
                                                  vkf_generation** generation, vkf_error* error);
// "log_probabilities" (T) that the model gives the tokens of a continuation behind an input. [one]
VKFORMER_API vkf_status vkf_session_score(vkf_session* session, const vkf_ids* input,
                                          const vkf_ids* continuation, vkf_tensors** tensors,
                                          vkf_error* error);
// Of the last generation; what they point to stays until the next call on this session. [one]
VKFORMER_API vkf_status vkf_session_counters(vkf_session* session,
                                             vkf_generation_counters* counters, vkf_error* error);
// Requests that join and leave a running batch; see generation_batch.h.
typedef struct vkf_batch vkf_batch;
typedef struct vkf_updates vkf_updates;
typedef struct vkf_batch_options {
  uint32_t struct_size;
  int32_t rows;               // requests that run together; 0: 8
  int32_t capacity;           // tokens of a row; 0: the model's positions, at most 1,024
  int32_t step_tokens;        // of one step, at least `rows`; 0: 16
  int32_t waiting;            // requests that wait at most; 0: 64
  int32_t waiting_of_client;  // of one client; 0: all
  int32_t running_of_client;  // rows of one client; 0: all
  uint32_t forget;            // 1: keys of earlier texts are not reused
  int32_t guesses;            // tokens guessed of a row at most; 0: 4
  int32_t lookup;             // last tokens that are looked up in a text; 0: none
  int32_t context;            // keys that a row keeps; 0: all
  int32_t sinks;              // first keys of a context that stay; 0: 4, -1: none
  const vkf_model* draft;     // a smaller model that guesses; null: none
  int32_t source;             // tokens of an encoder's input; 0: the model's, at most 512
  int32_t reserved;
} vkf_batch_options;
typedef struct vkf_batch_request {
  uint32_t struct_size;
  uint32_t reserved;
  vkf_ids prompt;                       // or the input of an encoder-decoder
  const vkf_generate_options* options;  // null: the model's own, with one beam
  const char* client;                   // who asks; null: nobody in particular
} vkf_batch_request;
enum {
  VKF_REQUEST_RUNS = 0,
  VKF_REQUEST_FINISHED = 1,
  VKF_REQUEST_CANCELLED = 2,
  VKF_REQUEST_FAILED = 3
};
typedef struct vkf_batch_update {
  uint32_t struct_size;
  int32_t state;  // VKF_REQUEST_*
  uint64_t request;
  vkf_ids tokens;         // that came, an end token included
  double score;           // sum of the log-probabilities of all tokens so far
  int64_t steps;          // that had tokens of it, so far, like all that follows
  int64_t prompt_tokens;  // read
  int64_t reused_tokens;  // of the prompt, whose keys were there already
  int64_t new_tokens;
  int64_t guessed_tokens;
  int64_t accepted_tokens;  // of the guessed ones
  const char* error;        // why it failed, or null
  uint64_t sequence;        // of the request's, each of which runs and ends by itself
} vkf_batch_update;
typedef struct vkf_batch_counters {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t steps;
  int64_t prompt_tokens;
  int64_t reused_tokens;
  int64_t new_tokens;
  int64_t guessed_tokens;
  int64_t accepted_tokens;
  int64_t draft_steps;
  int64_t waiting;  // sequences in the queue; a canceled one counts until a step reports its end
  int64_t running;  // requests
  int64_t cache_bytes;
} vkf_batch_counters;
// [any]
VKFORMER_API vkf_status vkf_batch_create(const vkf_model* model, const vkf_batch_options* options,
                                         vkf_batch** batch, vkf_error* error);
VKFORMER_API void vkf_batch_free(vkf_batch* batch);
// The request's number, at least 1. VKF_QUEUE_FULL: take steps, then submit it again. A request of
// more sequences than a queue holds never fits: VKF_INVALID_ARGUMENT. [any]
VKFORMER_API vkf_status vkf_batch_submit(vkf_batch* batch, const vkf_batch_request* given,
                                         uint64_t* request, vkf_error* error);
// Ends a request that waits or runs; the next step tells of it. [any]
VKFORMER_API vkf_status vkf_batch_cancel(vkf_batch* batch, uint64_t request, vkf_error* error);
// Lets requests join, takes one step, and tells what came of it. [one]
VKFORMER_API vkf_status vkf_batch_step(vkf_batch* batch, vkf_updates** updates, vkf_error* error);
// 1: nobody waits, runs or has an update left. [any]
VKFORMER_API uint32_t vkf_batch_idle(const vkf_batch* batch);
VKFORMER_API vkf_status vkf_batch_count(const vkf_batch* batch, vkf_batch_counters* counters,
                                        vkf_error* error);
VKFORMER_API size_t vkf_updates_count(const vkf_updates* updates);
// What it points to stays as long as the updates. [one]
VKFORMER_API vkf_status vkf_updates_get(const vkf_updates* updates, size_t index,
                                        vkf_batch_update* update, vkf_error* error);
VKFORMER_API void vkf_updates_free(vkf_updates* updates);

// A pass within the budget of a frame, slice by slice; its results are the bits that
// vkf_session_run gives. See session.h and vulkan_interop.h.
enum { VKF_RUNNING = 0, VKF_SUBMITTED = 1, VKF_DONE = 2 };
typedef struct vkf_advance {
  uint32_t struct_size;
  int32_t progress;          // VKF_RUNNING, VKF_SUBMITTED or VKF_DONE (the GPU has finished)
  double fraction;           // 0 to 1, submitted so far, by our estimate
  double last_microseconds;  // GPU time of the latest slice known to have run; 0: none yet
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

// Inputs there were. [any]
VKFORMER_API size_t vkf_generation_inputs(const vkf_generation* generation);
// Sequences of an input; 0 beyond the last. [any]
VKFORMER_API size_t vkf_generation_count(const vkf_generation* generation, size_t input);
// One of them, best first. [any]
VKFORMER_API vkf_status vkf_generation_get(const vkf_generation* generation, size_t input,
                                           size_t index, vkf_sequence* sequence, vkf_error* error);
VKFORMER_API void vkf_generation_free(vkf_generation* generation);
// ---- Tokenizers

// Immutable once loaded.
typedef struct vkf_tokenizer vkf_tokenizer;
typedef struct vkf_encodings vkf_encodings;
typedef struct vkf_decode_stream vkf_decode_stream;

// What truncation and padding go by.
enum { VKF_OFF = 0, VKF_TO_LENGTH = 1, VKF_FROM_FILE = 2, VKF_TO_LONGEST = 3 };
// vkf_encode_options::truncation_strategy: which text of a pair loses tokens.
enum { VKF_LONGEST_FIRST = 0, VKF_ONLY_FIRST = 1, VKF_ONLY_SECOND = 2 };
// Bits of vkf_encode_options::flags.
enum {
  VKF_ENCODE_NO_SPECIAL_TOKENS = 1,  // do not add those of the file's post-processor
  VKF_ENCODE_TRUNCATE_LEFT = 2,
  VKF_ENCODE_PAD_LEFT = 4,
  VKF_ENCODE_PAD_ID = 8  // pad with pad_id, and not as the file says
};
typedef struct vkf_encode_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t truncation;  // VKF_OFF, VKF_TO_LENGTH or VKF_FROM_FILE
  int32_t max_length;  // tokens kept at most; 0: 512
  int32_t truncation_strategy;
  int32_t padding;        // VKF_OFF, VKF_TO_LENGTH, VKF_FROM_FILE or VKF_TO_LONGEST
  int32_t padded_length;  // tokens per row with VKF_TO_LENGTH
  int32_t multiple_of;    // rounds rows up to a multiple of this many tokens
  int64_t pad_id;         // counts with VKF_ENCODE_PAD_ID
  int32_t pad_type_id;
  uint32_t reserved;
} vkf_encode_options;

// One encoded text; all arrays have `count` elements.
typedef struct vkf_encoding {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const int64_t* ids;
  const char* const* tokens;
  const int32_t* begins;  // where each token came from, in code points of its text; 0 to 0 for
  const int32_t* ends;    // padding and for special tokens that were added
  const int32_t* type_ids;
  const int32_t* attention_mask;  // 1 for tokens, 0 for padding
} vkf_encoding;

// Reads tokenizer.json, or the file of that name in the directory `path`. [any]
VKFORMER_API vkf_status vkf_tokenizer_load(const char* path, vkf_tokenizer** tokenizer,
                                           vkf_error* error);
// The same from the file's content; `name` stands for the file in messages. [any]
VKFORMER_API vkf_status vkf_tokenizer_parse(const void* json, size_t size, const char* name,
                                            vkf_tokenizer** tokenizer, vkf_error* error);
VKFORMER_API void vkf_tokenizer_free(vkf_tokenizer* tokenizer);
// Tokens of `count` texts. [any]
VKFORMER_API vkf_status vkf_tokenizer_encode(const vkf_tokenizer* tokenizer,
                                             const char* const* texts, size_t count,
                                             const vkf_encode_options* options,
                                             vkf_encodings** encodings, vkf_error* error);
// One encoding of two texts that belong together. [any]
VKFORMER_API vkf_status vkf_tokenizer_encode_pair(const vkf_tokenizer* tokenizer, const char* first,
                                                  const char* second,
                                                  const vkf_encode_options* options,
                                                  vkf_encodings** encodings, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_encodings_count(const vkf_encodings* encodings);
// [any]
VKFORMER_API vkf_status vkf_encodings_get(const vkf_encodings* encodings, size_t index,
                                          vkf_encoding* encoding, vkf_error* error);
VKFORMER_API void vkf_encodings_free(vkf_encodings* encodings);
enum { VKF_DECODE_SPECIAL_TOKENS = 1 };  // writes special tokens too
// The text of ids. [any]
VKFORMER_API vkf_status vkf_tokenizer_decode(const vkf_tokenizer* tokenizer, vkf_ids ids,
                                             uint32_t flags, vkf_bytes** text, vkf_error* error);
// Distinct tokens, added ones included. [any]
VKFORMER_API size_t vkf_tokenizer_vocab_size(const vkf_tokenizer* tokenizer);
// VKF_NOT_FOUND if there is no such token. [any]
VKFORMER_API vkf_status vkf_tokenizer_token_to_id(const vkf_tokenizer* tokenizer, const char* token,
                                                  int64_t* id, vkf_error* error);
// VKF_NOT_FOUND if there is no such id. [any]
VKFORMER_API vkf_status vkf_tokenizer_id_to_token(const vkf_tokenizer* tokenizer, int64_t id,
                                                  vkf_bytes** token, vkf_error* error);
// The bytes that a token adds to a decoded text when it stands behind others: not always whole
// characters. Empty for special tokens and for ids that name none. [any]
VKFORMER_API vkf_status vkf_tokenizer_token_bytes(const vkf_tokenizer* tokenizer, int64_t id,
                                                  vkf_bytes** bytes, vkf_error* error);
// Decoding while ids still arrive; keeps the tokenizer alive. [any]
VKFORMER_API vkf_status vkf_decode_stream_create(const vkf_tokenizer* tokenizer, uint32_t flags,
                                                 vkf_decode_stream** stream, vkf_error* error);
// The text that is certain with this id; often empty. [one]
VKFORMER_API vkf_status vkf_decode_stream_push(vkf_decode_stream* stream, int64_t id,
                                               vkf_bytes** text, vkf_error* error);
// The rest of the text; the stream is then ready for another one. [one]
VKFORMER_API vkf_status vkf_decode_stream_finish(vkf_decode_stream* stream, vkf_bytes** text,
                                                 vkf_error* error);
VKFORMER_API void vkf_decode_stream_free(vkf_decode_stream* stream);

// Ends a text where the first of several strings is complete, while it still arrives in pieces:
// what may be the beginning of one is held back.
typedef struct vkf_stop_strings vkf_stop_strings;
// [any]
VKFORMER_API vkf_status vkf_stop_strings_create(const char* const* stops, size_t count,
                                                vkf_stop_strings** made, vkf_error* error);
// The text that is certain with this piece; nothing once a string was found. [one]
VKFORMER_API vkf_status vkf_stop_strings_push(vkf_stop_strings* stops, const char* piece,
                                              vkf_bytes** text, vkf_error* error);
// What was held back, where no string came. [one]
VKFORMER_API vkf_status vkf_stop_strings_finish(vkf_stop_strings* stops, vkf_bytes** text,
                                                vkf_error* error);
// 1: one of the strings came, and the text ends before it. [one]
VKFORMER_API int vkf_stop_strings_stopped(const vkf_stop_strings* stops);
VKFORMER_API void vkf_stop_strings_free(vkf_stop_strings* stops);

// ---- Grammars and chat templates

// What may be written: GBNF, whose whole text matches the rule `root` (null: "root"), or JSON that
// is valid for a schema. [any]
VKFORMER_API vkf_status vkf_grammar_from_gbnf(const char* text, const char* root,
                                              vkf_grammar** grammar, vkf_error* error);
VKFORMER_API vkf_status vkf_grammar_from_json_schema(const char* schema, vkf_grammar** grammar,
                                                     vkf_error* error);
VKFORMER_API void vkf_grammar_free(vkf_grammar* grammar);
// Whether the grammar matches the whole text. [any]
VKFORMER_API vkf_status vkf_grammar_matches(const vkf_grammar* grammar, const char* text,
                                            int32_t* matches, vkf_error* error);
// A grammar with the tokens of a model, whose logits are `width` wide; `ends` are its end tokens.
// [any]
VKFORMER_API vkf_status vkf_constraint_create(const vkf_grammar* grammar,
                                              const vkf_tokenizer* tokenizer, int64_t width,
                                              vkf_ids ends, vkf_constraint** constraint,
                                              vkf_error* error);
VKFORMER_API void vkf_constraint_free(vkf_constraint* constraint);

typedef struct vkf_chat_template vkf_chat_template;
// Never changes.
typedef struct vkf_message {
  const char* role;  // "system", "user", "assistant"
  const char* content;
} vkf_message;
// A model's chat template. [any]
VKFORMER_API vkf_status vkf_chat_template_load(const vkf_source* source,
                                               vkf_chat_template** chat_template, vkf_error* error);
// One by its text; null: no special tokens, else a JSON object such as {"bos_token": "<s>"}. [any]
VKFORMER_API vkf_status vkf_chat_template_parse(const char* text, const char* special_tokens,
                                                vkf_chat_template** chat_template,
                                                vkf_error* error);
VKFORMER_API void vkf_chat_template_free(vkf_chat_template* chat_template);
// The conversation as a text that ends where the model is to answer. Special tokens are part of it.
// [any]
VKFORMER_API vkf_status vkf_chat_template_render(const vkf_chat_template* chat_template,
                                                 const vkf_message* messages, size_t count,
                                                 vkf_bytes** text, vkf_error* error);

// ---- Pictures

// Immutable: 8-bit RGB.
typedef struct vkf_picture vkf_picture;
typedef struct vkf_picture_processor vkf_picture_processor;

enum { VKF_RGB8 = 0, VKF_BGR8 = 1, VKF_RGBA8 = 2, VKF_BGRA8 = 3, VKF_GREY8 = 4 };
// A raw frame, such as one of a video or a camera.
typedef struct vkf_pixels {
  uint32_t struct_size;
  int32_t format;     // VKF_RGB8 and so on; alpha is dropped
  const void* bytes;  // the rows, from the top
  size_t byte_count;
  int32_t width;   // pixels
  int32_t height;  // pixels
  int64_t stride;  // bytes from one row to the next; 0: rows follow each other without a gap
} vkf_pixels;

enum { VKF_FIT_STRETCH = 0, VKF_FIT_AS_IS = 1, VKF_FIT_SHORTEST_EDGE = 2 };
// What happens to each picture, in this order: resize, crop, value * rescale, and
// (value - mean) / std.
typedef struct vkf_picture_settings {
  uint32_t struct_size;
  int32_t fit;
  int32_t width;          // of VKF_FIT_STRETCH; 0: 224
  int32_t height;         // of VKF_FIT_STRETCH; 0: 224
  int32_t shortest_edge;  // of VKF_FIT_SHORTEST_EDGE; 0: 224
  int32_t resampling;     // 1 Lanczos, 2 bilinear, 3 bicubic, 4 box, 5 Hamming, 6 nearest; 0: 2
  int32_t crop_width;     // of the centre crop; 0: none
  int32_t crop_height;
  double rescale;  // factor of every byte; 0: 1/255
  double mean[3];  // of red, green and blue
  double std[3];   // of red, green and blue; all three 0: mean and std are 0.5
} vkf_picture_settings;

// Reads a PNG, JPEG, BMP, GIF or PNM file. [any]
VKFORMER_API vkf_status vkf_picture_load(const char* path, vkf_picture** picture, vkf_error* error);
// The same from memory; `name` stands for the file in messages. [any]
VKFORMER_API vkf_status vkf_picture_decode(const void* data, size_t size, const char* name,
                                           vkf_picture** picture, vkf_error* error);
// Copies a raw frame. [any]
VKFORMER_API vkf_status vkf_picture_from_pixels(const vkf_pixels* pixels, vkf_picture** picture,
                                                vkf_error* error);
// The picture's own pixels, VKF_RGB8. [any]
VKFORMER_API vkf_status vkf_picture_get(const vkf_picture* picture, vkf_pixels* pixels,
                                        vkf_error* error);
VKFORMER_API void vkf_picture_free(vkf_picture* picture);
// Reads preprocessor_config.json of a model directory. [any]
VKFORMER_API vkf_status vkf_picture_processor_load(const char* directory,
                                                   vkf_picture_processor** processor,
                                                   vkf_error* error);
// For models without that file. [any]
VKFORMER_API vkf_status vkf_picture_processor_create(const vkf_picture_settings* settings,
                                                     vkf_picture_processor** processor,
                                                     vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_picture_processor_settings(const vkf_picture_processor* processor,
                                                       vkf_picture_settings* settings,
                                                       vkf_error* error);
// Which part of a picture of so many pixels the model sees: left, top, width, height; it may reach
// beyond the edges. [any]
VKFORMER_API vkf_status vkf_picture_processor_seen(const vkf_picture_processor* processor,
                                                   int32_t width, int32_t height, double region[4],
                                                   vkf_error* error);
// Tensors with the "pixel_values" of a batch (B,3,height,width). [any]
VKFORMER_API vkf_status vkf_picture_processor_run(const vkf_picture_processor* processor,
                                                  const vkf_picture* const* pictures, size_t count,
                                                  vkf_tensors** tensors, vkf_error* error);
VKFORMER_API void vkf_picture_processor_free(vkf_picture_processor* processor);

// A picture in one of the application's images; see ImageInput in vulkan_interop.h. Never changes.
typedef struct vkf_image_input {
  uint64_t image;   // VkImage
  uint32_t format;  // VkFormat: R8G8B8A8 or B8G8R8A8, UNORM or SRGB
  uint32_t layout;  // VkImageLayout in which it is when it is read, and is left
  uint32_t width;   // pixels, of that level
  uint32_t height;
  uint32_t mip_level;
  uint32_t array_layer;
} vkf_image_input;
typedef struct vkf_image_inputs {
  uint32_t struct_size;
  uint32_t reserved;
  const vkf_image_input* images;  // one for each picture of the batch
  size_t count;
  const vkf_picture_processor* processor;
  const vkf_buffer_range* ranges;  // other tensors, as for vkf_session_start_on_buffers
  size_t range_count;
} vkf_image_inputs;
// Begins a pass of a vision model whose "pixel_values" are made of images by the GPU, to the bits
// that vkf_picture_processor_run gives. `inputs` holds what the model reads besides; it may be
// null. [one]
VKFORMER_API vkf_status vkf_session_start_on_images(vkf_session* session, const vkf_tensors* inputs,
                                                    const vkf_image_inputs* images,
                                                    const vkf_run_options* options,
                                                    vkf_error* error);

// ---- Sound

// Immutable: one channel of samples.
typedef struct vkf_sound vkf_sound;
typedef struct vkf_log_mel vkf_log_mel;
typedef struct vkf_log_mel_info {
  uint32_t struct_size;
  int32_t sampling_rate;  // samples per second that the model works with
  int64_t chunk_samples;  // samples that one result covers; longer sounds are cut there
  int64_t mel_bands;      // rows of the result
  int64_t frames;         // columns of the result
} vkf_log_mel_info;
// Reads a WAV file, resampled to so many samples per second; 0: as they are in the file. [any]
VKFORMER_API vkf_status vkf_sound_load(const char* path, int32_t sampling_rate, vkf_sound** sound,
                                       vkf_error* error);
// The same from memory; `name` stands for the file in messages. [any]
VKFORMER_API vkf_status vkf_sound_decode(const vkf_file* wav, int32_t sampling_rate,
                                         vkf_sound** sound, vkf_error* error);
// Copies samples, -1 to 1 by custom. (N), N the number of samples. [any]
VKFORMER_API vkf_status vkf_sound_create(const float* samples, size_t count, int32_t sampling_rate,
                                         vkf_sound** sound, vkf_error* error);
// The sound at another rate. [any]
VKFORMER_API vkf_status vkf_sound_resample(const vkf_sound* sound, int32_t sampling_rate,
                                           vkf_sound** resampled, vkf_error* error);
// [any]
VKFORMER_API const float* vkf_sound_samples(const vkf_sound* sound);
// [any]
VKFORMER_API size_t vkf_sound_count(const vkf_sound* sound);
// Samples per second. [any]
VKFORMER_API int32_t vkf_sound_sampling_rate(const vkf_sound* sound);
VKFORMER_API void vkf_sound_free(vkf_sound* sound);
// Reads a model directory's settings. [any]
VKFORMER_API vkf_status vkf_log_mel_load(const char* directory, vkf_log_mel** features,
                                         vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_log_mel_get_info(const vkf_log_mel* features, vkf_log_mel_info* info,
                                             vkf_error* error);
// Tensors with the "input_features" of one stretch of sound (1,M,T), M mel bands; another rate is
// resampled. [any]
VKFORMER_API vkf_status vkf_log_mel_run(const vkf_log_mel* features, const vkf_sound* sound,
                                        vkf_tensors** tensors, vkf_error* error);
VKFORMER_API void vkf_log_mel_free(vkf_log_mel* features);

// ---- Tasks

// What one does with a model in one call. Each owns its model, session and tokenizer.
typedef struct vkf_task vkf_task;
typedef struct vkf_findings vkf_findings;

typedef struct vkf_task_options {
  uint32_t struct_size;
  int32_t batch;      // inputs that run together at most; 0: 32
  uint32_t truncate;  // 1: texts that are too long are cut; else an error
  uint32_t reserved;
  const vkf_model_options* model;      // null: defaults
  const vkf_session_options* session;  // null: defaults
} vkf_task_options;

// One of the things that a task found; what the task does not give is null, 0 or empty.
typedef struct vkf_finding {
  uint32_t struct_size;
  int32_t gap;        // fill-mask: which of the text's gaps, counted from 0
  const char* label;  // classify: the class; fill-mask: the token
  const char* text;   // entity, answer, filled, generated, transcribed or describing text
  double score;
  int32_t begin;  // where an entity or answer stands, in code points of the text or context
  int32_t end;
  int64_t token;  // fill-mask: the token's id
  vkf_ids ids;    // generate: what came behind the prompt or start token
} vkf_finding;

// A text, perhaps with a second one to classify together; `pair` is null without. Never changes.
typedef struct vkf_text_pair {
  const char* text;
  const char* pair;
} vkf_text_pair;
// A question, and where its answer is looked for. Never changes.
typedef struct vkf_question {
  const char* question;
  const char* context;
} vkf_question;

enum { VKF_POOL_MODEL = 0, VKF_POOL_MEAN = 1, VKF_POOL_FIRST = 2, VKF_POOL_LAST = 3 };
typedef struct vkf_embed_options {
  uint32_t struct_size;
  int32_t pooling;       // VKF_POOL_MODEL (as the model's files say, else the mean) and so on
  uint32_t unit_length;  // 1: a vector is divided by its length; 0: where the files say so
  uint32_t reserved;
} vkf_embed_options;
// Bits of vkf_answer_options::flags.
enum { VKF_ANSWER_OVERLAP = 1, VKF_ANSWER_NONE_POSSIBLE = 2 };
typedef struct vkf_answer_options {
  uint32_t struct_size;
  uint32_t flags;             // VKF_ANSWER_NONE_POSSIBLE: an answer may be empty
  int32_t max_answer_tokens;  // 0: 15
  int32_t window;             // tokens of a window; 0: 384 or the model's limit
  int32_t overlap;            // counts with VKF_ANSWER_OVERLAP; else 128 or half a window
  int32_t top;                // answers per question; 0: 1
} vkf_answer_options;
// Gets pieces of texts while they are written: whole characters, that nothing takes back. The
// piece is the callback's while it runs.
typedef vkf_verdict (*vkf_on_text)(void* user, size_t input, size_t sequence, const char* piece);
// Settings of a text generation; see also vkf_generate_options.
typedef struct vkf_text_options {
  uint32_t struct_size;
  uint32_t set;        // VKF_SET_BEAMS to VKF_SET_EARLY_STOPPING, VKF_SET_CONTEXT, _SINKS
  const char* prefix;  // stands before every text
  const char* task;    // one of the model's task_specific_params: "summarization"
  const char* source_language;
  const char* target_language;
  int32_t beams;
  int32_t max_new_tokens;
  int32_t min_new_tokens;
  int32_t return_sequences;
  double length_penalty;
  const char* early_stopping;
  int32_t context;
  int32_t sinks;
  const vkf_choice_options* choice;  // null: as the model says
  const char* const* stop;           // a text ends before the first of them
  size_t stop_count;
  const char* const* bad_words;  // never written
  size_t bad_word_count;
  const vkf_grammar* grammar;  // null: none; not with beams
  vkf_on_text on_text;         // null: nobody; not with beams
  void* on_text_user;
  uint32_t has_special_tokens;  // 1: the texts have theirs already, as chat templates write them
  uint32_t reserved;
} vkf_text_options;
typedef struct vkf_transcribe_options {
  uint32_t struct_size;
  uint32_t set;          // VKF_SET_BEAMS, VKF_SET_MAX_NEW_TOKENS
  const char* language;  // "en"; null: what the model hears
  const char* task;      // "transcribe" or "translate"; null: the model's own setting
  int32_t beams;
  int32_t max_new_tokens;  // per window
} vkf_transcribe_options;

// `name` is "embed", "classify", "answer", "fill-mask", "generate", "transcribe" or "caption"; a
// classifier reads texts or pictures, as its model does. [any]
VKFORMER_API vkf_status vkf_task_load(const vkf_device* device, const vkf_source* source,
                                      const char* name, const vkf_task_options* options,
                                      vkf_task** task, vkf_error* error);
VKFORMER_API void vkf_task_free(vkf_task* task);
// [any]
VKFORMER_API vkf_status vkf_task_describe(const vkf_task* task, vkf_description** description,
                                          vkf_error* error);
// fill-mask: what a gap is written as, such as "[MASK]"; null for other tasks. [any]
VKFORMER_API const char* vkf_task_mask_token(const vkf_task* task);
// classify: 1 if the model labels tokens, for vkf_task_find_entities. [any]
VKFORMER_API int vkf_task_finds_entities(const vkf_task* task);
// Tensors with "embeddings", a vector per text (B,D). [one]
VKFORMER_API vkf_status vkf_task_embed(vkf_task* task, const char* const* texts, size_t count,
                                       const vkf_embed_options* options, vkf_tensors** tensors,
                                       vkf_error* error);
// The `top` likeliest labels (0: all) of each text, best first. [one]
VKFORMER_API vkf_status vkf_task_classify(vkf_task* task, const vkf_text_pair* texts, size_t count,
                                          int32_t top, vkf_findings** findings, vkf_error* error);
// The same for pictures. [one]
VKFORMER_API vkf_status vkf_task_classify_pictures(vkf_task* task,
                                                   const vkf_picture* const* pictures, size_t count,
                                                   int32_t top, vkf_findings** findings,
                                                   vkf_error* error);
// The entities of each text, in text order. [one]
VKFORMER_API vkf_status vkf_task_find_entities(vkf_task* task, const char* const* texts,
                                               size_t count, vkf_findings** findings,
                                               vkf_error* error);
// Per question the best answers, best first. [one]
VKFORMER_API vkf_status vkf_task_answer(vkf_task* task, const vkf_question* questions, size_t count,
                                        const vkf_answer_options* options, vkf_findings** findings,
                                        vkf_error* error);
// Per text and gap the `top` likeliest tokens (0: 5), best first. [one]
VKFORMER_API vkf_status vkf_task_fill(vkf_task* task, const char* const* texts, size_t count,
                                      int32_t top, vkf_findings** findings, vkf_error* error);
// Per text its sequences, best first. [one]
VKFORMER_API vkf_status vkf_task_generate(vkf_task* task, const char* const* texts, size_t count,
                                          const vkf_text_options* options, vkf_findings** findings,
                                          vkf_error* error);
// One text per sound. [one]
VKFORMER_API vkf_status vkf_task_transcribe(vkf_task* task, const vkf_sound* const* sounds,
                                            size_t count, const vkf_transcribe_options* options,
                                            vkf_findings** findings, vkf_error* error);
// One text per picture; of the options the search settings count. [one]
VKFORMER_API vkf_status vkf_task_caption(vkf_task* task, const vkf_picture* const* pictures,
                                         size_t count, const vkf_text_options* options,
                                         vkf_findings** findings, vkf_error* error);
// Inputs there were. [any]
VKFORMER_API size_t vkf_findings_inputs(const vkf_findings* findings);
// Findings of an input; 0 beyond the last. [any]
VKFORMER_API size_t vkf_findings_count(const vkf_findings* findings, size_t input);
// [any]
VKFORMER_API vkf_status vkf_findings_get(const vkf_findings* findings, size_t input, size_t index,
                                         vkf_finding* finding, vkf_error* error);
VKFORMER_API void vkf_findings_free(vkf_findings* findings);

// ---- Seeing attention

// Maps of one kind of attention. Functions that only read them are [any].
typedef struct vkf_maps vkf_maps;
typedef struct vkf_maps_info {
  uint32_t struct_size;
  int32_t heads;
  int32_t first_head;  // -1: the only one is a mean over heads
  int32_t rows;        // T
  int32_t columns;     // S
  uint32_t reserved;
  size_t layers;
  const char* kind;
} vkf_maps_info;
enum { VKF_ZERO_TO_ONE = 0, VKF_ZERO_TO_MAX = 1 };
typedef struct vkf_view_options {
  uint32_t struct_size;
  int32_t cell_size;  // pixels a side; 0: chosen
  int32_t range;      // which weights get the lightest and darkest colour
  uint32_t reserved;
  const char* title;
  const char* row_axis;     // heat maps only; null: "generated"
  const char* column_axis;  // heat maps only; null: "source"
} vkf_view_options;
typedef struct vkf_heat_map {
  uint32_t struct_size;
  uint32_t reserved;
  const float* values;  // row-major; rows are queries (T,S)
  int32_t rows;
  int32_t columns;
  const char* const* row_labels;     // `rows` of them, or null for numbers
  const char* const* column_labels;  // `columns` of them, or null for numbers
} vkf_heat_map;
typedef struct vkf_overlay {
  uint32_t struct_size;
  int32_t rows;          // patches from top to bottom
  int32_t columns;       // patches from left to right
  uint32_t zero_to_one;  // 1: the full colour is weight 1, not the largest one
  const float* values;   // one weight a patch (rows*columns)
  double left;           // what the patches cover, in pixels; a width of 0: the whole picture
  double top;
  double width;
  double height;
  double strength;  // of the colour where the weight is highest; 0: 0.75
} vkf_overlay;

// Those that vkf_session_run handed out: "self", "encoder", "decoder" or "cross", of one item of
// the batch. [any]
VKFORMER_API vkf_status vkf_maps_from(const vkf_tensors* outputs, const char* kind, int64_t item,
                                      vkf_maps** maps, vkf_error* error);
// The mean over heads. [any]
VKFORMER_API vkf_status vkf_maps_mean(const vkf_maps* maps, vkf_maps** mean, vkf_error* error);
// Attention rollout (Abnar and Zuidema 2020). [any]
VKFORMER_API vkf_status vkf_maps_rollout(const vkf_maps* maps, vkf_maps** rollout,
                                         vkf_error* error);
// Names the tokens: as many as there are rows and columns, or null for numbers. [one]
VKFORMER_API vkf_status vkf_maps_set_labels(vkf_maps* maps, const char* const* rows,
                                            const char* const* columns, vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_maps_get(const vkf_maps* maps, vkf_maps_info* info, vkf_error* error);
// The number of the layer, and its weights (H,T,S). [any]
VKFORMER_API vkf_status vkf_maps_get_layer(const vkf_maps* maps, size_t index, int32_t* layer,
                                           const float** values, vkf_error* error);
VKFORMER_API void vkf_maps_free(vkf_maps* maps);
// All maps as one picture of small heat maps: a PNG file. [any]
VKFORMER_API vkf_status vkf_maps_grid_png(const vkf_maps* maps, const vkf_view_options* options,
                                          vkf_bytes** png, vkf_error* error);
// A page for a browser, complete in itself. [any]
VKFORMER_API vkf_status vkf_maps_html(const vkf_maps* const* maps, size_t count, const char* title,
                                      vkf_bytes** page, vkf_error* error);
// One matrix as a PNG file. [any]
VKFORMER_API vkf_status vkf_heat_map_png(const vkf_heat_map* map, const vkf_view_options* options,
                                         vkf_bytes** png, vkf_error* error);
// The picture with red where weights are high: a PNG file of its size. [any]
VKFORMER_API vkf_status vkf_overlay_png(const vkf_picture* picture, const vkf_overlay* overlay,
                                        vkf_bytes** png, vkf_error* error);

// What one pass says about its heads. Never changes.
typedef struct vkf_measured_pass {
  const vkf_maps* scores;         // of a pass with VKF_RUN_SCORES
  const float* const* entropies;  // of each layer of these maps, as VKF_RUN_ENTROPY gives it (H,T)
} vkf_measured_pass;
typedef struct vkf_head_options {
  uint32_t struct_size;
  uint32_t reserved;
  double temperature;  // of the passes; 0: 1
  double collapsed;    // above this share of ln n a head attends to everything alike; 0: 0.98
  double saturated;    // below this share of ln n it attends to single keys; 0: 0.05
} vkf_head_options;
enum { VKF_HEAD_USUAL = 0, VKF_HEAD_COLLAPSED = 1, VKF_HEAD_SATURATED = 2 };
// One head, in means over the query rows that may attend to more than one key.
typedef struct vkf_head {
  uint32_t struct_size;
  int32_t state;
  int32_t layer;
  int32_t head;
  int64_t rows;              // that count
  double entropy;            // measured, in nats
  double most_entropy;       // ln n, the entropy of equal weights
  double score_variance;     // of a row's scaled scores before the temperature
  double predicted_entropy;  // ln n - v / (2 temperature^2), in nats
} vkf_head;
typedef struct vkf_heads vkf_heads;
// Judges every head over all passes, which must have the same kind, layers and heads. [any]
VKFORMER_API vkf_status vkf_heads_measure(const vkf_measured_pass* passes, size_t count,
                                          const vkf_head_options* options, vkf_heads** heads,
                                          vkf_error* error);
// [any]
VKFORMER_API size_t vkf_heads_count(const vkf_heads* heads);
// [any]
VKFORMER_API vkf_status vkf_heads_get(const vkf_heads* heads, size_t index, vkf_head* head,
                                      vkf_error* error);
VKFORMER_API void vkf_heads_free(vkf_heads* heads);

// ---- Operators

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
  const char* precision;  // "f32" (the default) or "f16"
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

#endif  // VKFORMER_VKFORMER_H
