#include "model/encoder_cases.h"
#include "params/score_terms.h"

namespace vkformer::testing {
namespace {

const Json kT5 = {{"model_type", "t5"}, {"d_model", 24},
                  {"d_kv", 10},         {"d_ff", 48},
                  {"num_layers", 2},    {"num_heads", 3},
                  {"vocab_size", 60},   {"feed_forward_proj", "gated-gelu"}};

// The words of a host tensor of a pass.
std::vector<uint32_t> host_words(const GoldenGraphs& model, const ForwardShape& shape,
                                 const std::string& name) {
  Graph graph;
  ModelBuilder builder(graph, model.weights);
  const Status built = model.family->build_forward(builder, shape, {});
  REQUIRE_MESSAGE(built.ok(), built.error().message);
  for (const HostWords& words : builder.words()) {
    if (graph.tensor(words.tensor).name == name) return words.values;
  }
  return {};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("t5: facts and token ids are the configuration's, with the library's defaults") {
    const auto family = load_config(kT5);
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    const ModelFacts& facts = (*family)->facts();
    CHECK(facts.decoder_layers == 2);
    CHECK(facts.encoder_heads == 3);
    CHECK(facts.target_vocab == 60);
    CHECK(facts.max_source > 4096);
    CHECK((*family)->generation().decoder_start == 0);
    CHECK((*family)->generation().eos == std::vector<int64_t>{1});
    CHECK(facts_of(with(kT5, "num_decoder_layers", 5)).decoder_layers == 5);
    CHECK(facts_of({{"model_type", "t5"}}).source_vocab == 32128);
    const ModelFacts mt5 = facts_of({{"model_type", "mt5"}});
    CHECK(mt5.source_vocab == 250112);
    CHECK(mt5.encoder_layers == 8);
    const ModelFacts encoder =
        facts_of(with(kT5, "architectures", Json::array({"T5EncoderModel"})));
    CHECK(encoder.kind == ModelKind::kEncoder);
    CHECK(facts_of(with(kT5, "architectures", Json::array({"T5WithLMHeadModel"}))).head ==
          HeadKind::kLanguage);
  }

  TEST_CASE("t5: hostile sizes, buckets and other heads are refused") {
    check_sizes(kT5, {"d_model", "d_kv", "d_ff", "num_layers", "num_heads", "vocab_size",
                      "num_decoder_layers", "relative_attention_num_buckets",
                      "relative_attention_max_distance"});
    check_refused(with(kT5, "d_kv", 257), ErrorCode::kInvalidFile, {"[d_kv]", "256"});
    check_refused(with(with(kT5, "d_kv", 256), "num_heads", 1024), ErrorCode::kInvalidFile,
                  {"[num_heads]"});
    for (const auto& [buckets, distance] : {std::pair{1, 128}, std::pair{64, 8}}) {
      const auto family = load_config(with(with(kT5, "relative_attention_num_buckets", buckets),
                                           "relative_attention_max_distance", distance));
      REQUIRE_FALSE(family.ok());
      CHECK(test::contains(family.error().message, "[relative_attention_num_buckets]"));
    }
    check_refused(with(kT5, "is_decoder", true), ErrorCode::kUnsupported, {"[is_decoder]"});
    for (const char* head : {"T5ForTokenClassification", "T5ForQuestionAnswering"}) {
      check_refused(with(kT5, "architectures", Json::array({head})), ErrorCode::kUnsupported,
                    {"[architectures]", head});
    }
    for (const char* name : {"mish", "gated-", "gated-gated-gelu", ""}) {
      check_refused(with(kT5, "feed_forward_proj", name), ErrorCode::kUnsupported,
                    {"[feed_forward_proj]"});
    }
  }

  TEST_CASE("t5: the encoder looks both ways and the decoder back; both stop at the last bucket") {
    const GoldenGraphs model = golden_graphs("t5-relu");
    const ForwardShape shape{.batch = 1, .source = 40, .target = 40};
    const auto tensor = golden_case("t5-relu")
                            .tensors("model/model.safetensors")
                            .at("encoder.block.0.layer.0.SelfAttention."
                                "relative_attention_bias.weight");
    const std::vector<float> table = tensor.to_floats().value();  // (8, 4)
    const std::vector<uint32_t> words = host_words(model, shape, "key_mask");
    REQUIRE(!words.empty());
    const auto reach = static_cast<size_t>(words[0]);
    REQUIRE(reach < 20);  // max_distance
    REQUIRE(words.size() == 1 + 4 * (2 * reach + 1));
    const auto bias = [&](size_t head, int64_t distance) {
      const auto column = static_cast<size_t>(static_cast<int64_t>(reach) + distance);
      float value = 0;
      std::memcpy(&value, &words[1 + head * (2 * reach + 1) + column], 4);
      return value;
    };
    for (size_t h = 0; h < 4; ++h) {
      CHECK(bias(h, 0) == table[h]);
      CHECK(bias(h, -1) == table[4 + h]);
      CHECK(bias(h, 1) == table[20 + h]);
      CHECK(bias(h, -static_cast<int64_t>(reach)) == table[12 + h]);
      CHECK(bias(h, static_cast<int64_t>(reach)) == table[28 + h]);
    }
    const std::vector<uint32_t> back = host_words(model, shape, "decoder.terms");
    REQUIRE(!back.empty());
    CHECK(back[0] < 20);
  }

  TEST_CASE("t5: nothing of the size of a score matrix is made") {
    const GoldenGraphs model = golden_graphs("t5-gated");
    const Graph graph = model.forward({.batch = 1, .source = 300, .target = 200});
    for (const TensorDesc& tensor : graph.tensors()) {
      CAPTURE(tensor.name);
      CHECK(element_count(tensor.shape) < 200 * 200);
    }
  }

  TEST_CASE("t5: one embedding serves all, unless the file has a head") {
    const GoldenGraphs tied = golden_graphs("t5-relu");
    CHECK(row_of(tied, "head")->sources == std::vector<std::string>{"shared.weight"});
    CHECK(row_of(tied, "embed") == nullptr);
    const GoldenGraphs untied = golden_graphs("t5-untied");
    CHECK(row_of(untied, "head")->sources == std::vector<std::string>{"lm_head.weight"});
    CHECK(row_of(untied, "embed")->sources == std::vector<std::string>{"shared.weight"});
    ChangedModel old("t5-relu");
    const Tensor shared = old.tensors.at("shared.weight");
    old.tensors["encoder.embed_tokens.weight"] = shared;
    old.tensors["decoder.embed_tokens.weight"] = shared;
    old.tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] =
        Tensor::from_floats({8, 4}, std::vector<float>(32));
    old.check_resolves();
    old.tensors.erase("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
    old.check_refused("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
  }

  TEST_CASE("t5: an encoder alone takes its part of a whole file") {
    ChangedModel model("t5-untied");
    model.config["architectures"] = Json::array({"T5EncoderModel"});
    const auto encoder = model.resolve();
    REQUIRE_MESSAGE(encoder.ok(), encoder.error().message);
    CHECK(output_shape(*encoder, "last_hidden_state", 2, 7) == Shape{2, 7, 32});
    CHECK(output_shape(*encoder, "attentions.1", 2, 7) == Shape{2, 4, 7, 7});
    CHECK(row_of(*encoder, "decoder.0.self.qkv") == nullptr);
    model.config["architectures"] = Json::array({"T5Model"});
    const auto bare = model.resolve();
    REQUIRE_MESSAGE(bare.ok(), bare.error().message);
    CHECK(bare->forward({2, 7, 5}).find_external("logits") == kNoTensor);
  }
}

}  // namespace vkformer::testing
