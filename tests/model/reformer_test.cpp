#include "model/blocks/seeded_normals.h"
#include "model/encoder_cases.h"
#include "model/reformer_config.h"

namespace vkformer::testing {
namespace {

const Json kReformer = {{"model_type", "reformer"},
                        {"hidden_size", 12},
                        {"num_attention_heads", 3},
                        {"attention_head_size", 4},
                        {"feed_forward_size", 20},
                        {"attn_layers", Json::array({"local", "lsh"})},
                        {"axial_pos_shape", Json::array({4, 8})},
                        {"axial_pos_embds_dim", Json::array({5, 7})},
                        {"local_attn_chunk_length", 4},
                        {"lsh_attn_chunk_length", 6},
                        {"max_position_embeddings", 40},
                        {"vocab_size", 50}};

ReformerConfig config_of(const Json& json) {
  const test::TempDir directory;
  directory.write("config.json", json.dump());
  const auto file = JsonConfig::load(directory.file("config.json"));
  REQUIRE(file.ok());
  const auto config = read_reformer(*file);
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  return *config;
}

// The inputs of a pass over one row of `tokens`, as sessions read them.
ForwardInputs row_of_tokens(int64_t tokens) {
  ForwardInputs inputs;
  inputs.shape = {.batch = 1, .source = tokens};
  inputs.words["input_ids"].assign(static_cast<size_t>(tokens), 5u);
  inputs.words["key_mask"].assign(static_cast<size_t>((tokens + 31) / 32), 0xffffffffu);
  return inputs;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reformer: facts are the configuration's, and of an empty one the library's") {
    const ModelFacts facts = facts_of(kReformer);
    CHECK(facts.family == "reformer");
    CHECK(facts.width == 24);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.encoder_heads == 3);
    CHECK(facts.max_source == 32);
    CHECK(facts_of(with(kReformer, "axial_pos_embds", false)).max_source == 40);
    const ModelFacts base = facts_of({{"model_type", "reformer"}});
    CHECK(base.width == 512);
    CHECK(base.encoder_layers == 6);
    CHECK(base.encoder_heads == 12);
    CHECK(base.source_vocab == 320);
    CHECK(base.max_source == 4096);
    const Json head = with(kReformer, "architectures", Json::array({"ReformerModelWithLMHead"}));
    CHECK(facts_of(with(head, "is_decoder", true)).head == HeadKind::kLanguage);
  }

  TEST_CASE("reformer: rows are padded to whole chunks of both kinds, unless they fit into one") {
    const ReformerConfig config = config_of(kReformer);
    CHECK(config.padded(3) == 3);
    CHECK(config.padded(4) == 4);
    CHECK(config.padded(5) == 12);
    CHECK(config.padded(12) == 12);
    CHECK(config.padded(13) == 24);
    const ReformerConfig lsh = config_of(with(kReformer, "attn_layers", Json::array({"lsh"})));
    CHECK(lsh.padded(6) == 6);
    CHECK(lsh.padded(7) == 12);
    CHECK_FALSE(lsh.hashes(6));
    CHECK(lsh.hashes(12));
  }

  TEST_CASE("reformer: buckets are as stated, or a power of two near twice the chunks") {
    using Factors = std::vector<uint32_t>;
    CHECK(config_of(with(kReformer, "num_buckets", 6)).bucket_factors(24) == Factors{6});
    CHECK(config_of(with(kReformer, "num_buckets", Json::array({2, 4}))).bucket_factors(24) ==
          Factors{2, 4});
    const ReformerConfig config = config_of(kReformer);
    CHECK(config.bucket_factors(12) == Factors{4});
    CHECK(config.bucket_factors(24) == Factors{8});
    // 16 is above twice the chunk's 6.
    CHECK(config.bucket_factors(48) == Factors{4, 4});
    CHECK(config.bucket_factors(96) == Factors{4, 8});
    CHECK(config_of({{"model_type", "reformer"}}).bucket_factors(4096) == Factors{128});
  }

  TEST_CASE("reformer: inputs are padded, and what they leave out is noted") {
    const auto family = load_config(kReformer);
    REQUIRE(family.ok());
    ForwardInputs inputs = row_of_tokens(12);
    REQUIRE((*family)->read_inputs({}, inputs).ok());
    CHECK(inputs.shape.more == std::vector<int64_t>{0, 0, 0});
    CHECK(inputs.words.at("input_ids").size() == 12);
    inputs = row_of_tokens(13);
    REQUIRE((*family)->read_inputs({}, inputs).ok());
    CHECK(inputs.shape.source == 13);
    CHECK(inputs.shape.more == std::vector<int64_t>{1, 0, 0});
    CHECK(inputs.words.at("input_ids").size() == 24);
    CHECK(inputs.words.at("input_ids")[13] == 0);
    CHECK(inputs.words.at("key_mask") == std::vector<uint32_t>{0x1fff});
    inputs = row_of_tokens(30);
    const Status refused = (*family)->read_inputs({}, inputs);
    REQUIRE_FALSE(refused.ok());
    for (const char* part : {"30 tokens", "36", "for 32"}) {
      CHECK_MESSAGE(test::contains(refused.error().message, part), refused.error().message);
    }
  }

  TEST_CASE("reformer: rotations of another shape are refused with both shapes") {
    const auto family = load_config(with(kReformer, "num_buckets", 4));
    REQUIRE(family.ok());
    ForwardInputs inputs = row_of_tokens(12);
    TensorMap given;
    given.emplace("lsh_rotations.1", Tensor::zeros(DType::kF32, {3, 4, 1, 2}));
    REQUIRE((*family)->read_inputs(given, inputs).ok());
    CHECK(inputs.shape.more == std::vector<int64_t>{0, 0, 1});
    CHECK(inputs.words.at("lsh_rotations.1").size() == 24);
    given.insert_or_assign("lsh_rotations.1", Tensor::zeros(DType::kF32, {3, 4, 1, 4}));
    inputs = row_of_tokens(12);
    const Status refused = (*family)->read_inputs(given, inputs);
    REQUIRE_FALSE(refused.ok());
    CHECK(test::contains(refused.error().message, "(3, 4, 1, 4)"));
    CHECK(test::contains(refused.error().message, "(3, 4, 1, 2)"));
  }

  TEST_CASE("reformer: hostile sizes and impossible settings are refused, with their numbers") {
    check_sizes(kReformer, {"hidden_size", "num_attention_heads", "attention_head_size",
                            "feed_forward_size", "local_attn_chunk_length", "lsh_attn_chunk_length",
                            "num_hashes", "vocab_size", "max_position_embeddings"});
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(kReformer, "attn_layers", Json::array({"sparse"})), ErrorCode::kUnsupported,
                  {"[attn_layers]", "sparse"});
    check_refused(with(kReformer, "attn_layers", Json::array()), invalid, {"[attn_layers]", "0"});
    check_refused(with(kReformer, "num_hidden_layers", 3), invalid, {"3", "lists 2 layers"});
    check_refused(with(kReformer, "axial_pos_embds_dim", Json::array({5, 8})), invalid,
                  {"[axial_pos_embds_dim]", "13", "12"});
    check_refused(with(kReformer, "axial_pos_shape", Json::array({2, 4, 4})),
                  ErrorCode::kUnsupported, {"[axial_pos_shape]", "3 axes"});
    check_refused(with(kReformer, "axial_pos_shape", Json::array({0, 8})), invalid,
                  {"[axial_pos_shape]", "axis 0"});
    check_refused(with(kReformer, "lsh_num_chunks_before", -1), invalid,
                  {"[lsh_num_chunks_before]", "-1"});
    check_refused(with(kReformer, "pad_token_id", 50), invalid, {"[pad_token_id]", "50"});
    const Json odd = with(kReformer, "num_buckets", 5);
    check_refused(odd, ErrorCode::kInvalidArgument, {"[num_buckets]", "5", "even"});
    const Json language =
        with(kReformer, "architectures", Json::array({"ReformerModelWithLMHead"}));
    check_refused(language, invalid, {"[is_decoder]", "causal"});
    check_refused(with(with(language, "is_decoder", true), "local_num_chunks_after", 1), invalid,
                  {"[num_chunks_after]", "1"});
    const Json masked = with(kReformer, "architectures", Json::array({"ReformerForMaskedLM"}));
    check_refused(with(masked, "is_decoder", true), invalid, {"[is_decoder]"});
    check_refused(with(kReformer, "architectures", Json::array({"ReformerForTokenClassification"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("reformer: outputs have the caller's length, buckets the padded one") {
    const GoldenGraphs model = golden_graphs("reformer-causal");
    CHECK(output_shape(model, "hidden_states.1", 2, 21) == Shape{2, 21, 12});
    CHECK(output_shape(model, "last_hidden_state", 2, 21) == Shape{2, 21, 24});
    CHECK(output_shape(model, "logits", 2, 21) == Shape{2, 21, 31});
    CHECK(output_shape(model, "buckets.1", 2, 21) == Shape{2, 2, 2, 24});
    CHECK(output_shape(model, "buckets.1", 2, 4).empty());
    ChangedModel changed("reformer-causal");
    changed.check_resolves();
    changed.tensors.erase("reformer.encoder.layers.1.attention.self_attention.query_key.weight");
    changed.check_refused("query_key");
  }

  TEST_CASE("reformer: more rotations than can be drawn are an error, not an allocation") {
    ChangedModel changed("reformer-causal");
    changed.config["num_buckets"] = Json::array({1 << 23, 2});
    changed.config["num_hashes"] = 256;
    const auto model = changed.resolve();
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    Graph graph;
    ModelBuilder builder(graph, model->weights);
    const Status built = model->family->build_forward(builder, {.batch = 1, .source = 21}, {});
    REQUIRE_FALSE(built.ok());
    CHECK_MESSAGE(test::contains(built.error().message, "num_buckets"), built.error().message);
  }

  TEST_CASE("seeded normals are those of PyTorch's generator") {
    // torch.manual_seed(5); torch.randn(20)
    const std::vector<float> drawn = seeded_normals(5, 20);
    const float expected[] = {1.8423299f,   0.51888716f,  -1.7119213f,  -1.7013793f, -0.12966268f,
                              -0.60176563f, 0.14499857f,  -0.14982717f, 2.6145771f,  -0.43402296f,
                              0.35233545f,  -0.06455148f, 1.4829323f,   0.49403808f, 0.24921878f,
                              1.7470315f,   0.74477696f,  0.031656895f, -1.1724143f, -1.5069404f};
    for (size_t i = 0; i < 20; ++i) CHECK(std::abs(drawn[i] - expected[i]) < 2e-6f);
    // torch.manual_seed(3); torch.randn(5)
    const std::vector<float> few = seeded_normals(3, 5);
    const float expected_few[] = {0.80327606f, 0.17483339f, 0.088978097f, -0.61371803f,
                                  0.04618245f};
    for (size_t i = 0; i < 5; ++i) CHECK(std::abs(few[i] - expected_few[i]) < 2e-6f);
    CHECK(seeded_normals(1, 0).empty());
  }
}

}  // namespace vkformer::testing
