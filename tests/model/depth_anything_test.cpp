#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kStates = {{"model_type", "dinov2"},   {"hidden_size", 24},    {"num_hidden_layers", 2},
                      {"num_attention_heads", 3}, {"mlp_ratio", 2},       {"image_size", 28},
                      {"patch_size", 7},          {"out_indices", {1, 2}}};
const Json kDepth = {
    {"model_type", "depth_anything"}, {"backbone_config", kStates},  {"patch_size", 7},
    {"reassemble_factors", {2, 0.5}}, {"neck_hidden_sizes", {4, 6}}, {"fusion_hidden_size", 8},
    {"reassemble_hidden_size", 24},   {"head_hidden_size", 3}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("depth_anything: facts are the configuration's") {
    const ModelFacts facts = facts_of(kDepth);
    CHECK(facts.family == "depth_anything");
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.width == 24);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.grid.height == 0);
  }

  TEST_CASE("depth_anything: hostile sizes, other backbones and other levels are refused") {
    check_sizes(kDepth, {"fusion_hidden_size", "head_hidden_size"});
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(kDepth, "reassemble_factors", {2, 0}), invalid,
                  {"[reassemble_factors]", "0"});
    check_refused(with(kDepth, "reassemble_factors", {2.5, 1}), invalid,
                  {"[reassemble_factors]", "2.5"});
    check_refused(with(kDepth, "neck_hidden_sizes", {4}), invalid, {"[neck_hidden_sizes]", "1"});
    check_refused(with(kDepth, "head_in_index", 2), invalid, {"[head_in_index]", "2"});
    check_refused(with(kDepth, "patch_size", 14), invalid, {"[patch_size]", "14", "7"});
    check_refused(with(kDepth, "depth_estimation_type", "far"), invalid,
                  {"[depth_estimation_type]", "'far'"});
    check_refused(with(kDepth, "backbone_config", with(kStates, "out_indices", {1, 3})), invalid,
                  {"[out_indices]", "3"});
    const Json named = with(with(kStates, "out_indices", nullptr), "out_features", {"layer1"});
    check_refused(with(kDepth, "backbone_config", named), invalid, {"[out_features]", "'layer1'"});
    check_refused(with(kDepth, "backbone_config", with(kStates, "model_type", "beit")),
                  ErrorCode::kUnsupported, {"[backbone_config.model_type]", "'beit'"});
    check_refused(with(kDepth, "architectures", {"DepthAnythingModel"}), ErrorCode::kUnsupported,
                  {"[architectures]", "'DepthAnythingModel'"});
  }

  TEST_CASE("depth_anything: a missing tensor of neck or head is named") {
    for (const char* name : {"neck.reassemble_stage.layers.0.resize.bias", "head.conv2.weight",
                             "neck.fusion_stage.layers.1.residual_layer1.convolution2.bias"}) {
      ChangedModel model("depth_anything-relative");
      model.check_resolves();
      model.tensors.erase(name);
      model.check_refused(name);
    }
  }

  TEST_CASE("depth_anything: depths have the size of whole patches") {
    const GoldenGraphs model = golden_graphs("depth_anything-relative");
    const Graph graph = picture_graph(model, {.batch = 1, .height = 18, .width = 23});
    bool found = false;
    for (const TensorDesc& tensor : graph.tensors()) {
      found = found || tensor.shape == Shape{1, 16, 20};
    }
    CHECK(found);
  }
}

}  // namespace vkformer::testing
