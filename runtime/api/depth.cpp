#include "vkformer/depth.h"

#include "attention_view/depth_picture.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "tasks/task_model.h"

namespace vkformer {

Result<DepthEstimator> DepthEstimator::load(const Device& device, const ModelSource& source,
                                            const TaskOptions& options) {
  return guarded([&]() -> Result<DepthEstimator> {
    VKF_ASSIGN(std::unique_ptr<TaskModel> model,
               load_task_model(device, source, TaskKind::kDepth, options));
    return HandleAccess::make<DepthEstimator>(std::move(model));
  });
}

Result<std::vector<DepthMap>> DepthEstimator::estimate(std::span<const Picture> pictures) {
  return guarded("The [pictures] do not fit into memory; give fewer, or smaller ones.",
                 [&] { return estimate_depths(*impl_, pictures); });
}

Result<std::vector<std::byte>> render_depth_png(const DepthMap& map) {
  return guarded("The [map] does not fit into memory; give a smaller one.",
                 [&] { return draw_depth(map); });
}

}  // namespace vkformer
