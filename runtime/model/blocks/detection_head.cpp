#include "model/blocks/detection_head.h"

#include "model/weight_rows.h"

namespace vkformer {
namespace {

constexpr int64_t kBoxLayers = 3;
constexpr int64_t kBoxColumns = 4;

// A run of linear layers, all but the last with ReLU.
struct DetectionLayers {
  std::string row;     // prefix of the weight rows: "classes."
  std::string module;  // prefix in the file: "class_labels_classifier.layers."
  int64_t count = 0;
  int64_t columns = 0;                                // of the last one
  ActivationKind activation = ActivationKind::kNone;  // of the last one
};

void add_detection_layer_rows(const DetectionLayers& layers, int64_t width, WeightTable& table) {
  for (int64_t i = 0; i < layers.count; ++i) {
    const std::string number = std::to_string(i);
    const int64_t columns = i + 1 < layers.count ? width : layers.columns;
    table.rows.push_back(linear_row(layers.row + number, {layers.module + number}, columns, width));
  }
}

Result<TensorId> add_detection_layers(ModelBuilder& b, const DetectionLayers& layers, TensorId x) {
  for (int64_t i = 0; i < layers.count; ++i) {
    const auto activation = i + 1 < layers.count ? ActivationKind::kRelu : layers.activation;
    VKF_ASSIGN(x,
               add_named_linear(b, layers.row + std::to_string(i), x, {.activation = activation}));
  }
  return x;
}

DetectionLayers class_layers_of(const DetectionHead& head) {
  return {.row = "classes.",
          .module = "class_labels_classifier.layers.",
          .count = head.class_layers,
          .columns = head.classes + 1};
}

DetectionLayers box_layers_of() {
  return {.row = "boxes.",
          .module = "bbox_predictor.layers.",
          .count = kBoxLayers,
          .columns = kBoxColumns,
          .activation = ActivationKind::kSigmoid};
}

}  // namespace

void add_detection_rows(const DetectionHead& head, WeightTable& table) {
  if (head.class_layers == 1) {
    table.rows.push_back(
        linear_row("classes.0", {"class_labels_classifier"}, head.classes + 1, head.width));
  } else {
    add_detection_layer_rows(class_layers_of(head), head.width, table);
  }
  add_detection_layer_rows(box_layers_of(), head.width, table);
}

Status add_detection_head(ModelBuilder& b, const DetectionHead& head, TensorId states) {
  b.graph().set_scope("logits");
  VKF_ASSIGN(const TensorId logits, add_detection_layers(b, class_layers_of(head), states));
  b.mark_output(logits, "logits");
  b.graph().set_scope("boxes");
  VKF_ASSIGN(const TensorId boxes, add_detection_layers(b, box_layers_of(), states));
  b.mark_output(boxes, "pred_boxes");
  return {};
}

}  // namespace vkformer
