#include "image/document_pages.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/message.h"
#include "image/processor_reading.h"
#include "image/resize.h"

namespace vkformer {
namespace {

constexpr int64_t kUsualWidth = 1920;
constexpr int64_t kUsualHeight = 2560;

// A quarter turn clockwise: the left column becomes the top row.
RgbPicture turned(const RgbPicture& picture) {
  RgbPicture made{picture.height, picture.width, {}};
  made.pixels.resize(picture.pixels.size());
  uint8_t* out = made.pixels.data();
  for (int column = 0; column < picture.width; ++column) {
    for (int row = picture.height - 1; row >= 0; --row, out += 3) {
      std::copy_n(picture.row(row) + static_cast<ptrdiff_t>(column) * 3, 3, out);
    }
  }
  return made;
}

// Height and width in an object, or width and height in the list of older files.
Status read_page_size(const JsonConfig& config, PictureSettings& settings) {
  int64_t width = kUsualWidth, height = kUsualHeight;
  if (config.has("size")) {
    const JsonConfig object = config.object("size");
    if (object.status()) {
      VKF_ASSIGN(width, object.get_int("width"));
      VKF_ASSIGN(height, object.get_int("height"));
    } else {
      VKF_ASSIGN(const std::vector<int64_t> sides, config.get_int_list_or("size", {}));
      if (sides.size() != 2) {
        return wrong_value(config, "size",
                           "is a list of " + std::to_string(sides.size()) +
                               "; give an object with height and width.");
      }
      width = sides[0];
      height = sides[1];
    }
  }
  VKF_ASSIGN(settings.width, to_side(config, "size.width", width));
  VKF_ASSIGN(settings.height, to_side(config, "size.height", height));
  return {};
}

}  // namespace

Result<bool> DocumentPages::named_by(const JsonConfig& config) {
  VKF_ASSIGN(const std::string type, processor_class(config));
  return class_stem(type) == "Donut";
}

Result<DocumentPages> DocumentPages::parse(const JsonConfig& config) {
  for (const char* key : {"do_resize", "do_thumbnail", "do_pad"}) {
    VKF_ASSIGN(const bool asked, config.get_bool_or(key, true));
    if (asked) continue;
    return not_supported(config, key,
                         "is false, which leaves pages at any size; only true is supported.");
  }
  DocumentPages pages;
  VKF_CHECK(read_page_size(config, pages.settings_));
  VKF_CHECK(read_resampling(config, Resampling::kBilinear, pages.settings_));
  VKF_CHECK(read_values(config, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, pages.settings_));
  VKF_CHECK(check_read_settings(config, pages.settings_));
  VKF_ASSIGN(const bool turns, config.get_bool_or("do_align_long_axis", false));
  if (turns) pages.turns_ = Turns::kYes;
  return pages;
}

// The shorter side to the page's shorter one, then the longer side to what the page has. Both steps
// round to bytes, and the second is bicubic whatever the file says of the first.
Result<RgbPicture> DocumentPages::fitted(const RgbPicture& picture, size_t index) const {
  const std::string name = "[" + std::to_string(index) + "] of the batch, resized,";
  const int page_width = settings_.width, page_height = settings_.height;
  const bool lies = (page_width < page_height && picture.width > picture.height) ||
                    (page_width > page_height && picture.width < picture.height);
  std::optional<RgbPicture> upright;
  if (turns_ == Turns::kYes && lies) upright = turned(picture);
  const RgbPicture& page = upright ? *upright : picture;
  PictureSettings shorter = settings_;
  shorter.fit = PictureFit::kShortestEdge;
  shorter.shortest_edge = std::min(page_width, page_height);
  const PictureSize size = resized_size({page.width, page.height}, shorter);
  VKF_CHECK(check_picture_size(size.width, size.height, name));
  VKF_ASSIGN(RgbPicture made, resize_picture(page, static_cast<int>(size.width),
                                             static_cast<int>(size.height), settings_.resampling));
  int64_t width = std::min<int64_t>(size.width, page_width);
  int64_t height = std::min<int64_t>(size.height, page_height);
  if (width == size.width && height == size.height) return made;
  if (size.height > size.width) {
    width = size.width * height / size.height;
  } else {
    height = size.height * width / size.width;
  }
  VKF_CHECK(check_picture_size(width, height, name));
  return resize_picture(made, static_cast<int>(width), static_cast<int>(height),
                        Resampling::kBicubic);
}

Result<Tensor> DocumentPages::process(std::span<const RgbPicture* const> pictures) const {
  const auto count = static_cast<int64_t>(pictures.size());
  const int64_t width = settings_.width, height = settings_.height;
  if (count < 1 || count > kMaxPixelValues / (3 * width * height)) {
    return invalid_argument(message({"There are ", count, " pages of ", width, " x ", height,
                                     " pixels in a batch; give at least one, and at most ",
                                     kMaxPixelValues, " values in all."}));
  }
  Tensor made{DType::kF32, {count, 3, height, width}, {}};
  const size_t each = static_cast<size_t>(3 * width * height) * sizeof(float);
  made.bytes.resize(pictures.size() * each);
  const PictureValueTable values = make_values(settings_);
  for (size_t i = 0; i < pictures.size(); ++i) {
    VKF_ASSIGN(const RgbPicture page, fitted(*pictures[i], i));
    const PictureRect part{-((width - page.width) / 2), -((height - page.height) / 2), width,
                           height};
    write_planes(page, part, values, made.bytes.data() + i * each);
  }
  return made;
}

}  // namespace vkformer
