#include <bit>

#include "model/blocks/towers.h"
#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kTower = {{"hidden_size", 24},
                     {"num_hidden_layers", 2},
                     {"num_attention_heads", 3},
                     {"intermediate_size", 40}};

Json tower(const char* family) {
  return with(kTower, "model_type", family);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("clip, siglip: facts of towers and pairs, with the library's defaults") {
    const auto base = [](const char* family) { return facts_of({{"model_type", family}}); };
    CHECK(base("clip_text_model").width == 512);
    CHECK(base("clip_text_model").max_source == 77);
    CHECK(base("clip_text_model").source_vocab == 49408);
    CHECK(base("clip_vision_model").max_source == 50);
    CHECK(base("siglip_text_model").width == 768);
    CHECK(base("siglip_text_model").max_source == 64);
    CHECK(base("siglip_vision_model").max_source == 196);
    CHECK(base("clip").source == SourceKind::kArrays);
    CHECK(base("clip").width == 512);
    CHECK(base("siglip").grid.height == 224);
    CHECK(base("siglip2").grid.height == 0);
    CHECK(base("siglip2_vision_model").max_source == 256);
    CHECK(base("siglip2_vision_model").source == SourceKind::kArrays);
    CHECK(base("siglip2_text_model").max_source == 64);
  }

  TEST_CASE("clip, siglip: hostile sizes, other heads and other classes are refused") {
    for (const char* family :
         {"clip_text_model", "siglip_text_model", "clip_vision_model", "siglip_vision_model"}) {
      check_sizes(tower(family),
                  {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"});
      check_refused(with(tower(family), "architectures", {"SomethingElse"}),
                    ErrorCode::kUnsupported, {"[architectures]", "SomethingElse"});
    }
    check_sizes(tower("clip_text_model"), {"vocab_size", "max_position_embeddings"});
    check_refused(with(tower("clip_vision_model"), "patch_size", 225), ErrorCode::kInvalidFile,
                  {"[image_size]", "0"});
    check_refused({{"model_type", "clip"}, {"architectures", {"CLIPForImageClassification"}}},
                  ErrorCode::kUnsupported, {"[architectures]", "CLIPForImageClassification"});
    check_refused({{"model_type", "siglip"}, {"text_config", {{"projection_size", 24}}}},
                  ErrorCode::kInvalidFile, {"[text_config.projection_size]", "24", "768"});
    CHECK_FALSE(load_config({{"model_type", "clip"}, {"text_config", 3}}).ok());
    check_sizes(tower("siglip2_vision_model"), {"num_patches", "hidden_size"});
    check_refused(with(tower("siglip2_vision_model"), "num_patches", 250), ErrorCode::kInvalidFile,
                  {"[num_patches]", "250", "225"});
  }

  TEST_CASE("clip: the token that stands for a text is the first end, the highest, or the last") {
    const std::vector<uint32_t> ids = {3, 9, 5, 9, 1, 2, 8, 8};
    TextTower text;
    text.end = 9;
    CHECK(text.pooled_rows(ids, 2) == std::vector<uint32_t>{1, 4});
    text.pool = TextTower::Pool::kHighestId;
    CHECK(text.pooled_rows(ids, 2) == std::vector<uint32_t>{1, 6});
    text.pool = TextTower::Pool::kLast;
    CHECK(text.pooled_rows(ids, 2) == std::vector<uint32_t>{3, 7});
  }

  TEST_CASE("clip: inputs of two towers are checked, and each may be absent") {
    const GoldenGraphs model = golden_graphs("clip-pair");
    const auto read = [&](const TensorMap& inputs) {
      ForwardInputs result;
      const Status status = model.family->read_inputs(inputs, result);
      return status.ok() ? std::string() : status.error().message;
    };
    const Tensor ids = Tensor::from_ints({2, 3}, std::vector<int64_t>{1, 2, 7, 4, 7, 0});
    const Tensor pixels = Tensor::zeros(DType::kF32, {1, 3, 12, 12});
    CHECK(read({{"input_ids", ids}, {"pixel_values", pixels}}).empty());
    CHECK(read({{"input_ids", ids}}).empty());
    CHECK(read({{"pixel_values", pixels}}).empty());
    CHECK(test::contains(read({}), "[input_ids]"));
    CHECK(test::contains(read({{"input_ids", Tensor::from_ints({1, 1}, std::vector<int64_t>{20})}}),
                         "20"));
    CHECK(test::contains(read({{"input_ids", Tensor::zeros(DType::kI64, {1, 10})}}), "(1, 10)"));
    CHECK(test::contains(
        read({{"input_ids", ids}, {"attention_mask", Tensor::zeros(DType::kI64, {2, 2})}}),
        "[attention_mask]"));
    CHECK(test::contains(read({{"pixel_values", Tensor::zeros(DType::kF32, {1, 3, 12, 8})}}),
                         "[pixel_values]"));
  }

  TEST_CASE("siglip2: patches come with their grids, or whole pictures are cut into them") {
    const GoldenGraphs model = golden_graphs("siglip2-vision");
    const auto read = [&](const TensorMap& inputs, ForwardInputs& result) {
      const Status status = model.family->read_inputs(inputs, result);
      return status.ok() ? std::string() : status.error().message;
    };
    const auto refused = [&](const TensorMap& inputs, const std::string& part) {
      ForwardInputs result;
      const std::string message = read(inputs, result);
      CAPTURE(message);
      CHECK(test::contains(message, part));
    };
    const auto grids = [](std::vector<int64_t> sides) {
      return Tensor::from_ints({static_cast<int64_t>(sides.size()) / 2, 2}, sides);
    };
    const Tensor patches = Tensor::zeros(DType::kF32, {1, 8, 48});
    ForwardInputs given;
    CHECK(read({{"pixel_values", patches}, {"spatial_shapes", grids({2, 3})}}, given).empty());
    CHECK(given.shape.batch == 1);
    CHECK(given.shape.more == std::vector<int64_t>{8, 0});
    CHECK(given.words["patch_positions"].size() == 8 * 16);
    refused({{"pixel_values", patches}}, "[spatial_shapes]");
    refused({{"pixel_values", patches}, {"spatial_shapes", grids({3, 3})}}, "3 x 3");
    refused({{"pixel_values", patches}, {"spatial_shapes", grids({2, 3, 1, 1})}}, "(2, 2)");
    refused({{"pixel_values", patches}, {"spatial_shapes", grids({0, 3})}}, "0 x 3");
    refused({{"pixel_values", patches},
             {"spatial_shapes", grids({2, 3})},
             {"pixel_attention_mask", Tensor::zeros(DType::kI64, {1, 7})}},
            "[pixel_attention_mask]");
    refused({{"pixel_values", Tensor::zeros(DType::kF32, {1, 8, 47})}}, "(B, N, 48)");
    // Channels of a pixel lie side by side.
    std::vector<float> pixels(3 * 4 * 8);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i);
    ForwardInputs whole;
    CHECK(read({{"pixel_values", Tensor::from_floats({1, 3, 4, 8}, pixels)}}, whole).empty());
    CHECK(whole.shape.more == std::vector<int64_t>{2, 1});
    const std::vector<float> first = {0, 32, 64, 1, 33, 65};
    CHECK(std::equal(first.begin(), first.end(), whole.words["cut_patches"].begin(),
                     [](float a, uint32_t b) { return std::bit_cast<uint32_t>(a) == b; }));
    refused({{"pixel_values", Tensor::zeros(DType::kF32, {1, 3, 4, 6})}}, "whole patches");
    refused({{"pixel_values", Tensor::zeros(DType::kF32, {1, 3, 4, 8})},
             {"spatial_shapes", grids({1, 2})}},
            "[spatial_shapes]");
  }

  TEST_CASE("clip, siglip: a missing tensor is named") {
    const std::pair<const char*, const char*> tensors[] = {
        {"clip-pair", "logit_scale"},
        {"clip-pair", "vision_model.embeddings.class_embedding"},
        {"siglip-pair", "vision_model.head.probe"},
        {"siglip-pair", "vision_model.head.attention.in_proj_weight"},
        {"siglip-pair", "logit_bias"},
        {"siglip2-pair", "vision_model.embeddings.position_embedding.weight"},
        {"siglip2-vision", "head.probe"}};
    for (const auto& [name, tensor] : tensors) {
      ChangedModel model(name);
      model.check_resolves();
      model.tensors.erase(tensor);
      model.check_refused(tensor);
    }
  }
}

}  // namespace vkformer::testing
