#include "attention_view/depth_picture.h"

#include <algorithm>
#include <cmath>

#include "attention_view/canvas.h"
#include "base/check.h"
#include "base/message.h"
#include "image/picture_processor.h"

namespace vkformer {

Result<std::vector<std::byte>> draw_depth(const DepthMap& map) {
  VKF_CHECK(check_picture_size(map.width, map.height, "of depths"));
  const auto count = static_cast<size_t>(map.width) * static_cast<size_t>(map.height);
  if (map.values.size() != count) {
    return invalid_argument(message({"[map] has ", map.values.size(), " values, but ", map.width,
                                     " x ", map.height, " pixels; give one for each."}));
  }
  for (size_t i = 0; i < count; ++i) {
    if (std::isfinite(map.values[i])) continue;
    return invalid_argument(message({"[map] value ", i,
                                     " is not finite, so that no gray stands "
                                     "for it; check the model with --nan-check."}));
  }
  const auto [least, most] = std::minmax_element(map.values.begin(), map.values.end());
  const double range = double{*most} - double{*least};
  Canvas canvas(map.width, map.height);
  size_t at = 0;
  for (int y = 0; y < map.height; ++y) {
    for (int x = 0; x < map.width; ++x, ++at) {
      const double part = range > 0 ? (double{map.values[at]} - double{*least}) / range : 0.0;
      const auto gray = static_cast<uint8_t>(part * 255.0);
      canvas.fill(x, y, 1, 1, {gray, gray, gray});
    }
  }
  return encode_png(canvas, "of depths");
}

}  // namespace vkformer
