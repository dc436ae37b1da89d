#include <cmath>

#include "model/picture_cases.h"
#include "support/test_device.h"
#include "vkformer/session.h"

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

TEST_SUITE("model") {
  TEST_CASE("cvt: without a head the class token is handed out, which the head would have read") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("cvt-base");
    const TensorMap inputs = golden.tensors("inputs.safetensors");
    ChangedModel bare("cvt-base");
    bare.config["architectures"] = {"CvtModel"};
    auto session = Session::create(bare.load(*test_device()));
    REQUIRE_MESSAGE(session.ok(), session.error().message);
    const auto outputs = session->run(inputs);
    REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
    REQUIRE(outputs->count("cls_token_value") == 1);
    const Tensor& token = outputs->at("cls_token_value");
    CHECK(token.shape == Shape{1, 1, 16});
    // The golden logits are the classifier's of this state after the last norm.
    const auto values = [&](const char* name) { return bare.tensors.at(name).to_floats().value(); };
    const std::vector<float> x = token.to_floats().value();
    const auto gain = values("layernorm.weight"), shift = values("layernorm.bias");
    const auto weight = values("classifier.weight"), bias = values("classifier.bias");
    double mean = 0, variance = 0;
    for (float v : x) mean += double{v} / 16;
    for (float v : x) variance += (v - mean) * (v - mean) / 16;
    const auto logits = golden.tensors("expected.safetensors").at("logits").to_floats().value();
    REQUIRE(logits.size() == bias.size());
    for (size_t n = 0; n < logits.size(); ++n) {
      double sum = bias[n];
      for (size_t k = 0; k < 16; ++k) {
        const double state = (x[k] - mean) / std::sqrt(variance + 1e-5) * gain[k] + shift[k];
        sum += state * double{weight[n * 16 + k]};
      }
      CHECK(sum == doctest::Approx(logits[n]).epsilon(1e-4));
    }
  }
}

}  // namespace vkformer::testing
