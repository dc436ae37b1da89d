#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kBart = {{"model_type", "bart"},
                    {"d_model", 24},
                    {"encoder_layers", 2},
                    {"decoder_layers", 3},
                    {"encoder_ffn_dim", 48},
                    {"decoder_ffn_dim", 40},
                    {"vocab_size", 60},
                    {"encoder_attention_heads", 3},
                    {"max_position_embeddings", 32},
                    {"decoder_attention_heads", 2}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("bart: facts and token ids are the configuration's, with the library's defaults") {
    const auto family = load_config(kBart);
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    const ModelFacts& facts = (*family)->facts();
    CHECK(facts.family == "bart");
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.decoder_layers == 3);
    CHECK(facts.encoder_heads == 3);
    CHECK(facts.decoder_heads == 2);
    CHECK(facts.max_source == 32);
    const GenerationFacts& tokens = (*family)->generation();
    CHECK(tokens.pad == 1);
    CHECK(tokens.decoder_start == 2);
    CHECK(tokens.eos == std::vector<int64_t>{2});
    const ModelFacts defaults = facts_of({{"model_type", "bart"}});
    CHECK(defaults.width == 1024);
    CHECK(defaults.encoder_layers == 12);
    CHECK(defaults.source_vocab == 50265);
    CHECK(facts_of({{"model_type", "mbart"}}).family == "mbart");
    CHECK(facts_of({{"model_type", "pegasus"}}).max_source == 1024);
    const ModelFacts talk = facts_of({{"model_type", "blenderbot"}});
    CHECK(talk.width == 2560);
    CHECK(talk.encoder_layers == 2);
    CHECK(talk.decoder_layers == 24);
    CHECK(talk.source_vocab == 8008);
    CHECK(talk.max_source == 128);
    CHECK(facts_of(with(kBart, "architectures", Json::array({"BartModel"}))).head ==
          HeadKind::kNone);
  }

  TEST_CASE("bart: hostile sizes, other heads and the other family's norms are refused") {
    check_sizes(kBart, {"d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim",
                        "decoder_ffn_dim", "vocab_size", "encoder_attention_heads",
                        "decoder_attention_heads", "max_position_embeddings"});
    for (const char* head : {"BartForCausalLM", "BartForSequenceClassification",
                             "BartForQuestionAnswering", "BartEncoderModel"}) {
      check_refused(with(kBart, "architectures", Json::array({head})), ErrorCode::kUnsupported,
                    {"[architectures]", head});
    }
    for (const char* key : {"normalize_before", "add_final_layer_norm"}) {
      CHECK(load_config(with(kBart, key, false)).ok());
      check_refused(with(kBart, key, true), ErrorCode::kUnsupported, {key, "bart"});
      const Json mbart = with(kBart, "model_type", "mbart");
      CHECK(load_config(with(mbart, key, true)).ok());
      check_refused(with(mbart, key, false), ErrorCode::kUnsupported, {key});
    }
    check_refused(with(kBart, "normalize_embedding", false), ErrorCode::kUnsupported,
                  {"[normalize_embedding]"});
    check_refused(with(kBart, "static_position_embeddings", true), ErrorCode::kUnsupported,
                  {"[static_position_embeddings]"});
    check_refused(with(kBart, "activation_function", "mish"), ErrorCode::kUnsupported,
                  {"[activation_function]", "mish"});
  }

  TEST_CASE("bart: one embedding serves both stacks and the head, with its bias") {
    const GoldenGraphs model = golden_graphs("bart-base");
    REQUIRE(row_of(model, "head") != nullptr);
    CHECK(row_of(model, "head")->sources == std::vector<std::string>{"model.shared.weight"});
    CHECK(row_of(model, "head")->biases == std::vector<std::string>{"final_logits_bias"});
    CHECK(row_of(model, "encoder.embed") == nullptr);
    CHECK(row_of(model, "decoder.embed") == nullptr);
    CHECK(row_of(model, "encoder.positions")->rows == 66);
    CHECK(row_of(model, "encoder.norm") == nullptr);
  }

  TEST_CASE("bart: a bare model has no prefix, no head and no bias of logits") {
    ChangedModel model("bart-base");
    model.config["architectures"] = Json::array({"BartModel"});
    model.check_resolves();
    model.rename("model.", "");
    const auto bare = model.resolve();
    REQUIRE_MESSAGE(bare.ok(), bare.error().message);
    CHECK(row_of(*bare, "head")->biases.empty());
    const Graph forward = bare->forward({.batch = 2, .source = 7, .target = 5});
    CHECK(forward.find_external("logits") == kNoTensor);
    CHECK(forward.find_external("last_hidden_state") != kNoTensor);
    Graph graph;
    ModelBuilder builder(graph, bare->weights);
    const auto step = bare->family->build_step(builder, {.batch = 1, .beams = 1, .source = 16});
    REQUIRE_FALSE(step.ok());
    CHECK(step.error().code == ErrorCode::kUnsupported);
  }

  TEST_CASE("bart: separate embeddings and copies of the shared one are taken by their names") {
    ChangedModel model("bart-base");
    const Tensor shared = model.tensors.at("model.shared.weight");
    model.tensors["lm_head.weight"] = shared;
    auto untied = model.resolve();
    REQUIRE_MESSAGE(untied.ok(), untied.error().message);
    CHECK(row_of(*untied, "head")->sources == std::vector<std::string>{"lm_head.weight"});
    CHECK(row_of(*untied, "decoder.embed")->sources ==
          std::vector<std::string>{"model.shared.weight"});
    model.tensors["model.encoder.embed_tokens.weight"] = shared;
    model.tensors["model.decoder.embed_tokens.weight"] = shared;
    model.check_resolves();
    model.tensors.erase("model.shared.weight");
    model.check_resolves();
    model.tensors["model.encoder.unknown.weight"] = shared;
    model.check_refused("model.encoder.unknown.weight");
  }

  TEST_CASE("mbart: each stack ends with a norm") {
    ChangedModel model("bart-base");
    model.config["model_type"] = "mbart";
    model.check_refused("model.encoder.layer_norm.weight");
    for (const char* stack : {"encoder", "decoder"}) {
      const std::string norm = "model." + std::string(stack) + ".layer_norm.";
      model.tensors[norm + "weight"] = Tensor::from_floats({32}, std::vector<float>(32));
      model.tensors[norm + "bias"] = Tensor::from_floats({32}, std::vector<float>(32));
    }
    const auto resolved = model.resolve();
    REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
    CHECK(row_of(*resolved, "decoder.norm") != nullptr);
  }

  TEST_CASE("pegasus, blenderbot: start, end and padding are the library's, and so are norms") {
    const auto tokens_of = [](const char* family) {
      const auto loaded = load_config(with(kBart, "model_type", family));
      REQUIRE_MESSAGE(loaded.ok(), loaded.error().message);
      return (*loaded)->generation();
    };
    const GenerationFacts pegasus = tokens_of("pegasus");
    CHECK(pegasus.pad == 0);
    CHECK(pegasus.eos == std::vector<int64_t>{1});
    CHECK(pegasus.decoder_start == 0);
    const GenerationFacts blenderbot = tokens_of("blenderbot");
    CHECK(blenderbot.pad == 0);
    CHECK(blenderbot.eos == std::vector<int64_t>{2});
    CHECK(blenderbot.decoder_start == 1);
    for (const char* family : {"pegasus", "blenderbot"}) {
      const Json config = with(kBart, "model_type", family);
      const bool fixed = std::string(family) == "pegasus";
      check_refused(with(config, "normalize_before", false), ErrorCode::kUnsupported,
                    {"[normalize_before]", family});
      check_refused(with(config, "normalize_embedding", true), ErrorCode::kUnsupported,
                    {"[normalize_embedding]", family});
      CHECK(load_config(with(config, "static_position_embeddings", fixed)).ok());
      check_refused(with(config, "static_position_embeddings", !fixed), ErrorCode::kUnsupported,
                    {"[static_position_embeddings]", family});
    }
  }

  TEST_CASE("pegasus: positions that the file lacks are the sinusoids that it would have") {
    ChangedModel model("pegasus-base");
    const std::string name = "model.encoder.embed_positions.weight";
    const Tensor stored = model.tensors.at(name);
    model.check_resolves();
    model.tensors.erase(name);
    const auto resolved = model.resolve();
    REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
    const WeightRow* row = row_of(*resolved, "encoder.positions");
    REQUIRE(row != nullptr);
    CHECK(row->rows == stored.shape[0]);
    CHECK(row->computed.size() == static_cast<size_t>(stored.shape[0] * stored.shape[1]));
    CHECK(row->computed[0] == 0.0f);                                         // sin 0
    CHECK(row->computed[static_cast<size_t>(stored.shape[1] / 2)] == 1.0f);  // cos 0
    model.tensors.erase("model.decoder.layer_norm.weight");
    model.check_refused("model.decoder.layer_norm.weight");
  }
}

}  // namespace vkformer::testing
