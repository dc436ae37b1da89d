// What a vision model expects of its pictures (preprocessor_config.json), and pictures made so.
// Needs: RgbPicture, vkformer/picture.h for PictureSettings.
#pragma once

#include <array>
#include <cstdint>
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

// Width and height in pixels.
struct PictureSize {
  int64_t width = 0, height = 0;
  bool operator==(const PictureSize&) const = default;
};

// An error that names `what` if a picture cannot have that size. It takes 64 bits because files
// claim anything.
Status check_picture_size(int64_t width, int64_t height, const std::string& what,
                          int64_t most_pixels = kMaxPicturePixels);

// Where resizing leaves a picture of that size.
PictureSize resized_size(const PictureSize& picture, const PictureSettings& settings);

// Whether pictures of other proportions come to other sizes, so that they cannot be one batch.
bool keeps_proportions(const PictureSettings& settings);

// The size that all pictures come to, or an error that names the first that differs. Precondition:
// there is a picture.
Result<PictureSize> common_size(std::span<const PictureSize> pictures,
                                const PictureSettings& settings);

// Source minus target coordinate of a center crop: half the surplus, rounded down.
int64_t crop_shift(int64_t from, int64_t to);

// A channel's value for each byte, with the rounding of float arrays.
using PictureValueTable = std::array<std::array<float, 256>, 3>;
PictureValueTable make_values(const PictureSettings& settings);

// Values of a batch at most: 4 GiB of f32.
inline constexpr int64_t kMaxPixelValues = int64_t{1} << 30;

// A part of a picture in pixels; what lies outside the picture is black.
struct PictureRect {
  int64_t left = 0, top = 0, width = 0, height = 0;
};
// Writes that part as planes of f32 (3, height, width).
void write_planes(const RgbPicture& picture, const PictureRect& part,
                  const PictureValueTable& values, std::byte* out);

// The part of a picture of that size that the model sees. Precondition: the settings are checked,
// the sizes positive.
PictureRegion region_of_interest(const PictureSettings& settings, int width, int height);

// Resizes, crops and scales a batch into f32: (B, 3, height, width). Precondition: the settings are
// checked and no pointer is null.
Result<Tensor> make_pixel_values(std::span<const RgbPicture* const> pictures,
                                 const PictureSettings& settings);

}  // namespace vkformer
