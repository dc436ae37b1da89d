#include "model/model.h"

#include "checkpoint/temp_dir.h"
#include "support/golden_graphs.h"
#include "vkformer/model.h"

namespace vkformer::testing {
namespace {

using test::contains;
using test::TempDir;

const Json kTransformer = {{"model_type", "transformer"},
                           {"d_model", 24},
                           {"num_encoder_layers", 2},
                           {"num_decoder_layers", 2},
                           {"nhead", 3},
                           {"src_vocab_size", 60},
                           {"tgt_vocab_size", 50},
                           {"dim_feedforward", 48},
                           {"bos_token_id", 1},
                           {"eos_token_id", 2}};
const Json kMarian = {{"model_type", "marian"},
                      {"d_model", 32},
                      {"encoder_layers", 2},
                      {"decoder_layers", 2},
                      {"encoder_attention_heads", 4},
                      {"decoder_attention_heads", 4},
                      {"encoder_ffn_dim", 64},
                      {"decoder_ffn_dim", 64},
                      {"vocab_size", 80},
                      {"decoder_start_token_id", 79},
                      {"max_position_embeddings", 64},
                      {"activation_function", "swish"}};

Result<std::unique_ptr<ModelFamily>> load(const Json& config, const Json& generation = nullptr) {
  const TempDir directory;
  directory.write("config.json", config.dump());
  if (!generation.is_null()) directory.write("generation_config.json", generation.dump());
  return load_family(*make_directory_store(directory.path()));
}

Json with_value(Json config, const char* key, Json value) {
  config[key] = std::move(value);
  return config;
}

void check_model_refused(const Json& config, ErrorCode code,
                         const std::vector<std::string>& parts) {
  const auto family = load(config);
  REQUIRE_FALSE(family.ok());
  CAPTURE(family.error().message);
  CHECK(family.error().code == code);
  for (const std::string& part : parts) CHECK_MESSAGE(contains(family.error().message, part), part);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("families are listed, and others are refused as unsupported") {
    const std::vector<std::string> names = family_names();
    for (const char* name : {"marian", "transformer"}) {
      CHECK(std::find(names.begin(), names.end(), name) != names.end());
    }
    check_model_refused({{"model_type", "no_such_family"}}, ErrorCode::kUnsupported,
                        {"[model_type]", "no_such_family", "marian", "config.json"});
  }

  TEST_CASE("a missing, broken or empty configuration is an error with its path") {
    const TempDir directory;
    const auto missing = load_family(*make_directory_store(directory.path()));
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(contains(missing.error().message, directory.file("config.json")));
    directory.write("config.json", "{\"model_type\": ");
    const auto broken = load_family(*make_directory_store(directory.path()));
    REQUIRE_FALSE(broken.ok());
    CHECK(broken.error().code == ErrorCode::kInvalidFile);
    for (const Json& config : {Json::object(), Json{{"model_type", 7}}}) {
      const auto typeless = load(config);
      REQUIRE_FALSE(typeless.ok());
      CHECK(contains(typeless.error().message, "model_type"));
    }
    directory.write("config.json", kMarian.dump());
    directory.write("generation_config.json", "[1]");
    CHECK_FALSE(load_family(*make_directory_store(directory.path())).ok());
  }

  TEST_CASE("hostile sizes are refused with the key, the value and the limit") {
    const char* kSizes[] = {"d_model",         "num_encoder_layers",     "num_decoder_layers",
                            "nhead",           "src_vocab_size",         "tgt_vocab_size",
                            "dim_feedforward", "max_position_embeddings"};
    for (const char* key : kSizes) {
      CAPTURE(key);
      for (int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 40}) {
        check_model_refused(with_value(kTransformer, key, value), ErrorCode::kInvalidFile,
                            {"[" + std::string(key) + "]", std::to_string(value), "config.json"});
      }
      for (const Json& value : {Json("24"), Json(1.5), Json::array({1, 2}), Json(1e300)}) {
        const auto family = load(with_value(kTransformer, key, value));
        REQUIRE_FALSE(family.ok());
        CHECK(contains(family.error().message, key));
      }
    }
    for (const char* key : {"d_model", "encoder_layers", "vocab_size", "encoder_ffn_dim",
                            "decoder_attention_heads", "decoder_vocab_size"}) {
      check_model_refused(with_value(kMarian, key, int64_t{1} << 40), ErrorCode::kInvalidFile,
                          {key});
    }
  }

  TEST_CASE("heads must divide the width and be at most 256 wide") {
    check_model_refused(with_value(kTransformer, "nhead", 5), ErrorCode::kInvalidFile,
                        {"24", "5 heads"});
    check_model_refused(with_value(with_value(kTransformer, "d_model", 257), "nhead", 1),
                        ErrorCode::kInvalidFile, {"257", "256"});
    check_model_refused(with_value(kMarian, "decoder_attention_heads", 3), ErrorCode::kInvalidFile,
                        {"32"});
  }

  TEST_CASE("variants that the families do not have are refused as unsupported") {
    check_model_refused(with_value(kTransformer, "position_encoding", "rotary"),
                        ErrorCode::kUnsupported, {"[position_encoding]", "rotary"});
    for (const char* key : {"normalize_before", "normalize_embedding", "add_final_layer_norm"}) {
      check_model_refused(with_value(kMarian, key, true), ErrorCode::kUnsupported, {key});
      CHECK(load(with_value(kMarian, key, false)).ok());
    }
    const auto activation = load(with_value(kTransformer, "activation", "mish"));
    REQUIRE_FALSE(activation.ok());
    CHECK(contains(activation.error().message, "mish"));
  }

  TEST_CASE("facts are what the configuration says, with the library's defaults") {
    const auto transformer = load(kTransformer);
    REQUIRE_MESSAGE(transformer.ok(), transformer.error().message);
    const ModelFacts& t = (*transformer)->facts();
    CHECK(t.family == "transformer");
    CHECK(t.width == 24);
    CHECK(t.encoder_layers == 2);
    CHECK(t.decoder_heads == 3);
    CHECK(t.source_vocab == 60);
    CHECK(t.target_vocab == 50);
    CHECK(t.max_source == 1024);
    CHECK((*transformer)->generation().decoder_start == 1);
    CHECK((*transformer)->generation().eos == std::vector<int64_t>{2});
    const auto marian = load(kMarian);
    REQUIRE_MESSAGE(marian.ok(), marian.error().message);
    CHECK((*marian)->facts().target_vocab == 80);
    CHECK((*marian)->facts().max_target == 64);
    CHECK((*marian)->generation().decoder_start == 79);
    CHECK((*marian)->generation().beams == 1);
  }

  TEST_CASE("an early_stopping that is no choice is an error of its file") {
    const auto family = load(kMarian, {{"early_stopping", "soon"}});
    REQUIRE_FALSE(family.ok());
    CHECK(family.error().code == ErrorCode::kInvalidFile);
    CHECK(family.error().message.find("[early_stopping] is 'soon'") != std::string::npos);
    CHECK(family.error().message.find("false, true or never") != std::string::npos);
  }

  TEST_CASE("generation_config.json wins over config.json, and every setting is read") {
    const Json generation = {{"eos_token_id", {3, 4}},
                             {"pad_token_id", 5},
                             {"num_beams", 6},
                             {"max_length", 40},
                             {"min_new_tokens", 2},
                             {"length_penalty", 0.5},
                             {"early_stopping", "never"},
                             {"forced_eos_token_id", 3},
                             {"forced_bos_token_id", 7},
                             {"suppress_tokens", {8, 9}},
                             {"begin_suppress_tokens", {10}},
                             {"bad_words_ids", Json::array({{11}, {12}})},
                             {"num_return_sequences", 3},
                             {"num_beam_groups", 2},
                             {"diversity_penalty", 1.5},
                             {"penalty_alpha", 0.6},
                             {"sequence_bias", Json::array({{{5, 7}, -2.5}, {{6}, 4}})}};
    Json config = kMarian;
    config["eos_token_id"] = 1;
    config["num_beams"] = 2;
    const auto family = load(config, generation);
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    const GenerationFacts& g = (*family)->generation();
    CHECK(g.eos == std::vector<int64_t>{3, 4});
    CHECK(g.pad == 5);
    CHECK(g.beams == 6);
    CHECK(g.max_new_tokens == 39);
    CHECK(g.min_new_tokens == 2);
    CHECK(g.length_penalty == 0.5);
    CHECK(g.early_stopping == EarlyStopping::kNever);
    CHECK(g.forced_eos == 3);
    CHECK(g.forced_bos == 7);
    CHECK(g.suppress == std::vector<int64_t>{8, 9, 11, 12});
    CHECK(g.begin_suppress == std::vector<int64_t>{10});
    CHECK(g.choice == TokenChoice::kBest);
    CHECK(g.sampling.top_k == 50);
    CHECK(g.return_sequences == 3);
    CHECK(g.beam_groups == 2);
    CHECK(g.diversity == 1.5);
    // Beams search otherwise.
    CHECK(g.contrastive_tokens == 0);
    REQUIRE(g.penalties.biases.size() == 2);
    CHECK(g.penalties.biases[0].tokens == std::vector<int64_t>{5, 7});
    CHECK(g.penalties.biases[0].bias == -2.5);
    CHECK(g.penalties.biases[1].tokens == std::vector<int64_t>{6});
  }

  TEST_CASE("what generation_config.json says of draws, bad words and contrastive search") {
    const auto contrasts = load(kMarian, {{"penalty_alpha", 0.6}, {"top_k", 4}});
    REQUIRE_MESSAGE(contrasts.ok(), contrasts.error().message);
    CHECK((*contrasts)->generation().contrastive_tokens == 4);
    CHECK((*contrasts)->generation().contrast == 0.6);
    const auto drawn = load(kMarian, {{"bad_words_ids", Json::array({{1, 2}, {0}, {6}})},
                                      {"eos_token_id", 0},
                                      {"do_sample", true},
                                      {"temperature", 0.5},
                                      {"top_k", 7},
                                      {"top_p", 0.8},
                                      {"min_p", 0.1},
                                      {"typical_p", 0.9},
                                      {"repetition_penalty", 1.25},
                                      {"no_repeat_ngram_size", 3}});
    REQUIRE_MESSAGE(drawn.ok(), drawn.error().message);
    const GenerationFacts& d = (*drawn)->generation();
    CHECK(d.choice == TokenChoice::kSampled);
    CHECK(d.sampling.temperature == 0.5);
    CHECK(d.sampling.top_k == 7);
    CHECK(d.sampling.top_p == 0.8);
    CHECK(d.sampling.min_p == 0.1);
    CHECK(d.sampling.typical_p == 0.9);
    CHECK(d.penalties.repetition == 1.25);
    CHECK(d.penalties.no_repeat_ngram == 3);
    // Single tokens are suppressed, but for end tokens.
    CHECK(d.penalties.bad_words == std::vector<std::vector<int64_t>>{{1, 2}});
    CHECK(d.suppress == std::vector<int64_t>{6});
    const auto forced = load(kMarian, {{"forced_eos_token_id", {1, 2}}});
    REQUIRE_FALSE(forced.ok());
    CHECK(contains(forced.error().message, "forced_eos_token_id"));
  }

  TEST_CASE("every golden model's weights resolve, and its graphs have the outputs they promise") {
    for (const GoldenCase& golden : golden_cases_with("model/config.json")) {
      CAPTURE(golden.name);
      const GoldenGraphs model = golden_graphs(golden.name);
      const ModelFacts& facts = model.family->facts();
      // Other kinds have other outputs, which their families' tests know.
      if (facts.kind != ModelKind::kEncoderDecoder || facts.source != SourceKind::kTokens ||
          facts.head != HeadKind::kLanguage || facts.family == "rnn_attention") {
        continue;
      }
      const std::string last = std::to_string(facts.decoder_layers - 1);
      ForwardTaps taps;
      taps.attentions = taps.hidden_states = ForwardTaps::Tap::kOn;
      const Graph forward = model.forward({2, 7, 5}, taps);
      const auto shape_of = [&](const std::string& name) {
        const TensorId id = forward.find_external(name);
        REQUIRE_MESSAGE(id != kNoTensor, name);
        return forward.tensor(id).shape;
      };
      CHECK(shape_of("logits") == Shape{2, 5, facts.target_vocab});
      CHECK(shape_of("last_hidden_state") == Shape{2, 5, facts.width});
      CHECK(shape_of("encoder_last_hidden_state") == Shape{2, 7, facts.width});
      CHECK(shape_of("encoder_attentions.0") == Shape{2, facts.encoder_heads, 7, 7});
      CHECK(shape_of("cross_attentions." + last) == Shape{2, facts.decoder_heads, 5, 7});
      CHECK(shape_of("decoder_hidden_states.0") == Shape{2, 5, facts.width});
      const Graph encoder_only = model.forward({2, 7, 0});
      CHECK(encoder_only.find_external("logits") == kNoTensor);
      const Graph step = model.step({.batch = 3, .beams = 2, .source = 16, .capacity = 32});
      CHECK(step.row_capacity() == 6);
      const TensorId cache = step.find_external("self_kv." + last);
      REQUIRE(cache != kNoTensor);
      // Heads need not be as wide together as the stack (T5).
      const Shape cached = step.tensor(cache).shape;
      CHECK(cached == Shape{6, 32, cached.back()});
      CHECK(cached.back() % (2 * facts.decoder_heads) == 0);
    }
  }

  TEST_CASE("model directories are inspected without a device") {
    const auto info = inspect_model(golden_case("marian-base").path("model"));
    REQUIRE_MESSAGE(info.ok(), info.error().message);
    CHECK(info->family == "marian");
    CHECK(info->width == 32);
    CHECK(info->tensors.size() > 20);
    int64_t elements = 0;
    for (const TensorInfo& tensor : info->tensors) elements += element_count(tensor.shape);
    CHECK(info->parameters == elements);
    const TempDir empty;
    CHECK_FALSE(inspect_model(empty.path()).ok());
    CHECK_FALSE(inspect_model("").ok());
  }

  TEST_CASE("a configuration that does not belong to the weights is refused by tensor") {
    const GoldenCase golden = golden_case("marian-base");
    const TempDir directory;
    std::filesystem::copy_file(golden.path("model/model.safetensors"),
                               directory.file("model.safetensors"));
    Json config = read_json(golden.path("model/config.json"));
    for (const auto& [key, value, tensor] :
         {std::tuple{"encoder_ffn_dim", 65, "encoder.layers.0.fc1"},
          std::tuple{"d_model", 36, "shared"}, std::tuple{"decoder_layers", 3, "decoder.layers.2."},
          std::tuple{"encoder_layers", 1, "encoder.layers.1."},
          std::tuple{"decoder_vocab_size", 81, "shared"}}) {
      directory.write("config.json", with_value(config, key, value).dump());
      const auto info = inspect_model(directory.path());
      REQUIRE_FALSE(info.ok());
      CAPTURE(info.error().message);
      CHECK(contains(info.error().message, tensor));
    }
  }
}

}  // namespace vkformer::testing
