#include "image/image_patches.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/message.h"
#include "image/processor_reading.h"
#include "image/resize.h"

namespace vkformer {
namespace {

constexpr int64_t kLeastPixels = 56 * 56;
constexpr int64_t kMostPixels = 28 * 28 * 1280;
constexpr int64_t kMostPatchSide = 1024;  // pixels, frames or patches
// Longer pictures are refused, as the library does.
constexpr int64_t kMostProportion = 200;

Result<int64_t> read_count(const JsonConfig& config, const std::string& key, int64_t fallback) {
  VKF_ASSIGN(const int64_t value, config.get_int_or(key, fallback));
  if (value >= 1 && value <= kMostPatchSide) return value;
  return wrong_value(
      config, key,
      "is " + std::to_string(value) + "; it is 1 to " + std::to_string(kMostPatchSide) + ".");
}

}  // namespace

Result<ImagePatches> ImagePatches::parse(const JsonConfig& config) {
  ImagePatches made;
  VKF_CHECK(read_resampling(config, Resampling::kBicubic, made.settings_));
  VKF_CHECK(read_values(config, kClipMean, kClipDeviation, made.settings_));
  VKF_CHECK(check_read_settings(config, made.settings_));
  VKF_ASSIGN(made.resizes_, config.get_bool_or("do_resize", true));
  VKF_ASSIGN(made.patch_, read_count(config, "patch_size", 14));
  VKF_ASSIGN(made.frames_, read_count(config, "temporal_patch_size", 2));
  VKF_ASSIGN(made.merge_, read_count(config, "merge_size", 2));
  // The edges of [size] are numbers of pixels in all; older files have them apart.
  const JsonConfig size = config.object("size");
  VKF_CHECK(size.status());
  VKF_ASSIGN(const int64_t least, size.get_int_or("shortest_edge", kLeastPixels));
  VKF_ASSIGN(const int64_t most, size.get_int_or("longest_edge", kMostPixels));
  VKF_ASSIGN(made.least_pixels_, config.get_int_or("min_pixels", least));
  VKF_ASSIGN(made.most_pixels_, config.get_int_or("max_pixels", most));
  if (made.least_pixels_ >= 1 && made.most_pixels_ >= made.least_pixels_) return made;
  return wrong_value(config, "size",
                     "allows " + std::to_string(made.least_pixels_) + " to " +
                         std::to_string(made.most_pixels_) +
                         " pixels; it must be numbers of pixels in all, the least first.");
}

Result<PictureSize> ImagePatches::fitting_size(const PictureSize& picture) const {
  const auto [shorter, longer] = std::minmax(picture.width, picture.height);
  if (longer > kMostProportion * shorter) {
    return invalid_argument(message({"Picture of a prompt has ", picture.width, " x ",
                                     picture.height, " pixels, but one side may be up to ",
                                     kMostProportion, " times the other; crop it."}));
  }
  const auto factor = static_cast<double>(unit());
  const auto high = static_cast<double>(picture.height), wide = static_cast<double>(picture.width);
  // Halves go to even, as in Python.
  const auto near = [&](double side) {
    return static_cast<int64_t>(std::nearbyint(side / factor)) * unit();
  };
  PictureSize size{near(wide), near(high)};
  const int64_t pixels = size.width * size.height;
  if (pixels > most_pixels_) {
    const double by = std::sqrt(high * wide / static_cast<double>(most_pixels_));
    const auto down = [&](double side) {
      return std::max(unit(), static_cast<int64_t>(std::floor(side / by / factor)) * unit());
    };
    return PictureSize{down(wide), down(high)};
  }
  if (pixels < least_pixels_) {
    const double by = std::sqrt(static_cast<double>(least_pixels_) / (high * wide));
    const auto up = [&](double side) {
      return static_cast<int64_t>(std::ceil(side * by / factor)) * unit();
    };
    return PictureSize{up(wide), up(high)};
  }
  return size;
}

void ImagePatches::write(const RgbPicture& picture, std::byte* out) const {
  const PictureValueTable table = make_values(settings_);
  const int64_t rows = picture.height / patch_, columns = picture.width / patch_;
  std::vector<float> plane(static_cast<size_t>(patch_ * patch_));
  const size_t bytes = plane.size() * sizeof(float);
  const auto write_patch = [&](int64_t row, int64_t column) {
    for (size_t channel = 0; channel < 3; ++channel) {
      float* to = plane.data();
      for (int64_t y = 0; y < patch_; ++y) {
        const uint8_t* in = picture.row(static_cast<int>(row * patch_ + y)) + column * patch_ * 3;
        for (int64_t x = 0; x < patch_; ++x, in += 3) *to++ = table[channel][in[channel]];
      }
      for (int64_t frame = 0; frame < frames_; ++frame, out += bytes) {
        std::memcpy(out, plane.data(), bytes);
      }
    }
  };
  for (int64_t top = 0; top < rows; top += merge_) {
    for (int64_t left = 0; left < columns; left += merge_) {
      for (int64_t p = 0; p < merge_ * merge_; ++p)
        write_patch(top + p / merge_, left + p % merge_);
    }
  }
}

Result<PromptImages> ImagePatches::process(const RgbPicture& picture) const {
  PictureSize size{picture.width, picture.height};
  if (resizes_) {
    VKF_ASSIGN(size, fitting_size(size));
  }
  VKF_CHECK(check_picture_size(size.width, size.height, "of a prompt, resized,"));
  if (size.width % unit() != 0 || size.height % unit() != 0) {
    return invalid_argument(
        message({"Picture of a prompt has ", size.width, " x ", size.height,
                 " pixels and is not resized, because do_resize of the image processor is false; "
                 "its sides must be multiples of ",
                 unit(), "."}));
  }
  if (frames_ > kMaxPixelValues / (3 * size.width * size.height)) {
    return invalid_argument(
        message({"Picture of a prompt comes to ", size.width, " x ", size.height, " pixels in ",
                 frames_, " frames, over the limit of ", kMaxPixelValues,
                 " values; lower [size] of the image processor."}));
  }
  VKF_ASSIGN(const RgbPicture resized,
             resize_picture(picture, static_cast<int>(size.width), static_cast<int>(size.height),
                            settings_.resampling));
  const int64_t rows = size.height / patch_, columns = size.width / patch_;
  Tensor values = Tensor::zeros(DType::kF32, {rows * columns, 3 * frames_ * patch_ * patch_});
  write(resized, values.bytes.data());
  PromptImages made{.tensors = {}, .height = size.height, .width = size.width};
  made.tensors["pixel_values"] = std::move(values);
  made.tensors["image_grid_thw"] =
      Tensor::from_ints({1, 3}, std::vector<int64_t>{1, rows, columns});
  return made;
}

}  // namespace vkformer
