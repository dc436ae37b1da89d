#include <cmath>

#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kCvt = {{"model_type", "cvt"}, {"embed_dim", {8, 16, 24}}, {"num_heads", {1, 2, 3}}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("cvt: facts are the configuration's, and pictures may have any size") {
    const ModelFacts facts = facts_of(kCvt);
    CHECK(facts.family == "cvt");
    CHECK(facts.architecture == "CvtModel");
    CHECK(facts.kind == ModelKind::kEncoder);
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.width == 24);
    CHECK(facts.encoder_layers == 13);
    CHECK(facts.encoder_heads == 3);
    CHECK(facts.grid.channels == 3);
    CHECK(facts.grid.height == 0);
    CHECK(facts_of({{"model_type", "cvt"}}).width == 384);
  }

  TEST_CASE("cvt: lists must have a value for each stage, within limits") {
    for (const char* key :
         {"patch_sizes", "patch_stride", "patch_padding", "embed_dim", "num_heads", "mlp_ratio",
          "kernel_qkv", "padding_kv", "stride_kv", "padding_q", "stride_q"}) {
      CAPTURE(key);
      for (const Json& value : {Json::array({1, 1}), Json::array(), Json(1)}) {
        check_refused(with(kCvt, key, value), ErrorCode::kInvalidFile,
                      {"[" + std::string(key) + "]", "3 stages"});
      }
      check_refused(with(kCvt, key, {-1, 1, 1}), ErrorCode::kInvalidFile, {key});
      check_refused(with(kCvt, key, {1, 1, INT64_MAX}), ErrorCode::kInvalidFile, {key});
      CHECK_FALSE(load_config(with(kCvt, key, "1")).ok());
    }
    for (const char* key : {"cls_token", "qkv_bias"}) {
      check_refused(with(kCvt, key, {true, false}), ErrorCode::kInvalidFile,
                    {"[" + std::string(key) + "]", "2 values"});
      CHECK_FALSE(load_config(with(kCvt, key, {1, 0, 0})).ok());
    }
    for (const Json& depth : {Json::array(), Json(std::vector<int>(17, 1)), Json::array({1, 2, 0}),
                              Json::array({1, 2, INT64_MAX})}) {
      check_refused(with(kCvt, "depth", depth), ErrorCode::kInvalidFile, {"[depth]"});
    }
    check_refused(with(kCvt, "num_heads", {1, 3, 3}), ErrorCode::kInvalidFile, {"16", "3 heads"});
  }

  TEST_CASE("cvt: variants that the library cannot run either are refused as unsupported") {
    check_refused(with(kCvt, "qkv_projection_method", {"dw_bn", "avg", "dw_bn"}),
                  ErrorCode::kUnsupported, {"[qkv_projection_method]", "avg", "dw_bn"});
    check_refused(with(kCvt, "stride_q", {1, 1, 2}), ErrorCode::kUnsupported,
                  {"[stride_q]", "stage 2"});
    check_refused(with(kCvt, "kernel_qkv", {3, 5, 3}), ErrorCode::kUnsupported,
                  {"[padding_q]", "stage 1"});
    CHECK(load_config(with(with(kCvt, "kernel_qkv", {3, 5, 1}), "padding_q", {1, 2, 0})).ok());
    check_refused(with(kCvt, "cls_token", {true, false, true}), ErrorCode::kUnsupported,
                  {"[cls_token]", "stage 0"});
    check_refused(with(kCvt, "architectures", Json::array({"CvtForSomething"})),
                  ErrorCode::kUnsupported, {"CvtForSomething"});
  }

  TEST_CASE("cvt: grids are handed out as pictures, without the class token") {
    const GoldenGraphs base = golden_graphs("cvt-base");
    const Graph graph = picture_graph(base, {.batch = 2, .height = 32, .width = 48});
    CHECK(external_shape(graph, "hidden_states.0") == Shape{2, 8, 8, 12});
    CHECK(external_shape(graph, "last_hidden_state") == Shape{2, 16, 4, 6});
    CHECK(external_shape(graph, "logits") == Shape{2, 4});
    // Keys of a stride of 2, and the class token on both sides.
    CHECK(external_shape(graph, "attentions.0") == Shape{2, 1, 96, 24});
    CHECK(external_shape(graph, "attentions.1") == Shape{2, 2, 25, 7});
    CHECK(external_shape(graph, "attentions.2") == Shape{2, 2, 25, 7});
    check_pass_refused(base, {.batch = 1, .height = 2, .width = 48}, {},
                       {"[stage 0]", "2 x 48", "7 a side"});
  }

  TEST_CASE("cvt: batch norms are folded into the depthwise convolutions before them") {
    const GoldenGraphs base = golden_graphs("cvt-base");
    const WeightRow* row = row_of(base, "stage.0.0.self.key.conv");
    REQUIRE(row != nullptr);
    CHECK(row->rows == 8);
    REQUIRE(row->width == 10);
    const TensorMap tensors = golden_case("cvt-base").tensors("model/model.safetensors");
    const std::string from =
        "cvt.encoder.stages.0.layers.0.attention.attention.convolution_projection_key."
        "convolution_projection.";
    const auto value = [&](const char* name, size_t at) {
      const auto values = tensors.at(from + name).to_floats();
      REQUIRE(values.ok());
      return static_cast<double>((*values)[at]);
    };
    for (size_t c = 0; c < 8; ++c) {
      const double scale = value("normalization.weight", c) /
                           std::sqrt(value("normalization.running_var", c) + 1e-5);
      CHECK(row->computed[c * 10 + 4] ==
            doctest::Approx(scale * value("convolution.weight", c * 9 + 4)));
      CHECK(row->computed[c * 10 + 9] ==
            doctest::Approx(value("normalization.bias", c) -
                            scale * value("normalization.running_mean", c)));
    }
  }

  TEST_CASE("cvt: weights that do not fit the configuration are refused by tensor") {
    for (const auto& [bound_key, value, tensor] :
         {std::tuple{"depth", Json::array({1, 3}), "stages.1.layers.2."},
          std::tuple{"depth", Json::array({1, 1}), "stages.1.layers.1."},
          std::tuple{"patch_sizes", Json::array({5, 3}), "projection.weight"},
          std::tuple{"mlp_ratio", Json::array({2, 3}), "stages.1.layers.0.intermediate"},
          std::tuple{"cls_token", Json::array({false, false}), "no error"}}) {
      const auto& key = bound_key;
      CAPTURE(key);
      ChangedModel model("cvt-base");
      model.config[key] = value;
      if (std::string(tensor) == "no error") {
        model.check_resolves();  // an unused token is no harm
      } else {
        model.check_refused(tensor);
      }
    }
    ChangedModel wide("cvt-base");
    wide.config["kernel_qkv"] = {5, 3};
    wide.config["padding_q"] = {2, 1};
    wide.check_refused("convolution.weight]");
    ChangedModel missing("cvt-base");
    missing.tensors.erase("cvt.encoder.stages.1.cls_token");
    missing.check_refused("[cvt.encoder.stages.1.cls_token]");
  }
}

}  // namespace vkformer::testing
