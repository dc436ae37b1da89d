// Sound of the C interface.
#include "c_api/support.h"

struct vkf_log_mel {
  vkformer::LogMelExtractor features;
};

namespace vkformer {

std::vector<Sound> copy_sounds(const vkf_sound* const* sounds, size_t count) {
  if (count != 0) need(sounds, "sounds");
  std::vector<Sound> copies;
  copies.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    need(sounds[i], "sound");
    copies.push_back(sounds[i]->sound);
  }
  return copies;
}

namespace {

std::unique_ptr<vkf_sound> sound_handle(Result<Sound> made) {
  Sound sound = take(std::move(made));
  return handle(vkf_sound{std::move(sound)});
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_sound_load(const char* path, int32_t sampling_rate, vkf_sound** sound,
                          vkf_error* error) {
  return make_handle(sound, error, [&] {
    need(path, "path");
    return sound_handle(load_wav(path, sampling_rate));
  });
}

vkf_status vkf_sound_decode(const vkf_file* wav, int32_t sampling_rate, vkf_sound** sound,
                            vkf_error* error) {
  return make_handle(sound, error, [&] {
    need(wav, "wav");
    need(wav->data, "data of the file");
    return sound_handle(decode_wav_bytes({static_cast<const std::byte*>(wav->data), wav->size},
                                         text_or(wav->name, "memory"), sampling_rate));
  });
}

vkf_status vkf_sound_create(const float* samples, size_t count, int32_t sampling_rate,
                            vkf_sound** sound, vkf_error* error) {
  return make_handle(sound, error, [&] {
    if (count != 0) need(samples, "samples");
    Sound made;
    if (count != 0) made.samples.assign(samples, samples + count);
    made.sampling_rate = sampling_rate;
    return sound_handle(std::move(made));
  });
}

vkf_status vkf_sound_resample(const vkf_sound* sound, int32_t sampling_rate, vkf_sound** resampled,
                              vkf_error* error) {
  return make_handle(resampled, error, [&] {
    need(sound, "sound");
    return sound_handle(resample_sound(sound->sound, sampling_rate));
  });
}

const float* vkf_sound_samples(const vkf_sound* sound) {
  return sound != nullptr ? sound->sound.samples.data() : nullptr;
}

size_t vkf_sound_count(const vkf_sound* sound) {
  return sound != nullptr ? sound->sound.samples.size() : 0;
}

int32_t vkf_sound_sampling_rate(const vkf_sound* sound) {
  return sound != nullptr ? sound->sound.sampling_rate : 0;
}

vkf_status vkf_sound_save(const vkf_sound* sound, const char* path, vkf_error* error) {
  return guard(error, [&] {
    need_all({{sound, "sound"}, {path, "path"}});
    take(save_wav(path, sound->sound));
  });
}

void vkf_sound_free(vkf_sound* sound) {
  delete sound;
}

vkf_status vkf_log_mel_load(const char* directory, vkf_log_mel** features, vkf_error* error) {
  return make_handle(features, error, [&] {
    need(directory, "directory");
    LogMelExtractor made = take(LogMelExtractor::load(directory));
    return handle(vkf_log_mel{std::move(made)});
  });
}

vkf_status vkf_log_mel_get_info(const vkf_log_mel* features, vkf_log_mel_info* info,
                                vkf_error* error) {
  return guard(error, [&] {
    need(features, "features");
    vkf_log_mel_info c{};
    c.sampling_rate = features->features.sampling_rate();
    c.chunk_samples = features->features.chunk_samples();
    c.mel_bands = features->features.mel_bands();
    c.frames = features->features.frames();
    return write_struct(info, c, "log-mel info");
  });
}

vkf_status vkf_log_mel_run(const vkf_log_mel* features, const vkf_sound* sound,
                           vkf_tensors** tensors, vkf_error* error) {
  return make_handle(tensors, error, [&] {
    need_all({{features, "features"}, {sound, "sound"}});
    Tensor values = take(features->features.extract(sound->sound));
    return one_tensor("input_features", std::move(values));
  });
}

void vkf_log_mel_free(vkf_log_mel* features) {
  delete features;
}
