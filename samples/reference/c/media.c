/* Examples of pictures and sounds, and of what models read of them. */
#include <stdio.h>
#include <stdlib.h>

#include "examples.h"

static int show_frame(vkf_error* error) {
  //! [vkf_picture_from_pixels vkf_picture_get vkf_picture_free]
  // Makes a picture of a frame of 2 x 2 BGRA pixels, and reads its first pixel.
  const uint8_t frame[16] = {0, 0, 255, 255, 0, 255, 0, 255, 255, 0, 0, 255, 9, 9, 9, 255};
  vkf_pixels pixels = {.struct_size = sizeof pixels,
                       .format = VKF_BGRA8,
                       .bytes = frame,
                       .byte_count = sizeof frame,
                       .width = 2,
                       .height = 2};
  vkf_picture* picture = NULL;
  const int ok = vkf_picture_from_pixels(&pixels, &picture, error) == VKF_OK &&
                 vkf_picture_get(picture, &pixels, error) == VKF_OK;
  const uint8_t* rgb = pixels.bytes;
  if (ok) printf("red %d, green %d, blue %d\n", rgb[0], rgb[1], rgb[2]);
  vkf_picture_free(picture);
  //! [end]
  return ok;
}

static int show_files(const char* path, const void* bytes, size_t size, vkf_error* error) {
  //! [vkf_picture_load vkf_picture_decode]
  // Reads a picture from a file, and one from a file's bytes in memory.
  vkf_picture* loaded = NULL;
  vkf_picture* decoded = NULL;
  const int ok = vkf_picture_load(path, &loaded, error) == VKF_OK &&
                 vkf_picture_decode(bytes, size, "archive/portrait.png", &decoded, error) == VKF_OK;
  vkf_picture_free(decoded);
  vkf_picture_free(loaded);
  //! [end]
  return ok;
}

static int show_processor(const char* directory, const vkf_picture* picture, vkf_error* error) {
  //! [vkf_picture_processor_load vkf_picture_processor_run vkf_picture_processor_free]
  // Makes the input of a vision model of one picture: "pixel_values" (1,3,height,width).
  vkf_picture_processor* processor = NULL;
  vkf_tensors* tensors = NULL;
  vkf_tensor values = {.struct_size = sizeof values};
  const int ok = vkf_picture_processor_load(directory, &processor, error) == VKF_OK &&
                 vkf_picture_processor_run(processor, &picture, 1, &tensors, error) == VKF_OK &&
                 vkf_tensors_get(tensors, "pixel_values", &values, error) == VKF_OK;
  if (ok) printf("%lld x %lld\n", (long long)values.shape[3], (long long)values.shape[2]);
  vkf_tensors_free(tensors);
  vkf_picture_processor_free(processor);
  //! [end]
  return ok;
}

static int show_own_processor(vkf_error* error) {
  //! [vkf_picture_processor_create vkf_picture_processor_settings vkf_picture_processor_seen]
  // Describes what a model of 64 x 64 pixels does to a picture, and which part of it it sees.
  const vkf_picture_settings given = {.struct_size = sizeof given,
                                      .fit = VKF_FIT_SHORTEST_EDGE,
                                      .shortest_edge = 64,
                                      .crop_width = 64,
                                      .crop_height = 64};
  vkf_picture_processor* processor = NULL;
  vkf_picture_settings all = {.struct_size = sizeof all};
  double region[4];
  const int ok = vkf_picture_processor_create(&given, &processor, error) == VKF_OK &&
                 vkf_picture_processor_settings(processor, &all, error) == VKF_OK &&
                 vkf_picture_processor_seen(processor, 200, 100, region, error) == VKF_OK;
  if (ok) printf("mean %.2f, %.0f columns from %.0f on\n", all.mean[0], region[2], region[0]);
  vkf_picture_processor_free(processor);
  //! [end]
  return ok && region[0] == 50;
}

static int show_image_prompts(const vkf_device* device, const char* directory,
                              const vkf_picture* picture, vkf_error* error) {
  vkf_source* source = NULL;
  vkf_model* model = NULL;
  int ok = vkf_source_directory(directory, &source, error) == VKF_OK &&
           vkf_model_load_from(device, source, NULL, &model, error) == VKF_OK;
  //! [vkf_image_prompts_load vkf_image_prompts_placeholder vkf_image_prompts_read]
  //! [vkf_image_prompts_free]
  // Makes "input_ids" and the tensors of a picture of a prompt, for a batch or a session.
  vkf_image_prompts* reader = NULL;
  vkf_tensors* tensors = NULL;
  char text[64];
  ok = ok && vkf_image_prompts_load(model, source, &reader, error) == VKF_OK;
  snprintf(text, sizeof text, "%s What is this?", ok ? vkf_image_prompts_placeholder(reader) : "");
  const vkf_prompt prompt = {text, &picture, 1};
  ok = ok && vkf_image_prompts_read(reader, &prompt, &tensors, error) == VKF_OK;
  printf("%zu tensors\n", vkf_tensors_count(tensors));
  vkf_tensors_free(tensors);
  vkf_image_prompts_free(reader);
  //! [end]
  vkf_model_free(model);
  vkf_source_free(source);
  return ok;
}

static int show_sounds(const char* path, vkf_error* error) {
  //! [vkf_sound_create vkf_sound_resample vkf_sound_save vkf_sound_free]
  // Writes half a second of silence as a WAV file of 16,000 samples per second.
  static const float kSilence[24000];
  vkf_sound* sound = NULL;
  vkf_sound* resampled = NULL;
  const int ok = vkf_sound_create(kSilence, 24000, 48000, &sound, error) == VKF_OK &&
                 vkf_sound_resample(sound, 16000, &resampled, error) == VKF_OK &&
                 vkf_sound_save(resampled, path, error) == VKF_OK;
  vkf_sound_free(resampled);
  vkf_sound_free(sound);
  //! [end]
  return ok;
}

static int show_sound_files(const char* path, const vkf_file* wav, vkf_error* error) {
  //! [vkf_sound_load vkf_sound_decode vkf_sound_samples vkf_sound_count vkf_sound_sampling_rate]
  // Reads a WAV file as it is, and one in memory at 16,000 samples per second.
  vkf_sound* loaded = NULL;
  vkf_sound* decoded = NULL;
  const int ok = vkf_sound_load(path, 0, &loaded, error) == VKF_OK &&
                 vkf_sound_decode(wav, 16000, &decoded, error) == VKF_OK;
  if (ok) {
    printf("%zu samples, %d per second, the first %.3f\n", vkf_sound_count(loaded),
           vkf_sound_sampling_rate(loaded), vkf_sound_samples(loaded)[0]);
  }
  vkf_sound_free(decoded);
  vkf_sound_free(loaded);
  //! [end]
  return ok;
}

static int show_log_mel(const char* directory, const vkf_sound* sound, vkf_error* error) {
  //! [vkf_log_mel_load vkf_log_mel_get_info vkf_log_mel_run vkf_log_mel_free]
  // Makes the input of a speech model of a sound: "input_features" (1,M,T).
  vkf_log_mel* features = NULL;
  vkf_tensors* tensors = NULL;
  vkf_log_mel_info info = {.struct_size = sizeof info};
  const int ok = vkf_log_mel_load(directory, &features, error) == VKF_OK &&
                 vkf_log_mel_get_info(features, &info, error) == VKF_OK &&
                 vkf_log_mel_run(features, sound, &tensors, error) == VKF_OK;
  if (ok) printf("%lld bands, %lld frames\n", (long long)info.mel_bands, (long long)info.frames);
  vkf_tensors_free(tensors);
  vkf_log_mel_free(features);
  //! [end]
  return ok;
}

static int show_pictures(const c_setting* setting) {
  char path[PATH_BYTES], directory[PATH_BYTES];
  vkf_error* error = setting->error;
  vkf_picture* picture = NULL;
  size_t size = 0;
  void* bytes = read_whole_file(path_in(path, setting->tasks, "picture-0.png"), &size);
  int ok = bytes != NULL && show_frame(error) && show_files(path, bytes, size, error) &&
           vkf_picture_load(path, &picture, error) == VKF_OK && show_own_processor(error);
  path_in(directory, setting->tasks, "picture-labels");
  ok = ok && show_processor(directory, picture, error);
  path_in(directory, setting->tasks, "prompts-llava");
  ok = ok && show_image_prompts(setting->device, directory, picture, error);
  vkf_picture_free(picture);
  free(bytes);
  return ok;
}

int show_c_media(const c_setting* setting) {
  char path[PATH_BYTES];
  vkf_error* error = setting->error;
  vkf_sound* sound = NULL;
  vkf_file wav = {.name = "archive/voice.wav"};
  if (!show_pictures(setting)) return 0;
  if (!show_sounds(path_in(path, setting->scratch, "c_silence.wav"), error)) return 0;
  wav.data = read_whole_file(path_in(path, setting->tasks, "sound-0.wav"), &wav.size);
  const int ok = wav.data != NULL && show_sound_files(path, &wav, error) &&
                 vkf_sound_load(path, 0, &sound, error) == VKF_OK &&
                 show_log_mel(path_in(path, setting->tasks, "speech"), sound, error);
  vkf_sound_free(sound);
  free((void*)wav.data);
  return ok;
}
