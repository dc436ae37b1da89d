// c/audio.h: sound as input of models, and as what they speak.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_AUDIO_H
#define VKFORMER_C_AUDIO_H

#include "vkformer/c/source.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// Immutable: one channel of samples.
typedef struct vkf_sound vkf_sound;
typedef struct vkf_log_mel vkf_log_mel;
typedef struct vkf_log_mel_info {
  uint32_t struct_size;
  int32_t sampling_rate;  // samples per second that the model works with
  int64_t chunk_samples;  // samples that one result covers; longer audio is cut there
  int64_t mel_bands;      // rows of the result
  int64_t frames;         // columns of the result
} vkf_log_mel_info;
// Reads a WAV file, resampled to this many samples per second; 0: as they are in the file. [any]
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
// Writes a WAV file of one channel in 16 bits; what lies outside of -1 to 1 is cut off. [any]
VKFORMER_API vkf_status vkf_sound_save(const vkf_sound* sound, const char* path, vkf_error* error);
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

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_AUDIO_H
