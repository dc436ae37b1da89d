#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kNet = {{"model_type", "resnet"}, {"embedding_size", 6}, {"layer_type", "basic"},
                   {"hidden_sizes", {6, 8}}, {"depths", {1, 2}},    {"out_features", {"stage2"}}};
const Json kDetr = {{"model_type", "detr"},
                    {"d_model", 16},
                    {"encoder_layers", 2},
                    {"decoder_layers", 2},
                    {"encoder_attention_heads", 2},
                    {"decoder_attention_heads", 2},
                    {"encoder_ffn_dim", 20},
                    {"decoder_ffn_dim", 20},
                    {"num_queries", 5},
                    {"backbone_config", kNet}};

Json with_net(const char* key, Json value) {
  return with(kDetr, "backbone_config", with(kNet, key, std::move(value)));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("detr: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kDetr);
    CHECK(facts.family == "detr");
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.grid.height == 0);
    CHECK(facts.decoder_layers == 2);
    const ModelFacts base = facts_of({{"model_type", "detr"}});
    CHECK(base.width == 256);
    CHECK(base.encoder_layers == 6);
    const ModelFacts detector = facts_of(with(kDetr, "architectures", {"DetrForObjectDetection"}));
    CHECK(detector.head == HeadKind::kObjects);
  }

  TEST_CASE("detr: hostile sizes, other backbones and other heads are refused") {
    check_sizes(kDetr, {"d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads",
                        "decoder_ffn_dim", "num_queries"});
    const auto invalid = ErrorCode::kInvalidFile;
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(with(kDetr, "architectures", {"DetrForSegmentation"}), unsupported,
                  {"[architectures]", "'DetrForSegmentation'"});
    check_refused(with(kDetr, "dilation", true), unsupported, {"[dilation]"});
    check_refused(with(kDetr, "position_embedding_type", "3d"), invalid,
                  {"[position_embedding_type]", "'3d'"});
    check_refused(with(with(kDetr, "d_model", 18), "encoder_attention_heads", 1), invalid,
                  {"[d_model]", "18", "4"});
    check_refused(with_net("model_type", "swin"), unsupported, {"[backbone_config.model_type]"});
    check_refused(with_net("layer_type", "wide"), invalid, {"[layer_type]", "'wide'"});
    check_refused(with_net("depths", {1}), invalid, {"[depths]", "2 and 1"});
    check_refused(with_net("depths", {1, 0}), invalid, {"[depths]", "0 layers"});
    check_refused(with_net("hidden_sizes", {6, int64_t{1} << 40}), invalid, {"[hidden_sizes]"});
    check_refused(with_net("layer_type", "bottleneck"), invalid, {"[hidden_sizes]", "6"});
    check_refused(with_net("out_features", {"stage3"}), invalid, {"[out_features]", "'stage3'"});
    Json timm = kDetr;
    timm.erase("backbone_config");
    CHECK(load_config(timm).ok());
    check_refused(with(timm, "backbone", "resnet26"), unsupported, {"'resnet26'", "resnet50"});
  }

  TEST_CASE("detr: statistics of the backbone and learned positions are named if missing") {
    const std::string net = "model.backbone.conv_encoder.model.encoder.stages.1.layers.0.";
    for (const std::string& name :
         {net + "shortcut.normalization.running_var", net + "layer.1.convolution.weight",
          std::string("model.decoder.layers.0.encoder_attn.k_proj.bias")}) {
      ChangedModel model("detr-objects");
      model.check_resolves();
      model.tensors.erase(name);
      model.check_refused(name);
    }
    ChangedModel learned("detr-bare");
    learned.check_resolves();
    learned.tensors.erase("position_embedding.column_embeddings.weight");
    learned.check_refused("position_embedding.column_embeddings.weight");
  }

  TEST_CASE("detr: a mask belongs to the pixels, and learned positions have an end") {
    const GoldenGraphs model = golden_graphs("detr-bare");
    const auto read = [&](const TensorMap& inputs, const ForwardShape& shape) {
      ForwardInputs result{.shape = shape};
      const Status status = model.family->read_inputs(inputs, result);
      return status.ok() ? std::string() : status.error().message;
    };
    CHECK(read({}, {.batch = 1, .height = 37, .width = 64}).empty());
    CHECK(test::contains(read({{"pixel_mask", Tensor::zeros(DType::kI64, {1, 37, 63})}},
                              {.batch = 1, .height = 37, .width = 64}),
                         "(1, 37, 64)"));
    CHECK(test::contains(read({}, {.batch = 1, .height = 37, .width = 2000}), "50 x 50"));
  }
}

}  // namespace vkformer::testing
