#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kBert = {{"model_type", "bert"},         {"hidden_size", 24},
                    {"num_hidden_layers", 2},       {"num_attention_heads", 3},
                    {"intermediate_size", 48},      {"vocab_size", 60},
                    {"max_position_embeddings", 32}};

Json as(const char* architecture) {
  return with(kBert, "architectures", Json::array({architecture}));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("bert: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kBert);
    CHECK(facts.family == "bert");
    CHECK(facts.architecture == "BertModel");
    CHECK(facts.kind == ModelKind::kEncoder);
    CHECK(facts.head == HeadKind::kNone);
    CHECK(facts.width == 24);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.encoder_heads == 3);
    CHECK(facts.max_source == 32);
    CHECK(facts.source_tokens.types == 2);
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kCounted);
    const ModelFacts base = facts_of({{"model_type", "bert"}});
    CHECK(base.width == 768);
    CHECK(base.encoder_layers == 12);
    CHECK(base.source_vocab == 30522);
    CHECK(base.max_source == 512);
  }

  TEST_CASE("bert: the class name says which head there is") {
    for (const auto& [bound_name, head] :
         {std::pair{"BertModel", HeadKind::kNone}, std::pair{"BertForMaskedLM", HeadKind::kMasked},
          std::pair{"BertForPreTraining", HeadKind::kMasked},
          std::pair{"BertForSequenceClassification", HeadKind::kSequence},
          std::pair{"BertForTokenClassification", HeadKind::kTokens},
          std::pair{"BertForQuestionAnswering", HeadKind::kSpans}}) {
      const auto& name = bound_name;
      CAPTURE(name);
      CHECK(facts_of(as(name)).head == head);
    }
    CHECK(facts_of(as("BertForMaskedLM")).target_vocab == 60);
    CHECK(facts_of(as("BertForQuestionAnswering")).labels.empty());
    const Json named = with(as("BertForSequenceClassification"), "id2label",
                            {{"0", "no"}, {"1", "yes"}, {"2", "perhaps"}});
    CHECK(facts_of(named).labels == std::vector<std::string>{"no", "yes", "perhaps"});
    const Json counted = with(as("BertForTokenClassification"), "num_labels", 4);
    CHECK(facts_of(counted).labels.size() == 4);
  }

  TEST_CASE("bert: what the block does not do is refused as unsupported") {
    check_refused(with(kBert, "is_decoder", true), ErrorCode::kUnsupported, {"[is_decoder]"});
    check_refused(with(kBert, "add_cross_attention", true), ErrorCode::kUnsupported,
                  {"[add_cross_attention]"});
    check_refused(with(kBert, "position_embedding_type", "relative_key"), ErrorCode::kUnsupported,
                  {"[position_embedding_type]", "relative_key", "absolute"});
    for (const char* name : {"BertForMultipleChoice", "BertForNextSentencePrediction",
                             "BertLMHeadModel", "BertForCausalLM"}) {
      check_refused(as(name), ErrorCode::kUnsupported, {"[architectures]", name});
    }
    const auto activation = load_config(with(kBert, "hidden_act", "mish"));
    REQUIRE_FALSE(activation.ok());
    CHECK(test::contains(activation.error().message, "mish"));
  }

  TEST_CASE("bert: hostile sizes are refused") {
    check_sizes(kBert,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "vocab_size", "max_position_embeddings", "type_vocab_size"});
    check_refused(with(kBert, "num_attention_heads", 5), ErrorCode::kInvalidFile,
                  {"24", "5 heads"});
    check_refused(with(kBert, "layer_norm_eps", -1.0), ErrorCode::kInvalidFile,
                  {"[layer_norm_eps]"});
  }

  TEST_CASE("bert: graphs have the outputs of their heads") {
    const GoldenGraphs base = golden_graphs("bert-base");
    CHECK(output_shape(base, "last_hidden_state", 2, 7) == Shape{2, 7, 32});
    CHECK(output_shape(base, "pooler_output", 2, 7) == Shape{2, 32});
    CHECK(output_shape(base, "attentions.1", 2, 7) == Shape{2, 4, 7, 7});
    CHECK(output_shape(base, "hidden_states.1", 2, 7) == Shape{2, 7, 32});
    CHECK(output_shape(base, "logits", 2, 7).empty());
    CHECK(output_shape(golden_graphs("bert-mlm"), "logits", 2, 7) == Shape{2, 7, 90});
    CHECK(output_shape(golden_graphs("bert-sentiment"), "logits", 3, 7) == Shape{3, 2});
    CHECK(output_shape(golden_graphs("bert-tokcls"), "logits", 2, 7) == Shape{2, 7, 5});
    const GoldenGraphs answers = golden_graphs("bert-qa");
    CHECK(output_shape(answers, "start_logits", 2, 7) == Shape{2, 7});
    CHECK(output_shape(answers, "end_logits", 2, 7) == Shape{2, 7});
    CHECK(output_shape(golden_graphs("bert-embed"), "sentence_embedding", 3, 7) == Shape{3, 32});
  }

  TEST_CASE("bert: a tied output layer is the embedding's row, its own tensor is another") {
    const GoldenGraphs tied = golden_graphs("bert-mlm");
    CHECK(row_of(tied, "decoder") == nullptr);
    REQUIRE(row_of(tied, "words") != nullptr);
    CHECK(row_of(tied, "words")->biases == std::vector<std::string>{"cls.predictions.bias"});
    ChangedModel changed("bert-mlm");
    const std::string words = "bert.embeddings.word_embeddings.weight";
    changed.tensors["cls.predictions.decoder.weight"] = changed.tensors.at(words);
    const auto untied = changed.resolve();
    REQUIRE_MESSAGE(untied.ok(), untied.error().message);
    REQUIRE(row_of(*untied, "decoder") != nullptr);
    CHECK(row_of(*untied, "words")->biases.empty());
    changed.tensors.erase("cls.predictions.bias");
    changed.check_refused("cls.predictions.bias");
    changed.tensors["cls.predictions.decoder.bias"] =
        Tensor::from_floats({90}, std::vector<float>(90));
    changed.check_resolves();
  }

  TEST_CASE("bert: start and end are the two rows of one module") {
    const GoldenGraphs answers = golden_graphs("bert-qa");
    REQUIRE(row_of(answers, "end_logits") != nullptr);
    CHECK(row_of(answers, "start_logits")->first_row == 0);
    CHECK(row_of(answers, "end_logits")->first_row == 1);
    CHECK(row_of(answers, "end_logits")->sources == std::vector<std::string>{"qa_outputs.weight"});
    ChangedModel wide("bert-qa");
    wide.tensors["qa_outputs.weight"] = Tensor::from_floats({3, 32}, std::vector<float>(96));
    wide.check_refused("qa_outputs.weight");
  }

  TEST_CASE("bert: older names, prefixes, and what other heads left in the file") {
    ChangedModel old("bert-mlm");
    old.rename("embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma");
    old.rename("embeddings.LayerNorm.bias", "embeddings.LayerNorm.beta");
    const Tensor one = Tensor::from_floats({1}, std::vector<float>{1.0f});
    for (const char* name : {"bert.embeddings.position_ids", "cls.seq_relationship.weight",
                             "bert.pooler.dense.weight", "classifier.weight"}) {
      old.tensors[name] = one;
    }
    old.check_resolves();
    old.config["architectures"] = Json::array({"BertModel"});
    old.tensors.erase("bert.pooler.dense.weight");
    const auto bare = old.resolve();
    REQUIRE_MESSAGE(bare.ok(), bare.error().message);
    CHECK(output_shape(*bare, "pooler_output", 1, 3).empty());
    CHECK(output_shape(*bare, "last_hidden_state", 1, 3) == Shape{1, 3, 32});
    old.tensors["bert.encoder.layer.2.output.dense.bias"] = one;
    old.check_refused("encoder.layer.2.");
  }

  TEST_CASE("bert: a configuration that does not belong to the weights is refused by tensor") {
    for (const auto& [key, value, tensor] :
         {std::tuple{"intermediate_size", 65, "intermediate.dense"},
          std::tuple{"vocab_size", 100, "word_embeddings"},
          std::tuple{"num_hidden_layers", 3, "encoder.layer.2."},
          std::tuple{"num_hidden_layers", 1, "encoder.layer.1."},
          std::tuple{"type_vocab_size", 3, "token_type_embeddings"},
          std::tuple{"max_position_embeddings", 49, "position_embeddings"}}) {
      ChangedModel model("bert-base");
      model.config[key] = value;
      model.check_refused(tensor);
    }
  }
}

}  // namespace vkformer::testing
