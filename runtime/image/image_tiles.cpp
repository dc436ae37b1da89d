#include "image/image_tiles.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "image/processor_reading.h"
#include "image/resize.h"

namespace vkformer {
namespace {

constexpr int64_t kTileEdge = 364;
constexpr int64_t kUsualEdge = 4 * kTileEdge;
// A longer side than this shrinks to it, whatever [size] says.
constexpr int64_t kMostEdge = 4096;
constexpr int64_t kMostTiles = 1024;

Result<int64_t> read_longest_edge(const JsonConfig& config, const std::string& key,
                                  int64_t fallback) {
  const JsonConfig object = config.object(key);
  VKF_CHECK(object.status());
  VKF_ASSIGN(const int64_t edge, object.get_int_or("longest_edge", fallback));
  VKF_ASSIGN(const int side, to_side(config, key + ".longest_edge", edge));
  return side;
}

int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The other side in proportion, as the library computes it: by the quotient of both, rounded down.
int64_t in_proportion(int64_t side, double quotient) {
  return static_cast<int64_t>(static_cast<double>(side) / quotient);
}

}  // namespace

Result<ImageTiles> ImageTiles::parse(const JsonConfig& config) {
  ImageTiles made;
  VKF_CHECK(read_resampling(config, Resampling::kLanczos, made.settings_));
  VKF_CHECK(read_values(config, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, made.settings_));
  VKF_CHECK(check_read_settings(config, made.settings_));
  VKF_ASSIGN(made.splits_, config.get_bool_or("do_image_splitting", true));
  VKF_ASSIGN(made.tile_, read_longest_edge(config, "max_image_size", kTileEdge));
  VKF_ASSIGN(const bool resizes, config.get_bool_or("do_resize", true));
  if (!resizes) {
    made.first_ = First::kAsIs;
    return made;
  }
  const JsonConfig size = config.object("size");
  VKF_CHECK(size.status());
  if (!size.has("height") && !size.has("width")) {
    VKF_ASSIGN(made.longest_edge_, read_longest_edge(config, "size", kUsualEdge));
    return made;
  }
  if (size.has("longest_edge")) {
    return wrong_value(config, "size", "has longest_edge and height and width; give one of them.");
  }
  made.first_ = First::kStretch;
  VKF_ASSIGN(const int64_t height, size.get_int("height"));
  VKF_ASSIGN(const int64_t width, size.get_int("width"));
  VKF_ASSIGN(made.size_.height, to_side(config, "size.height", height));
  VKF_ASSIGN(made.size_.width, to_side(config, "size.width", width));
  return made;
}

PictureSize ImageTiles::first_size(const PictureSize& picture) const {
  if (first_ == First::kAsIs) return picture;
  if (first_ == First::kStretch) return size_;
  const bool wide = picture.width >= picture.height;
  double quotient = static_cast<double>(picture.width) / static_cast<double>(picture.height);
  PictureSize size;
  // The shorter side becomes even, upwards.
  if (wide) {
    size = {longest_edge_, in_proportion(longest_edge_, quotient)};
    size.height += size.height % 2;
  } else {
    size.height = longest_edge_;
    size.width = static_cast<int64_t>(static_cast<double>(longest_edge_) * quotient);
    size.width += size.width % 2;
  }
  size = {std::max<int64_t>(size.width, 1), std::max<int64_t>(size.height, 1)};
  quotient = static_cast<double>(size.width) / static_cast<double>(size.height);
  if (size.width >= size.height && size.width > kMostEdge) {
    size = {kMostEdge, in_proportion(kMostEdge, quotient)};
  } else if (size.height > size.width && size.height > kMostEdge) {
    size = {static_cast<int64_t>(static_cast<double>(kMostEdge) * quotient), kMostEdge};
  }
  return {std::max<int64_t>(size.width, 1), std::max<int64_t>(size.height, 1)};
}

PictureSize ImageTiles::whole_tiles(const PictureSize& picture) const {
  const double quotient = static_cast<double>(picture.width) / static_cast<double>(picture.height);
  if (picture.width >= picture.height) {
    const int64_t width = round_up(picture.width, tile_);
    return {width, round_up(in_proportion(width, quotient), tile_)};
  }
  const int64_t height = round_up(picture.height, tile_);
  const auto width = static_cast<int64_t>(static_cast<double>(height) * quotient);
  return {round_up(width, tile_), height};
}

Result<RgbPicture> ImageTiles::resized(const RgbPicture& picture, const PictureSize& size) const {
  VKF_CHECK(check_picture_size(size.width, size.height, "of a prompt, resized,"));
  return resize_picture(picture, static_cast<int>(size.width), static_cast<int>(size.height),
                        settings_.resampling);
}

Result<PromptImages> ImageTiles::process(const RgbPicture& picture) const {
  VKF_ASSIGN(RgbPicture current, resized(picture, first_size({picture.width, picture.height})));
  PromptImages made{.tensors = {}, .height = tile_, .width = tile_};
  const PictureSize tile{tile_, tile_};
  PictureSize size = tile;
  if (splits_) size = whole_tiles({current.width, current.height});
  // A very flat picture may round down to nothing.
  size = {std::max(size.width, tile_), std::max(size.height, tile_)};
  if (size != tile) {
    made.rows = size.height / tile_;
    made.columns = size.width / tile_;
  }
  if (made.rows * made.columns > kMostTiles) {
    return invalid_argument(
        message({"Picture of a prompt would be cut into ", made.rows, " x ", made.columns,
                 " tiles of ", tile_, " pixels a side, over the limit of ", kMostTiles,
                 "; lower [size] of the image processor."}));
  }
  VKF_ASSIGN(current, resized(current, size));
  const int64_t images = made.rows * made.columns + 1;
  const int64_t each = 3 * tile_ * tile_;
  if (images > kMaxPixelValues / each) {
    return invalid_argument(message({"Picture of a prompt makes ", images, " images of ", tile_,
                                     " x ", tile_, " pixels, over the limit of ", kMaxPixelValues,
                                     " values; lower [size] of the image processor."}));
  }
  Tensor values = Tensor::zeros(DType::kF32, {1, images, 3, tile_, tile_});
  const PictureValueTable table = make_values(settings_);
  std::byte* out = values.bytes.data();
  const auto write = [&](const RgbPicture& from, int64_t left, int64_t top) {
    write_planes(from, {left, top, tile_, tile_}, table, out);
    out += static_cast<size_t>(each) * sizeof(float);
  };
  for (int64_t i = 0; i < made.rows * made.columns; ++i) {
    write(current, i % made.columns * tile_, i / made.columns * tile_);
  }
  VKF_ASSIGN(current, resized(current, tile));
  write(current, 0, 0);
  made.tensors["pixel_values"] = std::move(values);
  return made;
}

}  // namespace vkformer
