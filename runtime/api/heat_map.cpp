#include "vkformer/heat_map.h"

#include "attention_view/heat_map.h"
#include "base/check.h"
#include "base/guarded.h"

namespace vkformer {

Result<std::vector<std::byte>> render_heat_map_png(const HeatMap& map,
                                                   const HeatMapOptions& options) {
  return guarded([&] { return draw_heat_map(map, options); });
}

Status write_heat_map_png(const std::string& path, const HeatMap& map,
                          const HeatMapOptions& options) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const std::vector<std::byte> png, draw_heat_map(map, options));
    return save_heat_map(path, png);
  });
}

}  // namespace vkformer
