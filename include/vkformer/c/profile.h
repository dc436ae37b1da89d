// c/profile.h: what a device takes for its work: times of every dispatch, the roofline, the tuner.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_PROFILE_H
#define VKFORMER_C_PROFILE_H

#include "vkformer/c/device.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

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

// From here on every dispatch is timed. This holds for sessions whose first run of a shape comes
// after this call. Each pass is then submitted and waited for by itself. [one]
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

// The tuner: times the kernels of matrix products on this device. It stores the fastest in a file
// next to the pipeline cache, for devices that are then made with vkf_device_options' tuning.
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

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_PROFILE_H
