#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kDinov3 = {{"model_type", "dinov3_vit"},
                      {"hidden_size", 24},
                      {"num_hidden_layers", 2},
                      {"num_attention_heads", 3},
                      {"intermediate_size", 32},
                      {"image_size", 28},
                      {"patch_size", 7}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("dinov3: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kDinov3);
    CHECK(facts.family == "dinov3_vit");
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.grid.height == 0);
    const ModelFacts base = facts_of({{"model_type", "dinov3_vit"}});
    CHECK(base.width == 384);
    CHECK(base.encoder_layers == 12);
    CHECK(base.encoder_heads == 6);
  }

  TEST_CASE("dinov3: hostile sizes, heads without quarters and other classes are refused") {
    check_sizes(kDinov3,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"});
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(kDinov3, "num_attention_heads", 4), invalid,
                  {"[num_attention_heads]", "6", "multiple of 4"});
    check_refused(with(kDinov3, "rope_theta", 0), invalid, {"[rope_theta]", "0"});
    for (const int64_t count : {int64_t{-1}, int64_t{1} << 40}) {
      check_refused(with(kDinov3, "num_register_tokens", count), invalid,
                    {"[num_register_tokens]", std::to_string(count)});
    }
    check_refused(with(kDinov3, "architectures", {"DINOv3ViTBackbone"}), ErrorCode::kUnsupported,
                  {"[architectures]", "DINOv3ViTBackbone"});
  }

  TEST_CASE("dinov3: a missing scale or register is named") {
    for (const char* name : {"layer.1.layer_scale2.lambda1", "embeddings.register_tokens",
                             "layer.0.attention.v_proj.bias"}) {
      ChangedModel model("dinov3-bare");
      model.check_resolves();
      model.tensors.erase(name);
      model.check_refused(name);
    }
    ChangedModel plain("dinov3-gated");
    plain.check_resolves();
    plain.tensors.erase("layer.0.mlp.gate_proj.weight");
    plain.check_refused("layer.0.mlp.gate_proj.weight");
  }

  TEST_CASE("dinov3: a picture turns its patches and leaves the tokens before them alone") {
    const GoldenGraphs model = golden_graphs("dinov3-bare");
    const Graph graph = picture_graph(model, {.batch = 2, .height = 8, .width = 20});
    CHECK(external_shape(graph, "turning") == Shape{3 + 2 * 5, 8});
    check_pass_refused(model, {.batch = 1, .height = 3, .width = 20}, {},
                       {"[pixel_values]", "3 x 20"});
  }
}

}  // namespace vkformer::testing
