// Pictures and sound of the C interface.
#include <algorithm>
#include <iterator>

#include "api/c_enums.h"
#include "base/message.h"
#include "vkformer/attention_view.h"
#include "vkformer/audio.h"
#include "vkformer/picture.h"

struct vkf_log_mel {
  vkformer::LogMelExtractor features;
};

namespace vkformer {

std::vector<Picture> copy_pictures(const vkf_picture* const* pictures, size_t count) {
  if (count != 0) need(pictures, "pictures");
  std::vector<Picture> copies;
  copies.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    need(pictures[i], "picture");
    const Picture& from = pictures[i]->picture;
    Picture copy = take(Picture::from_rgb(from.width(), from.height(), from.rgb()));
    copies.push_back(std::move(copy));
  }
  return copies;
}

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

// By vkf_picture_settings::resampling.
constexpr Resampling kFilters[] = {
    Resampling::kBilinear, Resampling::kLanczos, Resampling::kBilinear, Resampling::kBicubic,
    Resampling::kBox,      Resampling::kHamming, Resampling::kNearest};

Resampling filter_of(int32_t number) {
  if (number >= 0 && static_cast<size_t>(number) < std::size(kFilters)) return kFilters[number];
  refuse(invalid_argument(message(
      {"[resampling] is ", number, "; choices run from 0 to ", std::size(kFilters) - 1, "."})));
}

PictureSettings picture_settings(const vkf_picture_settings* settings) {
  const vkf_picture_settings given = read_struct(settings, "picture settings");
  PictureSettings made;
  made.fit = value_of<PictureFit>(given.fit, "fit");
  made.resampling = filter_of(given.resampling);
  if (given.width != 0) made.width = given.width;
  if (given.height != 0) made.height = given.height;
  if (given.shortest_edge != 0) made.shortest_edge = given.shortest_edge;
  made.crop_width = given.crop_width;
  made.crop_height = given.crop_height;
  if (given.rescale != 0) made.rescale = given.rescale;
  if (given.std[0] != 0 || given.std[1] != 0 || given.std[2] != 0) {
    std::copy_n(given.mean, 3, made.image_mean.begin());
    std::copy_n(given.std, 3, made.image_std.begin());
  }
  return made;
}

vkf_picture_settings view_settings(const PictureSettings& from) {
  vkf_picture_settings c{};
  c.fit = number_of(from.fit);
  for (size_t i = 1; i < std::size(kFilters); ++i) {
    if (kFilters[i] == from.resampling) c.resampling = static_cast<int32_t>(i);
  }
  c.width = from.width;
  c.height = from.height;
  c.shortest_edge = from.shortest_edge;
  c.crop_width = from.crop_width;
  c.crop_height = from.crop_height;
  c.rescale = from.rescale;
  std::copy_n(from.image_mean.begin(), 3, c.mean);
  std::copy_n(from.image_std.begin(), 3, c.std);
  return c;
}

std::unique_ptr<vkf_picture> picture_handle(Result<Picture> made) {
  Picture picture = take(std::move(made));
  return handle(vkf_picture{std::move(picture)});
}

std::unique_ptr<vkf_sound> sound_handle(Result<Sound> made) {
  Sound sound = take(std::move(made));
  return handle(vkf_sound{std::move(sound)});
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_picture_load(const char* path, vkf_picture** picture, vkf_error* error) {
  return make_handle(picture, error, [&] {
    need(path, "path");
    return picture_handle(Picture::load(path));
  });
}

vkf_status vkf_picture_decode(const void* data, size_t size, const char* name,
                              vkf_picture** picture, vkf_error* error) {
  return make_handle(picture, error, [&] {
    need(data, "data");
    return picture_handle(
        Picture::decode({static_cast<const std::byte*>(data), size}, text_or(name, "memory")));
  });
}

vkf_status vkf_picture_from_pixels(const vkf_pixels* pixels, vkf_picture** picture,
                                   vkf_error* error) {
  return make_handle(picture, error, [&] {
    const vkf_pixels given = read_needed(pixels, "pixels");
    need(given.bytes, "bytes of the pixels");
    PixelView view;
    view.bytes = {static_cast<const uint8_t*>(given.bytes), given.byte_count};
    view.width = given.width;
    view.height = given.height;
    view.stride = given.stride;
    view.format = value_of<PixelFormat>(given.format, "format");
    return picture_handle(Picture::from_pixels(view));
  });
}

vkf_status vkf_picture_get(const vkf_picture* picture, vkf_pixels* pixels, vkf_error* error) {
  return guard(error, [&] {
    need(picture, "picture");
    const Picture& from = picture->picture;
    vkf_pixels c{};
    c.format = VKF_RGB8;
    c.bytes = from.rgb().data();
    c.byte_count = from.rgb().size();
    c.width = from.width();
    c.height = from.height();
    c.stride = int64_t{3} * from.width();
    return write_struct(pixels, c, "pixels");
  });
}

void vkf_picture_free(vkf_picture* picture) {
  delete picture;
}

vkf_status vkf_picture_processor_load(const char* directory, vkf_picture_processor** processor,
                                      vkf_error* error) {
  return make_handle(processor, error, [&] {
    need(directory, "directory");
    PictureProcessor made = take(PictureProcessor::load(directory));
    return handle(vkf_picture_processor{std::move(made)});
  });
}

vkf_status vkf_picture_processor_create(const vkf_picture_settings* settings,
                                        vkf_picture_processor** processor, vkf_error* error) {
  return make_handle(processor, error, [&] {
    const PictureSettings read = picture_settings(settings);
    PictureProcessor made = take(PictureProcessor::from_settings(read));
    return handle(vkf_picture_processor{std::move(made)});
  });
}

vkf_status vkf_picture_processor_settings(const vkf_picture_processor* processor,
                                          vkf_picture_settings* settings, vkf_error* error) {
  return guard(error, [&] {
    need(processor, "processor");
    return write_struct(settings, view_settings(processor->processor.settings()),
                        "picture settings");
  });
}

vkf_status vkf_picture_processor_seen(const vkf_picture_processor* processor, int32_t width,
                                      int32_t height, double region[4], vkf_error* error) {
  return guard(error, [&] {
    need_all({{processor, "processor"}, {region, "region"}});
    const PictureRegion seen = take(seen_region(processor->processor.settings(), width, height));
    region[0] = seen.left;
    region[1] = seen.top;
    region[2] = seen.width;
    region[3] = seen.height;
  });
}

vkf_status vkf_picture_processor_run(const vkf_picture_processor* processor,
                                     const vkf_picture* const* pictures, size_t count,
                                     vkf_tensors** tensors, vkf_error* error) {
  return make_handle(tensors, error, [&] {
    need(processor, "processor");
    const std::vector<Picture> copies = copy_pictures(pictures, count);
    Tensor values = take(processor->processor.process(copies));
    return one_tensor("pixel_values", std::move(values));
  });
}

void vkf_picture_processor_free(vkf_picture_processor* processor) {
  delete processor;
}

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
    need_all({{wav, "wav"}, {wav->data, "data of the file"}});
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
