#include "vkformer/detect.h"

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "tasks/task_model.h"

namespace vkformer {

Result<ObjectDetector> ObjectDetector::load(const Device& device, const ModelSource& source,
                                            const TaskOptions& options) {
  return guarded([&]() -> Result<ObjectDetector> {
    VKF_ASSIGN(std::unique_ptr<TaskModel> model,
               load_task_model(device, source, TaskKind::kDetect, options));
    return HandleAccess::make<ObjectDetector>(std::move(model));
  });
}

Result<std::vector<std::vector<Detection>>> ObjectDetector::detect(
    std::span<const Picture> pictures, const DetectOptions& options) {
  return guarded("The [pictures] do not fit into memory; give fewer, or smaller ones.",
                 [&] { return detect_objects(*impl_, pictures, options); });
}

}  // namespace vkformer
