// ObjectDetector: the objects in pictures, with their boxes.
//
// Threading and lifetime: as all tasks (tasks.h); render_detections_png is a plain function.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vkformer/tasks.h"

namespace vkformer {

struct Detection {
  std::string label;
  double score = 0;  // the probability of the label
  // Of the box, in pixels of the picture; it may reach beyond the edges.
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

struct DetectOptions {
  // Objects of a lower score are omitted; 0 to 1.
  double threshold = 0.5;
  // The best `top` objects of a picture; 0: all.
  int top = 0;
};

// Detectors: models with ForObjectDetection.
class VKFORMER_API ObjectDetector : public Task {
 public:
  using Task::Task;
  static Result<ObjectDetector> load(const Device& device, const ModelSource& source,
                                     const TaskOptions& options = {});
  // The objects of every picture, highest score first. Pictures run one by one, each in its own
  // size.
  Result<std::vector<std::vector<Detection>>> detect(std::span<const Picture> pictures,
                                                     const DetectOptions& options = {});
};

// The picture with the boxes, their labels and scores drawn on it: the bytes of an 8-bit RGB PNG
// file of the picture's own size.
VKFORMER_API Result<std::vector<std::byte>> render_detections_png(
    const Picture& picture, std::span<const Detection> detections);

}  // namespace vkformer
