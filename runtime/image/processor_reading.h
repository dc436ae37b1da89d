// Reading of preprocessor_config.json that all kinds of image processors share.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "checkpoint/json_config.h"
#include "vkformer/picture.h"
#include "vkformer/result.h"

namespace vkformer {

class FileStore;

// Of the pictures that CLIP was trained on.
inline constexpr std::array kClipMean = {0.48145466, 0.4578275, 0.40821073};
inline constexpr std::array kClipDeviation = {0.26862954, 0.26130258, 0.27577711};

// The settings of a model's image processor: preprocessor_config.json, or what
// processor_config.json has under "image_processor". ErrorCode::kNotFound where there is neither.
Result<JsonConfig> load_processor_config(const FileStore& files);

// image_processor_type, or the older feature_extractor_type; empty where none is named.
Result<std::string> processor_class(const JsonConfig& config);
// "ViT" of "ViTImageProcessorFast" or "ViTFeatureExtractor".
std::string_view class_stem(std::string_view type);

// The value of that key is none that can be, or none that is supported.
Error wrong_value(const JsonConfig& config, const std::string& key, const std::string& problem);
Error not_supported(const JsonConfig& config, const std::string& key, const std::string& problem);

// A side in pixels; an error where no picture has one.
Result<int> to_side(const JsonConfig& config, const std::string& key, int64_t value);
// [resample].
Status read_resampling(const JsonConfig& config, Resampling fallback, PictureSettings& settings);
// The factor alone; values are not normalized.
Status read_factor(const JsonConfig& config, PictureSettings& settings);
// The factor, image_mean and image_std, with what a class has where the file says nothing.
Status read_values(const JsonConfig& config, const std::array<double, 3>& mean,
                   const std::array<double, 3>& deviation, PictureSettings& settings);

// check_picture_settings, with the file in its error.
Status check_read_settings(const JsonConfig& config, const PictureSettings& settings);

}  // namespace vkformer
