// Pictures to depths, as Hugging Face's post_process_depth_estimation computes them.
#include "base/check.h"
#include "base/message.h"
#include "model/blocks/resized_positions.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

Result<DepthMap> depth_of(TaskModel& task, const Picture& picture) {
  TensorMap inputs;
  VKF_ASSIGN(inputs["pixel_values"], task.pictures->process({&picture, 1}));
  VKF_ASSIGN(const TensorMap outputs, task.session->run(inputs, {}));
  VKF_ASSIGN(const TaskOutput depth, task_output(outputs, "predicted_depth"));
  DepthMap map{.width = picture.width(), .height = picture.height()};
  map.values = resized_positions(depth.values, {depth.shape[1], depth.shape[2]},
                                 {picture.height(), picture.width()}, 1, PositionFilter::kBicubic);
  VKF_ASSIGN(const std::string kind, task.config.get_string_or("depth_estimation_type", ""));
  if (kind == "metric") map.scale = DepthMap::Scale::kMetric;
  return map;
}

}  // namespace

Result<std::vector<DepthMap>> estimate_depths(TaskModel& task, std::span<const Picture> pictures) {
  std::vector<DepthMap> maps;
  for (const Picture& picture : pictures) {
    VKF_ASSIGN(DepthMap map, depth_of(task, picture));
    maps.push_back(std::move(map));
  }
  return maps;
}

}  // namespace vkformer
