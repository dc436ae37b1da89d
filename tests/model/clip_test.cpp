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

  TEST_CASE("clip, siglip: a missing tensor is named") {
    const std::pair<const char*, const char*> tensors[] = {
        {"clip-pair", "logit_scale"},
        {"clip-pair", "vision_model.embeddings.class_embedding"},
        {"siglip-pair", "vision_model.head.probe"},
        {"siglip-pair", "vision_model.head.attention.in_proj_weight"},
        {"siglip-pair", "logit_bias"}};
    for (const auto& [name, tensor] : tensors) {
      ChangedModel model(name);
      model.check_resolves();
      model.tensors.erase(tensor);
      model.check_refused(tensor);
    }
  }
}

}  // namespace vkformer::testing
