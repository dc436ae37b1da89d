#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kModernDecoder = {
    {"model_type", "modernbert-decoder"}, {"hidden_size", 24},       {"num_hidden_layers", 4},
    {"num_attention_heads", 3},           {"intermediate_size", 40}, {"vocab_size", 60},
    {"max_position_embeddings", 64}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("modernbert-decoder: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kModernDecoder);
    CHECK(facts.family == "modernbert-decoder");
    CHECK(facts.kind == ModelKind::kDecoder);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.decoder_layers == 4);
    CHECK(facts.max_source == 64);
    CHECK(facts.rolling == ModelFacts::Rolling::kFree);
    const ModelFacts base = facts_of({{"model_type", "modernbert-decoder"}});
    CHECK(base.width == 768);
    CHECK(base.decoder_layers == 22);
    CHECK(base.target_vocab == 50368);
  }

  TEST_CASE("modernbert-decoder: hostile sizes and unknown switches are refused") {
    check_sizes(kModernDecoder,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "vocab_size", "max_position_embeddings", "global_attn_every_n_layers",
                 "local_attention", "sliding_window"});
    check_refused(with(kModernDecoder, "layer_types", Json::array({"a", "b", "c", "d"})),
                  ErrorCode::kUnsupported, {"[layer_types]", "'a'"});
    check_refused(with(kModernDecoder, "architectures",
                       Json::array({"ModernBertDecoderForTokenClassification"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("modernbert-decoder: the head is dense, normed and tied to the words") {
    ChangedModel model("modernbert_decoder-base");
    const auto tied = model.resolve();
    REQUIRE_MESSAGE(tied.ok(), tied.error().message);
    CHECK(row_of(*tied, "head")->biases == std::vector<std::string>{"decoder.bias"});
    CHECK(row_of(*tied, "embed") == nullptr);
    CHECK(row_of(*tied, "decoder.0.self.norm") == nullptr);
    CHECK(row_of(*tied, "decoder.1.self.norm")->biases.size() == 1);
    CHECK(output_shape(*tied, "logits", 2, 7) == Shape{2, 7, 40});
    model.config["decoder_bias"] = false;
    model.check_resolves();
    model.config["classifier_bias"] = false;
    model.check_resolves();
    model.config["tie_word_embeddings"] = false;
    model.check_refused("decoder.weight");
    model.config["tie_word_embeddings"] = true;
    model.tensors.erase("lm_head.norm.weight");
    model.check_refused("lm_head.norm.weight");
    const GoldenGraphs bare = golden_graphs("modernbert_decoder-bare");
    CHECK(output_shape(bare, "last_hidden_state", 2, 7) == Shape{2, 7, 16});
    CHECK(row_of(bare, "head.dense") == nullptr);
  }
}

}  // namespace vkformer::testing
