#include "vkformer/segment.h"

#include "attention_view/mask_overlay.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "tasks/task_model.h"

namespace vkformer {

Result<Segmenter> Segmenter::load(const Device& device, const ModelSource& source,
                                  const TaskOptions& options) {
  return guarded([&]() -> Result<Segmenter> {
    VKF_ASSIGN(std::unique_ptr<TaskModel> model,
               load_task_model(device, source, TaskKind::kSegment, options));
    return HandleAccess::make<Segmenter>(std::move(model));
  });
}

Result<std::vector<std::vector<PictureMask>>> Segmenter::segment(
    const Picture& picture, std::span<const MaskPrompt> prompts, const SegmentOptions& options) {
  return guarded("The masks do not fit into memory; give fewer prompts, or a smaller picture.",
                 [&] { return segment_picture(*impl_, picture, prompts, options); });
}

Result<std::vector<std::byte>> render_masks_png(const Picture& picture,
                                                std::span<const PictureMask> masks) {
  return guarded("The picture does not fit into memory twice; give a smaller one.",
                 [&]() -> Result<std::vector<std::byte>> {
                   VKF_ASSIGN(const RgbPicture pixels,
                              copy_frame({picture.rgb(), picture.width(), picture.height(), 0,
                                          PixelFormat::kRgb8}));
                   return draw_masks(pixels, masks);
                 });
}

}  // namespace vkformer
