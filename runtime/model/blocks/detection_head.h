// What detectors give of each query (Carion et al., 2020): logits of its class, of which the last
// stands for no object, and a box.
#pragma once

#include "model/blocks/heads.h"

namespace vkformer {

struct DetectionHead {
  int64_t width = 0;         // D of the states
  int64_t classes = 0;       // of objects; the logits have one more
  int64_t class_layers = 1;  // 1: one layer "class_labels_classifier"; n: ".layers.0" to n - 1
};

// Rows of class_labels_classifier and of the three layers of bbox_predictor.
void add_detection_rows(const DetectionHead& head, WeightTable& table);

// Of states (B, Q, D): the outputs logits (B, Q, classes + 1) and pred_boxes (B, Q, 4). A box is
// center x, center y, width and height as parts of the picture.
Status add_detection_head(ModelBuilder& builder, const DetectionHead& head, TensorId states);

}  // namespace vkformer
