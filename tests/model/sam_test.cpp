#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kVision = {{"hidden_size", 16}, {"num_attention_heads", 2}, {"num_hidden_layers", 2},
                      {"image_size", 20},  {"patch_size", 4},          {"output_channels", 16},
                      {"window_size", 3},  {"num_pos_feats", 8}};
const Json kPrompts = {{"hidden_size", 16}, {"image_size", 20}, {"patch_size", 4}};
const Json kMasks = {{"hidden_size", 16}, {"num_attention_heads", 2}, {"mlp_dim", 20}};
const Json kSam = {{"model_type", "sam"},
                   {"vision_config", kVision},
                   {"prompt_encoder_config", kPrompts},
                   {"mask_decoder_config", kMasks}};

Json with_vision(const char* key, Json value) {
  return with(kSam, "vision_config", with(kVision, key, std::move(value)));
}
Json with_masks(const char* key, Json value) {
  return with(kSam, "mask_decoder_config", with(kMasks, key, std::move(value)));
}
Json with_prompts(const char* key, Json value) {
  return with(kSam, "prompt_encoder_config", with(kPrompts, key, std::move(value)));
}

Tensor floats_of(Shape shape) {
  return Tensor::zeros(DType::kF32, std::move(shape));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("sam: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kSam);
    CHECK(facts.family == "sam");
    CHECK(facts.head == HeadKind::kSegmentation);
    CHECK(facts.grid.height == 20);
    CHECK(facts.encoder_layers == 2);
    const ModelFacts base = facts_of({{"model_type", "sam"}});
    CHECK(base.width == 768);
    CHECK(base.grid.width == 1024);
    CHECK(base.max_source == 4096);
  }

  TEST_CASE("sam: hostile sizes and parts that do not fit are refused") {
    const auto invalid = ErrorCode::kInvalidFile;
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(with(kSam, "architectures", {"SamHQModel"}), unsupported,
                  {"[architectures]", "'SamHQModel'"});
    check_refused(with_vision("window_size", -1), invalid, {"[window_size]", "-1"});
    check_refused(with_vision("mlp_ratio", 0.0), invalid, {"[mlp_ratio]"});
    check_refused(with_vision("output_channels", 8), invalid, {"[vision_config]", "8 channels"});
    check_refused(with_vision("num_pos_feats", 9), invalid, {"num_pos_feats, 9"});
    check_refused(with_vision("patch_size", 2), invalid, {"10 x 10"});
    check_refused(with_vision("hidden_size", 496), unsupported, {"[image_size]", "248", "256"});
    check_refused(with_masks("iou_head_depth", 1), invalid, {"[iou_head_depth]"});
    check_refused(with_masks("attention_downsample_rate", 3), invalid,
                  {"[attention_downsample_rate]", "3"});
    check_refused(with_prompts("mask_input_channels", 6), invalid, {"[mask_input_channels]", "6"});
    check_refused(with_prompts("num_point_embeddings", 2), invalid, {"[num_point_embeddings]"});
    for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
      check_refused(with_vision("hidden_size", value), invalid, {"hidden_size"});
      check_refused(with_masks("num_multimask_outputs", value), invalid, {"num_multimask_outputs"});
      check_refused(with_prompts("image_size", value), invalid, {"image_size"});
    }
  }

  TEST_CASE("sam: missing tensors are named") {
    for (const std::string& name :
         {std::string("vision_encoder.layers.0.attn.rel_pos_w"),
          std::string("vision_encoder.neck.conv2.weight"),
          std::string("mask_decoder.transformer.layers.1.cross_attn_image_to_token.k_proj.bias"),
          std::string("mask_decoder.output_hypernetworks_mlps.3.proj_out.weight")}) {
      ChangedModel model("sam-points");
      model.check_resolves();
      REQUIRE(model.tensors.count(name) == 1);
      model.tensors.erase(name);
      model.check_refused(name);
    }
  }

  TEST_CASE("sam: prompts that do not fit are refused with what they must be") {
    const GoldenGraphs model = golden_graphs("sam-points");
    const auto read = [&](const TensorMap& inputs) {
      ForwardInputs result{.shape = {.batch = 1, .height = 20, .width = 20}};
      const Status status = model.family->read_inputs(inputs, result);
      return status.ok() ? std::to_string(result.shape.more[1]) : status.error().message;
    };
    CHECK(read({}) == "5");
    CHECK(read({{"input_points", floats_of({1, 3, 2, 2})}}) == "8");
    CHECK(read({{"input_boxes", floats_of({1, 3, 4})}}) == "7");
    CHECK(read({{"input_points", floats_of({1, 3, 2, 2})},
                {"input_boxes", floats_of({1, 3, 4})}}) == "9");
    const auto contains = [&](const TensorMap& inputs, const char* part) {
      const std::string message = read(inputs);
      CAPTURE(message);
      CHECK(test::contains(message, part));
    };
    contains({{"input_labels", Tensor::zeros(DType::kI64, {1, 3, 2})}}, "without input_points");
    contains({{"input_points", floats_of({2, 3, 2, 2})}}, "(2, 3, 2, 2)");
    contains({{"input_points", floats_of({1, 3, 2, 2})},
              {"input_labels", Tensor::zeros(DType::kI64, {1, 3, 3})}},
             "(1, 3, 3)");
    contains({{"input_points", floats_of({1, 1, 1, 2})},
              {"input_labels", Tensor::from_ints({1, 1, 1}, {7})}},
             "holds 7");
    contains({{"input_points", floats_of({1, 3, 2, 2})}, {"input_boxes", floats_of({1, 2, 4})}},
             "(1, 3, 4)");
    contains({{"input_masks", floats_of({1, 1, 20, 19})}}, "(1, 1, 20, 19)");
    contains({{"input_points", floats_of({1, 1, 1 << 21, 2})}}, "1048576");
  }
}

}  // namespace vkformer::testing
