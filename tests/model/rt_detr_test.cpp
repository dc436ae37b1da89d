#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kNet = {{"model_type", "rt_detr_resnet"}, {"embedding_size", 6},
                   {"layer_type", "basic"},          {"hidden_sizes", {6, 8, 10, 12}},
                   {"depths", {1, 1, 1, 1}},         {"out_indices", {2, 3, 4}}};
const Json kRtDetr = {{"model_type", "rt_detr"},
                      {"d_model", 16},
                      {"encoder_hidden_dim", 12},
                      {"encoder_ffn_dim", 20},
                      {"decoder_ffn_dim", 20},
                      {"encoder_attention_heads", 2},
                      {"decoder_attention_heads", 2},
                      {"decoder_layers", 2},
                      {"encoder_in_channels", {8, 10, 12}},
                      {"decoder_in_channels", {12, 12, 12}},
                      {"num_queries", 7},
                      {"num_labels", 3},
                      {"backbone_config", kNet}};

Json with_net(const char* key, Json value) {
  return with(kRtDetr, "backbone_config", with(kNet, key, std::move(value)));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("rt_detr: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kRtDetr);
    CHECK(facts.family == "rt_detr");
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.head == HeadKind::kNone);
    CHECK(facts.grid.height == 0);
    CHECK(facts.encoder_layers == 1);
    CHECK(facts.decoder_layers == 2);
    const ModelFacts base = facts_of({{"model_type", "rt_detr"}});
    CHECK(base.width == 256);
    CHECK(base.decoder_layers == 6);
    const ModelFacts twice = facts_of(with(kRtDetr, "encode_proj_layers", {1, 2}));
    CHECK(twice.encoder_layers == 2);
    const ModelFacts detector =
        facts_of(with(kRtDetr, "architectures", {"RTDetrForObjectDetection"}));
    CHECK(detector.head == HeadKind::kObjects);
    CHECK(detector.objects == ModelFacts::Objects::kSigmoid);
  }

  TEST_CASE("rt_detr: hostile sizes, other backbones and other switches are refused") {
    check_sizes(kRtDetr, {"d_model", "encoder_hidden_dim", "encoder_attention_heads",
                          "decoder_ffn_dim", "num_queries", "decoder_n_points"});
    const auto invalid = ErrorCode::kInvalidFile;
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(with(kRtDetr, "architectures", {"RTDetrV2ForObjectDetection"}), unsupported,
                  {"[architectures]", "'RTDetrV2ForObjectDetection'"});
    check_refused(with(kRtDetr, "learn_initial_query", true), unsupported,
                  {"[learn_initial_query]"});
    check_refused(with(kRtDetr, "use_timm_backbone", true), unsupported, {"timm_backbone"});
    check_refused(with(kRtDetr, "decoder_layers", 0), invalid, {"[decoder_layers]", "0"});
    check_refused(with(kRtDetr, "encoder_layers", -1), invalid, {"[encoder_layers]", "-1"});
    check_refused(with(kRtDetr, "num_feature_levels", 4), unsupported, {"[num_feature_levels]"});
    check_refused(with(kRtDetr, "decoder_in_channels", {12, 12, 13}), invalid,
                  {"[decoder_in_channels]", "13", "12"});
    check_refused(with(kRtDetr, "encode_proj_layers", {3}), invalid,
                  {"[encode_proj_layers]", "3", "0 to 2"});
    check_refused(with(kRtDetr, "hidden_expansion", 0.0), invalid, {"[hidden_expansion]"});
    check_refused(with(kRtDetr, "positional_encoding_temperature", -1.0), invalid,
                  {"[positional_encoding_temperature]"});
    check_refused(with(kRtDetr, "decoder_n_points", 1000), unsupported,
                  {"[decoder_n_points]", "6000", "1024"});
    Json anchored = with(kRtDetr, "anchor_image_size", {64, 64});
    CHECK(load_config(anchored).ok());
    check_refused(with(anchored, "feat_strides", {8, 0, 32}), invalid, {"[feat_strides]"});
    check_refused(with_net("model_type", "resnet"), unsupported, {"[backbone_config.model_type]"});
    check_refused(with_net("hidden_sizes", {8, 8, 10, 12}), invalid, {"[embedding_size]", "6"});
    check_refused(with_net("out_indices", {2, 3, 5}), invalid, {"[out_indices]", "5"});
  }

  TEST_CASE("rt_detr: missing tensors are named, and newer names are read") {
    const std::string net = "model.backbone.model.encoder.stages.1.layers.0.";
    for (const std::string& name :
         {net + "shortcut.1.normalization.running_var",
          std::string("model.encoder.fpn_blocks.0.bottlenecks.2.conv2.norm.running_mean"),
          std::string("model.decoder.layers.1.encoder_attn.sampling_offsets.bias"),
          std::string("model.decoder.bbox_embed.0.layers.2.weight")}) {
      ChangedModel model("rt_detr-objects");
      model.check_resolves();
      REQUIRE(model.tensors.count(name) == 1);
      model.tensors.erase(name);
      model.check_refused(name);
    }
    ChangedModel renamed("rt_detr-objects");
    TensorMap now;
    for (auto& [name, tensor] : renamed.tensors) {
      std::string other = name;
      const auto replace = [&](const std::string& from, const std::string& to) {
        const size_t at = other.find(from);
        if (at != std::string::npos) other.replace(at, from.size(), to);
      };
      replace("encoder.encoder.", "encoder.aifi.");
      replace("self_attn.out_proj", "self_attn.o_proj");
      replace(".fc1.", ".mlp.fc1.");
      replace(".fc2.", ".mlp.fc2.");
      now.emplace(other, tensor);
    }
    renamed.tensors = std::move(now);
    renamed.check_resolves();
  }

  TEST_CASE("rt_detr: pictures of other sizes are refused with what to give") {
    const GoldenGraphs model = golden_graphs("rt_detr-objects");
    CHECK(external_shape(picture_graph(model, {.batch = 2, .height = 64, .width = 32}),
                         "cross_attentions.1") == Shape{2, 7, 2, 9});
    check_pass_refused(model, {.batch = 1, .height = 72, .width = 64}, {}, {"multiples of 32"});
    check_pass_refused(model, {.batch = 1, .height = 32, .width = 8}, {}, {"multiples of 32"});
    check_pass_refused(golden_graphs("rt_detr-bare"), {.batch = 1, .height = 64, .width = 64}, {},
                       {"anchor_image_size", "8 x 4"});
    ForwardInputs result{.shape = {.batch = 1, .height = 64, .width = 64}};
    const Status mask = model.family->read_inputs(
        {{"pixel_mask", Tensor::zeros(DType::kI64, {1, 64, 63})}}, result);
    REQUIRE_FALSE(mask.ok());
    CHECK(test::contains(mask.error().message, "(1, 64, 63)"));
  }
}

}  // namespace vkformer::testing
