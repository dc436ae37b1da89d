#include "vkformer/picture.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "image/picture.h"
#include "image/picture_processor.h"

namespace vkformer {
namespace {

constexpr const char* kPictureTooLarge =
    "The [picture] does not fit into memory; give a smaller one, or fewer at a time.";

}  // namespace

Picture::Picture(std::unique_ptr<const RgbPicture> impl) : impl_(std::move(impl)) {}
Picture::Picture(Picture&&) noexcept = default;
Picture& Picture::operator=(Picture&&) noexcept = default;
Picture::~Picture() = default;

Result<Picture> Picture::load(const std::string& path) {
  return guarded(kPictureTooLarge, [&]() -> Result<Picture> {
    VKF_ASSIGN(RgbPicture image, load_picture(path));
    return HandleAccess::make<Picture>(std::make_unique<const RgbPicture>(std::move(image)));
  });
}

Result<Picture> Picture::decode(std::span<const std::byte> bytes, const std::string& name,
                                int64_t most_pixels) {
  return guarded(kPictureTooLarge, [&]() -> Result<Picture> {
    const int64_t most = std::min(most_pixels, kMaxPicturePixels);
    VKF_ASSIGN(RgbPicture image, decode_picture(bytes, name, most));
    return HandleAccess::make<Picture>(std::make_unique<const RgbPicture>(std::move(image)));
  });
}

Result<Picture> Picture::from_rgb(int width, int height, std::span<const uint8_t> rgb) {
  return guarded([&]() -> Result<Picture> {
    return from_pixels({rgb, width, height, 0, PixelFormat::kRgb8});
  });
}

Result<Picture> Picture::from_pixels(const PixelView& frame) {
  return guarded(kPictureTooLarge, [&]() -> Result<Picture> {
    VKF_ASSIGN(RgbPicture image, copy_frame(frame));
    return HandleAccess::make<Picture>(std::make_unique<const RgbPicture>(std::move(image)));
  });
}

int Picture::width() const {
  return impl_ != nullptr ? impl_->width : 0;
}

int Picture::height() const {
  return impl_ != nullptr ? impl_->height : 0;
}

std::span<const uint8_t> Picture::rgb() const {
  return impl_ != nullptr ? std::span<const uint8_t>(impl_->pixels) : std::span<const uint8_t>();
}

Result<PictureProcessor> PictureProcessor::load(const std::string& model_dir) {
  return guarded([&]() -> Result<PictureProcessor> {
    VKF_ASSIGN(const PictureSettings settings, load_picture_settings(model_dir));
    return PictureProcessor(settings);
  });
}

Result<PictureProcessor> PictureProcessor::from_settings(const PictureSettings& settings) {
  return guarded([&]() -> Result<PictureProcessor> {
    VKF_CHECK(check_picture_settings(settings));
    return PictureProcessor(settings);
  });
}

Result<Tensor> PictureProcessor::process(std::span<const Picture> pictures) const {
  return guarded(kPictureTooLarge, [&]() -> Result<Tensor> {
    std::vector<const RgbPicture*> images;
    images.reserve(pictures.size());
    for (const Picture& picture : pictures) {
      if (HandleAccess::impl(picture) == nullptr) {
        return invalid_argument(
            message({"Picture [", images.size(),
                     "] of the batch was moved away; give one that holds pixels."}));
      }
      images.push_back(HandleAccess::impl(picture).get());
    }
    return make_pixel_values(images, settings_);
  });
}

}  // namespace vkformer
