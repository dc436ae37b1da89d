#include "attention_view/mask_overlay.h"

#include <array>

#include "attention_view/canvas.h"
#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

constexpr std::array<Rgb, 6> kMaskColors = {Rgb{30, 110, 240}, {240, 90, 30},  {40, 170, 70},
                                            {190, 60, 200},    {230, 180, 20}, {20, 170, 180}};

}  // namespace

Result<std::vector<std::byte>> draw_masks(const RgbPicture& picture,
                                          std::span<const PictureMask> masks) {
  const auto area = static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height);
  for (size_t i = 0; i < masks.size(); ++i) {
    const PictureMask& mask = masks[i];
    const bool fits =
        mask.width == picture.width && mask.height == picture.height && mask.inside.size() == area;
    if (fits) continue;
    return invalid_argument(
        message({"[masks] number ", i, " is ", mask.width, " x ", mask.height, " pixels with ",
                 mask.inside.size(), " values, but the picture ", picture.width, " x ",
                 picture.height, "; give its own masks."}));
  }
  Canvas canvas(picture.width, picture.height);
  for (int y = 0; y < picture.height; ++y) {
    const uint8_t* row = picture.row(y);
    for (int x = 0; x < picture.width; ++x, row += 3) {
      Rgb color = {row[0], row[1], row[2]};
      const size_t at =
          static_cast<size_t>(y) * static_cast<size_t>(picture.width) + static_cast<size_t>(x);
      for (size_t i = 0; i < masks.size(); ++i) {
        if (masks[i].inside[at] == 0) continue;
        const Rgb& over = kMaskColors[i % kMaskColors.size()];
        for (size_t c = 0; c < 3; ++c) color[c] = static_cast<uint8_t>((color[c] + over[c]) / 2);
      }
      canvas.fill(x, y, 1, 1, color);
    }
  }
  return encode_png(canvas, "of masks");
}

}  // namespace vkformer
