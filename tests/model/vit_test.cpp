#include "model/vit.h"

#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kVit = {{"model_type", "vit"},      {"hidden_size", 24},       {"num_hidden_layers", 2},
                   {"num_attention_heads", 3}, {"intermediate_size", 40}, {"image_size", {22, 35}},
                   {"patch_size", {4, 8}}};

Json vit_as(const char* architecture, Json config = kVit) {
  return with(std::move(config), "architectures", Json::array({architecture}));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("vit: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kVit);
    CHECK(facts.family == "vit");
    CHECK(facts.architecture == "ViTModel");
    CHECK(facts.kind == ModelKind::kEncoder);
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.head == HeadKind::kNone);
    CHECK(facts.grid.channels == 3);
    CHECK(facts.grid.height == 22);
    CHECK(facts.grid.width == 35);
    CHECK(facts.max_source == 1 + 5 * 4);
    const ModelFacts base = facts_of({{"model_type", "vit"}});
    CHECK(base.width == 768);
    CHECK(base.encoder_layers == 12);
    CHECK(base.encoder_heads == 12);
    CHECK(base.max_source == 1 + 14 * 14);
    CHECK(base.grid.height == 224);
    const Json classes = with(vit_as("ViTForImageClassification"), "id2label", {{"0", "a"}});
    CHECK(facts_of(classes).head == HeadKind::kSequence);
    CHECK(facts_of(classes).labels == std::vector<std::string>{"a"});
  }

  TEST_CASE("vit: hostile sizes and heads that it lacks are refused") {
    check_sizes(kVit, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                       "intermediate_size", "num_channels", "pooler_output_size", "head_dim"});
    check_refused(with(kVit, "num_attention_heads", 5), ErrorCode::kInvalidFile, {"24", "5 heads"});
    for (const char* key : {"image_size", "patch_size"}) {
      for (const Json& value : {Json(0), Json(-8), Json(INT64_MAX), Json::array(),
                                Json::array({8, 0}), Json::array({8, 8, 8})}) {
        check_refused(with(kVit, key, value), ErrorCode::kInvalidFile, {"[" + std::string(key)});
      }
    }
    check_refused(with(kVit, "patch_size", 23), ErrorCode::kInvalidFile,
                  {"[image_size]", "0 patches"});
    check_refused(with(with(kVit, "image_size", 1 << 15), "patch_size", 1), ErrorCode::kInvalidFile,
                  {"[image_size]", "1073741824 patches"});
    for (const char* name : {"ViTForMaskedImageModeling", "ViTForCausalLM", "ViTBackbone"}) {
      check_refused(vit_as(name), ErrorCode::kUnsupported, {"[architectures]", name});
    }
    check_refused(vit_as("ViTForImageClassificationWithTeacher"), ErrorCode::kUnsupported,
                  {"deit"});
    check_refused(with(kVit, "hidden_act", "mish"), ErrorCode::kUnsupported,
                  {"[hidden_act]", "mish"});
    check_refused(with(kVit, "pooler_act", "mish"), ErrorCode::kUnsupported, {"[pooler_act]"});
  }

  TEST_CASE("vit: the class token stands before the patches, in the table of positions") {
    const GoldenGraphs base = golden_graphs("vit-base");
    const WeightRow* positions = row_of(base, "encoder.positions");
    REQUIRE(positions != nullptr);
    CHECK(positions->rows == 17);
    const TensorMap tensors = golden_case("vit-base").tensors("model/model.safetensors");
    const auto table = tensors.at("embeddings.position_embeddings").to_floats();
    const auto token = tensors.at("embeddings.cls_token").to_floats();
    REQUIRE(table.ok());
    REQUIRE(token.ok());
    for (size_t d = 0; d < 32; ++d) {
      CHECK(positions->computed[d] == (*table)[d] + (*token)[d]);
      CHECK(positions->computed[32 + d] == (*table)[32 + d]);
    }
    const Graph graph = picture_graph(base, {.batch = 3, .height = 32, .width = 32});
    CHECK(external_shape(graph, "pixel_values") == Shape{3, 3, 32, 32});
    CHECK(external_shape(graph, "last_hidden_state") == Shape{3, 17, 32});
    CHECK(external_shape(graph, "pooler_output") == Shape{3, 32});
    CHECK(external_shape(graph, "attentions.1") == Shape{3, 4, 17, 17});
    CHECK(external_shape(graph, "hidden_states.0") == Shape{3, 17, 32});
    const Graph classes =
        picture_graph(golden_graphs("vit-imgcls"), {.batch = 2, .height = 24, .width = 40});
    CHECK(external_shape(classes, "logits") == Shape{2, 7});
    CHECK(external_shape(classes, "pooler_output").empty());
  }

  TEST_CASE("vit: a pooler may be missing, a mask token may be there, names may be newer") {
    ChangedModel model("vit-base");
    model.tensors.erase("pooler.dense.weight");
    model.tensors.erase("pooler.dense.bias");
    model.tensors["embeddings.mask_token"] = Tensor::zeros(DType::kF32, {1, 1, 32});
    const auto bare = model.resolve();
    REQUIRE_MESSAGE(bare.ok(), bare.error().message);
    CHECK(external_shape(picture_graph(*bare, {.batch = 1, .height = 32, .width = 32}),
                         "pooler_output")
              .empty());
    for (const auto& [then, now] :
         {std::pair{"attention.attention.query", "attention.q_proj"},
          std::pair{"attention.attention.key", "attention.k_proj"},
          std::pair{"attention.attention.value", "attention.v_proj"},
          std::pair{"attention.output.dense", "attention.o_proj"},
          std::pair{"intermediate.dense", "mlp.fc1"}, std::pair{"output.dense", "mlp.fc2"},
          std::pair{"encoder.layer.", "layers."}}) {
      model.rename(then, now);
    }
    model.check_resolves();
    model.tensors.erase("layers.1.attention.k_proj.bias");
    model.check_refused("[layers.1.attention.k_proj.bias]");
    model.config["qkv_bias"] = false;
    model.check_refused("[layers.0.attention.k_proj.bias]");
  }

  TEST_CASE("vit: weights that do not fit the configuration are refused by tensor") {
    for (const auto& [bound_key, value, tensor] :
         {std::tuple{"hidden_size", 36, "position_embeddings"},
          std::tuple{"image_size", 40, "position_embeddings"},
          std::tuple{"num_channels", 1, "projection.weight"},
          std::tuple{"patch_size", 16, "position_embeddings"},
          std::tuple{"intermediate_size", 65, "encoder.layer.0.intermediate"},
          std::tuple{"num_hidden_layers", 3, "encoder.layer.2."},
          std::tuple{"num_hidden_layers", 1, "encoder.layer.1."},
          std::tuple{"head_dim", 4, "attention.query"},
          std::tuple{"pooler_output_size", 8, "pooler.dense.weight"}}) {
      const auto& key = bound_key;
      CAPTURE(key);
      ChangedModel model("vit-base");
      model.config[key] = value;
      model.check_refused(tensor);
    }
    ChangedModel classes("vit-imgcls");
    classes.config["id2label"].erase("6");
    classes.check_refused("[classifier.weight]");
  }

  TEST_CASE("deit: a second token has a state and, with a teacher, a head of its own") {
    const ModelFacts facts = facts_of({{"model_type", "deit"}});
    CHECK(facts.architecture == "DeiTModel");
    CHECK(facts.max_source == 2 + 14 * 14);
    const GoldenGraphs teacher = golden_graphs("deit-teacher");
    const WeightRow* positions = row_of(teacher, "encoder.positions");
    REQUIRE(positions != nullptr);
    CHECK(positions->rows == 11);
    const Graph graph = picture_graph(teacher, {.batch = 4, .height = 24, .width = 24});
    for (const char* name : {"logits", "cls_logits", "distillation_logits"}) {
      CHECK(external_shape(graph, name) == Shape{4, 6});
    }
    CHECK(external_shape(graph, "attentions.0") == Shape{4, 2, 11, 11});
    ChangedModel model("deit-teacher");
    model.tensors.erase("deit.embeddings.distillation_token");
    model.check_refused("[deit.embeddings.distillation_token]");
    // The same file with one head of the two, as DeiTForImageClassification has it.
    ChangedModel student("deit-teacher");
    student.config["architectures"] = Json::array({"DeiTForImageClassification"});
    student.rename("cls_classifier", "classifier");
    const auto one = student.resolve();
    REQUIRE_MESSAGE(one.ok(), one.error().message);
    const Graph single = picture_graph(*one, {.batch = 1, .height = 24, .width = 24});
    CHECK(external_shape(single, "logits") == Shape{1, 6});
    CHECK(external_shape(single, "distillation_logits").empty());
  }
}

}  // namespace vkformer::testing
