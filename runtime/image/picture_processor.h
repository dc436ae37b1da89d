// What a vision model expects of its pictures (preprocessor_config.json), and pictures made so.
// Needs: RgbPicture, vkformer/picture.h for PictureSettings.
#pragma once

#include <span>
#include <string>

#include "checkpoint/json_config.h"
#include "image/picture.h"
#include "vkformer/attention_view.h"
#include "vkformer/picture.h"
#include "vkformer/result.h"
#include "vkformer/tensor.h"

namespace vkformer {

// The settings that preprocessor_config.json of a model directory describes. Where it names no
// processor, model_type of config.json decides.
Result<PictureSettings> load_picture_settings(const std::string& model_dir);

// The same of a parsed file; `model_type` is "" where it is not known.
Result<PictureSettings> parse_picture_settings(const JsonConfig& config,
                                               const std::string& model_type);

// An error that names the first setting that no picture can be made with.
Status check_picture_settings(const PictureSettings& settings);

// The part of a picture of that size that the model sees. Precondition: the settings are checked,
// the sizes positive.
PictureRegion region_of_interest(const PictureSettings& settings, int width, int height);

// Resizes, crops and scales a batch into f32: (B, 3, height, width). Precondition: the settings are
// checked and no pointer is null.
Result<Tensor> make_pixel_values(std::span<const RgbPicture* const> pictures,
                                 const PictureSettings& settings);

}  // namespace vkformer
