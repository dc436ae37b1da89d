// DepthEstimator: how far or near each pixel of a picture is.
//
// Threading and lifetime: as all tasks (tasks.h); render_depth_png is a plain function.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vkformer/tasks.h"

namespace vkformer {

// Of a picture, in its own size.
struct DepthMap {
  int width = 0;   // pixels
  int height = 0;  // pixels
  // Row by row from the top (height * width). kRelative: the larger, the nearer, without a unit.
  // kMetric: how far, in the unit of the model's training, which is meters for the known ones.
  std::vector<float> values;
  enum class Scale : uint8_t { kRelative, kMetric } scale = Scale::kRelative;
};

// Models with ForDepthEstimation.
class VKFORMER_API DepthEstimator : public Task {
 public:
  using Task::Task;
  static Result<DepthEstimator> load(const Device& device, const ModelSource& source,
                                     const TaskOptions& options = {});
  // The depths of every picture. Pictures run one by one, each in its own size; depths are
  // interpolated (bicubic) to the size of the picture.
  Result<std::vector<DepthMap>> estimate(std::span<const Picture> pictures);
};

// The bytes of a PNG file of gray pixels, the smallest value black and the largest white.
VKFORMER_API Result<std::vector<std::byte>> render_depth_png(const DepthMap& map);

}  // namespace vkformer
