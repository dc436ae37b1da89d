#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kYolos = {{"model_type", "yolos"},   {"hidden_size", 24},
                     {"num_hidden_layers", 2},  {"num_attention_heads", 3},
                     {"image_size", {20, 24}},  {"patch_size", 4},
                     {"intermediate_size", 32}, {"num_detection_tokens", 5}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("yolos: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kYolos);
    CHECK(facts.family == "yolos");
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.grid.height == 0);
    CHECK(facts.max_source == 1 + 30 + 5);
    const ModelFacts base = facts_of({{"model_type", "yolos"}});
    CHECK(base.width == 768);
    CHECK(base.max_source == 1 + 32 * 54 + 100);
    const ModelFacts detector =
        facts_of(with(kYolos, "architectures", {"YolosForObjectDetection"}));
    CHECK(detector.head == HeadKind::kObjects);
    CHECK(detector.labels.size() == 2);
  }

  TEST_CASE("yolos: hostile sizes and unknown heads are refused") {
    check_sizes(kYolos, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                         "intermediate_size", "num_detection_tokens"});
    check_refused(with(kYolos, "image_size", {3, 24}), ErrorCode::kInvalidFile,
                  {"[image_size]", "0 patches"});
    check_refused(with(kYolos, "architectures", {"YolosForSegmentation"}), ErrorCode::kUnsupported,
                  {"[architectures]", "'YolosForSegmentation'"});
  }

  TEST_CASE("yolos: positions of layers and layers of heads are named where they are missing") {
    for (const char* name :
         {"vit.encoder.mid_position_embeddings", "vit.embeddings.detection_tokens",
          "class_labels_classifier.layers.2.weight", "bbox_predictor.layers.1.bias"}) {
      ChangedModel model("yolos-objects");
      model.check_resolves();
      model.tensors.erase(name);
      model.check_refused(name);
    }
  }
}

}  // namespace vkformer::testing
