// c/speak.h: texts spoken.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_SPEAK_H
#define VKFORMER_C_SPEAK_H

#include "vkformer/c/audio.h"
#include "vkformer/c/tasks.h"

#ifdef __cplusplus
extern "C" {
#endif

// What of vkf_speak_options is set.
enum {
  VKF_SPEAK_RATE = 1,
  VKF_SPEAK_NOISE = 2,
  VKF_SPEAK_DURATION_NOISE = 4,
  VKF_SPEAK_SPEAKER = 8
};
typedef struct vkf_speak_options {
  uint32_t struct_size;
  uint32_t set;           // VKF_SPEAK_*; the rest is the model's own
  double speaking_rate;   // 2 speaks in half of the time
  double noise;           // how much chance there is in the voice; 0: none
  double duration_noise;  // and in how long each sound is
  int64_t speaker;        // of a model with several voices, counted from 0
  uint64_t seed;          // the same seed gives the same speech
  uint32_t phonemes;      // 1: the text is phonemes
  uint32_t reserved;
} vkf_speak_options;

// The text spoken, by a task loaded as "speak". [one]
VKFORMER_API vkf_status vkf_task_speak(vkf_task* task, const char* text,
                                       const vkf_speak_options* options, vkf_sound** sound,
                                       vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_SPEAK_H
