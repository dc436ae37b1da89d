#include "vkformer/attention_view.h"

#include "attention_view/attention_grid.h"
#include "attention_view/attention_html.h"
#include "attention_view/attention_maps.h"
#include "attention_view/attention_overlay.h"
#include "attention_view/detection_boxes.h"
#include "base/check.h"
#include "base/guarded.h"
#include "image/picture_processor.h"

namespace vkformer {
namespace {

constexpr const char* kMapsTooLarge =
    "The attention [maps] do not fit into memory; show fewer layers or heads.";

}  // namespace

Result<AttentionMaps> attention_maps_from(const TensorMap& outputs, MapKind kind, int64_t item) {
  return guarded(kMapsTooLarge, [&] { return collect_maps(outputs, kind, item); });
}

Result<AttentionMaps> mean_over_heads(const AttentionMaps& maps) {
  return guarded(kMapsTooLarge, [&] { return average_heads(maps); });
}

Result<AttentionMaps> attention_rollout(const AttentionMaps& maps) {
  return guarded(kMapsTooLarge, [&] { return roll_out(maps); });
}

Result<std::vector<std::byte>> render_attention_grid_png(const AttentionMaps& maps,
                                                         const AttentionGridOptions& options) {
  return guarded(kMapsTooLarge, [&] { return draw_attention_grid(maps, options); });
}

Result<PictureRegion> seen_region(const PictureSettings& settings, int width, int height) {
  return guarded([&]() -> Result<PictureRegion> {
    VKF_CHECK(check_picture_settings(settings));
    VKF_CHECK(check_picture_size(width, height, "[picture]"));
    return region_of_interest(settings, width, height);
  });
}

Result<std::vector<std::byte>> render_attention_overlay_png(
    const Picture& picture, const PatchMap& map, const AttentionOverlayOptions& options) {
  return guarded(kMapsTooLarge, [&]() -> Result<std::vector<std::byte>> {
    VKF_ASSIGN(const RgbPicture pixels, copy_frame({picture.rgb(), picture.width(),
                                                    picture.height(), 0, PixelFormat::kRgb8}));
    return draw_attention_overlay(pixels, map, options);
  });
}

Result<std::vector<std::byte>> render_detections_png(const Picture& picture,
                                                     std::span<const Detection> detections) {
  return guarded(kMapsTooLarge, [&]() -> Result<std::vector<std::byte>> {
    VKF_ASSIGN(const RgbPicture pixels, copy_frame({picture.rgb(), picture.width(),
                                                    picture.height(), 0, PixelFormat::kRgb8}));
    return draw_detections(pixels, detections);
  });
}

Result<std::string> render_attention_html(std::span<const AttentionMaps> maps,
                                          const AttentionPageOptions& options) {
  return guarded(kMapsTooLarge, [&] { return write_attention_page(maps, options); });
}

Result<std::vector<AttentionHead>> measure_attention_heads(
    std::span<const AttentionMeasurements> passes, const AttentionHeadOptions& options) {
  return guarded(kMapsTooLarge, [&] { return measure_heads(passes, options); });
}

}  // namespace vkformer
