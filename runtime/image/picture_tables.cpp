#include "image/picture_tables.h"

#include <bit>
#include <string>

#include "base/check.h"
#include "image/resize.h"

namespace vkformer {
namespace {

// A line of `from` pixels, resized to `resized` and cropped to `to` around its center; targets
// outside have no source.
struct Line {
  int64_t from, resized, to;
};

uint32_t append_line(const Line& line, Resampling resampling, std::vector<uint32_t>& words) {
  const ResampleTable table =
      make_resample_table(static_cast<int>(line.from), static_cast<int>(line.resized), resampling);
  const size_t weights = words.size();
  for (const int32_t weight : table.weights) words.push_back(static_cast<uint32_t>(weight));
  const auto entries = static_cast<uint32_t>(words.size());
  const int64_t shift = crop_shift(line.resized, line.to);
  for (int64_t target = 0; target < line.to; ++target) {
    ResampleTaps taps;
    const int64_t at = target + shift;
    if (at >= 0 && at < line.resized) taps = table.taps[static_cast<size_t>(at)];
    words.push_back(static_cast<uint32_t>(taps.first));
    words.push_back(static_cast<uint32_t>(taps.count));
    words.push_back(static_cast<uint32_t>(weights + taps.first_weight));
  }
  return entries;
}

}  // namespace

Result<PictureTables> make_picture_tables(std::span<const PictureSize> pictures,
                                          const PictureSettings& settings) {
  if (settings.fit == PictureFit::kLongestEdge) {
    return unsupported(
        "The picture settings' [fit] pads pictures, which only PictureProcessor does; give its "
        "pixel_values.");
  }
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::string name = "[" + std::to_string(i) + "] of the batch";
    VKF_CHECK(check_picture_size(pictures[i].width, pictures[i].height, name));
  }
  PictureTables tables;
  VKF_ASSIGN(tables.size, common_size(pictures, settings));
  for (const auto& values : make_values(settings)) {
    for (const float value : values) tables.words.push_back(std::bit_cast<uint32_t>(value));
  }
  for (const PictureSize& picture : pictures) {
    const PictureSize resized = resized_size(picture, settings);
    VKF_CHECK(check_picture_size(tables.size.width, picture.height, "half resized picture"));
    const Line across{picture.width, resized.width, tables.size.width};
    const Line down{picture.height, resized.height, tables.size.height};
    PictureTapPlace place;
    place.columns = append_line(across, settings.resampling, tables.words);
    place.rows = append_line(down, settings.resampling, tables.words);
    place.same_columns = across.from == across.resized && across.resized == across.to;
    tables.places.push_back(place);
  }
  return tables;
}

}  // namespace vkformer
