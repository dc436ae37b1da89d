#include "base/half.h"
#include "model/encoder_cases.h"
#include "recording/forward_inputs.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

const Json kEncoder = {{"model_type", "deberta-v2"},    {"hidden_size", 24},
                       {"num_hidden_layers", 2},        {"num_attention_heads", 3},
                       {"intermediate_size", 48},       {"vocab_size", 60},
                       {"max_position_embeddings", 32}, {"relative_attention", true},
                       {"position_buckets", 6},         {"pos_att_type", "p2c|c2p"},
                       {"share_att_key", true},         {"position_biased_input", false}};
const Json kGliner = {{"model_type", "gliner"},    {"hidden_size", 16},   {"max_width", 3},
                      {"vocab_size", 60},          {"num_rnn_layers", 1}, {"class_token_index", 58},
                      {"encoder_config", kEncoder}};

Result<ForwardInputs> read(const Json& config, const TensorMap& inputs) {
  auto family = load_config(config);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  return read_forward_inputs(**family, inputs);
}

Tensor ints(const Shape& shape, const std::vector<int64_t>& values) {
  return Tensor::from_ints(shape, values);
}

// Two rows: a label, a text of three words and one of one word, of which another token follows.
TensorMap two_rows() {
  TensorMap inputs;
  inputs["input_ids"] = ints({2, 7}, {1, 58, 5, 59, 7, 8, 9, 1, 58, 5, 6, 59, 7, 8});
  inputs["words_mask"] = ints({2, 7}, {0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 1, 0});
  return inputs;
}

void check_inputs_refused(const TensorMap& inputs, const std::vector<std::string>& parts) {
  const auto got = read(kGliner, inputs);
  REQUIRE_FALSE(got.ok());
  CAPTURE(got.error().message);
  CHECK(got.error().code == ErrorCode::kInvalidArgument);
  for (const std::string& part : parts) {
    CHECK_MESSAGE(test::contains(got.error().message, part), part);
  }
}

// Every matrix as halves keep it; norms, biases and the table of positions stay.
void round_matrices(ChangedModel& model) {
  for (auto& [name, tensor] : model.tensors) {
    if (tensor.shape.size() != 2 || test::contains(name, "rel_embeddings")) continue;
    std::vector<float> values = tensor.to_floats().value();
    for (float& value : values) value = float_from_half(half_from_float(value));
    tensor = Tensor::from_floats(tensor.shape, values);
  }
}

std::vector<float> logits_of(const ChangedModel& changed, const TensorMap& inputs,
                             WeightFormat format) {
  const test::TempDir directory;
  directory.write("gliner_config.json", changed.config.dump());
  REQUIRE(write_tensor_file(directory.file("model.safetensors"), changed.tensors).ok());
  ModelOptions options;
  options.weights = format;
  const auto model = Model::load(*test_device(), directory.path(), options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE(session.ok());
  const auto outputs = session->run(inputs);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return outputs->at("logits").to_floats().value();
}

// |a - b| / |b| of whole tensors.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double apart = 0, length = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(double{a[i]} - double{b[i]}, 2);
    length += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(apart / length);
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("gliner: halves give what rounded weights give, other formats stay near") {
    if (!have_test_device()) return;
    for (const char* name : {"gliner-v0", "gliner-marker", "gliner-plain"}) {
      CAPTURE(name);
      const TensorMap inputs = golden_case(name).pass_inputs();
      ChangedModel model(name);
      const std::vector<float> exact = logits_of(model, inputs, WeightFormat::kF32);
      CHECK(distance(logits_of(model, inputs, WeightFormat::kQ8), exact) < 0.03);
      const std::vector<float> halves = logits_of(model, inputs, WeightFormat::kF16);
      round_matrices(model);
      CHECK(distance(halves, logits_of(model, inputs, WeightFormat::kF32)) < 1e-5);
    }
  }

  TEST_CASE("gliner: a NaN reaches the spans and labels that it belongs to, and no others") {
    if (!have_test_device()) return;
    const TensorMap inputs = golden_case("gliner-plain").pass_inputs();
    ChangedModel model("gliner-plain");
    const std::vector<float> exact = logits_of(model, inputs, WeightFormat::kF32);
    model.spoil_row("span_rep_layer.span_rep_layer.project_end.3.weight", 0);
    for (const float logit : logits_of(model, inputs, WeightFormat::kF32)) CHECK(std::isnan(logit));
    ChangedModel whole("gliner-plain");
    CHECK(logits_of(whole, inputs, WeightFormat::kF32) == exact);
    // Row 1 alone has a label whose token is unknown to row 0.
    TensorMap changed = inputs;
    std::vector<int64_t> ids = changed.at("input_ids").to_ints().value();
    const Shape shape = changed.at("input_ids").shape;
    const size_t row = static_cast<size_t>(shape[1]);
    int64_t spare = 3;
    while (std::count(ids.begin(), ids.end(), spare) > 0) ++spare;
    ids[row + 2] = spare;
    changed["input_ids"] = Tensor::from_ints(shape, ids);
    whole.spoil_row("token_rep_layer.bert_layer.model.embeddings.word_embeddings.weight",
                    static_cast<size_t>(spare));
    const std::vector<float> spoiled = logits_of(whole, changed, WeightFormat::kF32);
    const size_t half = spoiled.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      CHECK(spoiled[i] == exact[i]);
      CHECK(std::isnan(spoiled[half + i]));
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("gliner: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kGliner);
    CHECK(facts.family == "gliner");
    CHECK(facts.architecture == "GLiNER");
    CHECK(facts.head == HeadKind::kEntities);
    CHECK(facts.width == 24);
    CHECK(facts.source_vocab == 60);
    CHECK(facts.max_source == 8192);
    const Json absolute = with(kGliner, "encoder_config", "position_biased_input", true);
    CHECK(facts_of(absolute).max_source == 32);
  }

  TEST_CASE("gliner: an encoder without a configuration is known by name") {
    Json config = kGliner;
    config.erase("encoder_config");
    check_refused(config, ErrorCode::kInvalidFile, {"[model_name]"});
    config["model_name"] = "microsoft/deberta-v3-small";
    config["vocab_size"] = 128004;
    const ModelFacts small = facts_of(config);
    CHECK(small.width == 768);
    CHECK(small.encoder_layers == 6);
    CHECK(small.encoder_heads == 12);
    CHECK(small.source_vocab == 128004);
    CHECK(facts_of(with(config, "model_name", "microsoft/deberta-v3-large")).width == 1024);
    check_refused(with(config, "model_name", "local/encoder"), ErrorCode::kUnsupported,
                  {"[model_name]", "'local/encoder'", "encoder_config"});
    config.erase("vocab_size");
    check_refused(config, ErrorCode::kInvalidFile, {"[vocab_size]"});
  }

  TEST_CASE("gliner: settings of other architectures are refused by name") {
    for (const char* key : {"labels_encoder", "labels_decoder", "relations_layer"}) {
      check_refused(with(kGliner, key, "other/model"), ErrorCode::kUnsupported,
                    {"[" + std::string(key) + "]", "'other/model'"});
    }
    for (const char* mode : {"token_level", "markerV1", "conv_share"}) {
      check_refused(with(kGliner, "span_mode", mode), ErrorCode::kUnsupported,
                    {"[span_mode]", mode, "markerV0"});
    }
    for (const char* key : {"fuse_layers", "precomputed_prompts_mode", "represent_spans"}) {
      check_refused(with(kGliner, key, true), ErrorCode::kUnsupported,
                    {"[" + std::string(key) + "]", "true"});
    }
    check_refused(with(kGliner, "post_fusion_schema", "l2l-l2t"), ErrorCode::kUnsupported,
                  {"[post_fusion_schema]", "'l2l-l2t'"});
    check_refused(with(kGliner, "subtoken_pooling", "mean"), ErrorCode::kUnsupported,
                  {"[subtoken_pooling]", "'mean'"});
    check_refused(with(kGliner, "words_splitter_type", "spacy"), ErrorCode::kUnsupported,
                  {"[words_splitter_type]", "'spacy'"});
    check_refused(with(kGliner, "encoder_config", "model_type", "modernbert"),
                  ErrorCode::kUnsupported, {"[model_type]", "'modernbert'", "encoder_config"});
  }

  TEST_CASE("gliner: hostile sizes are refused") {
    check_sizes(kGliner, {"hidden_size", "max_width"});
    check_refused(with(kGliner, "hidden_size", 15), ErrorCode::kInvalidFile,
                  {"[hidden_size]", "15", "even"});
    check_refused(with(kGliner, "num_rnn_layers", 5000), ErrorCode::kInvalidFile,
                  {"[num_rnn_layers]", "5000"});
    for (const int index : {60, -2}) {
      check_refused(with(kGliner, "class_token_index", index), ErrorCode::kInvalidFile,
                    {"[class_token_index]", std::to_string(index), "59"});
    }
    CHECK(facts_of(with(with(kGliner, "hidden_size", 15), "num_rnn_layers", 0)).width == 24);
    CHECK(facts_of(with(with(kGliner, "hidden_size", 15), "has_rnn", false)).width == 24);
  }

  TEST_CASE("gliner: the file's own name stands for the family") {
    const test::TempDir directory;
    Json config = kGliner;
    config["model_type"] = "gliner_uni_encoder_span";
    directory.write("gliner_config.json", config.dump());
    directory.write("config.json", R"({"model_type": "bert"})");
    const auto family = load_family(*make_directory_store(directory.path()));
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    CHECK((*family)->facts().family == "gliner");
  }

  TEST_CASE("gliner: words, labels and spans become rows") {
    const auto got = read(kGliner, two_rows());
    REQUIRE_MESSAGE(got.ok(), got.error().message);
    constexpr uint32_t kNone = ~0u;
    CHECK(got->shape.more == std::vector<int64_t>{3, 1});
    CHECK(got->words.at("word_rows") == std::vector<uint32_t>{4, 5, 6, 12, kNone, kNone});
    CHECK(got->words.at("label_rows") == std::vector<uint32_t>{1, 8});
    // Words 0 to 2 of row 0; of row 1 the first alone. Other spans are the first word.
    CHECK(got->words.at("span_starts") ==
          std::vector<uint32_t>{0, 0, 0, 1, 1, 0, 2, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3});
    CHECK(got->words.at("span_ends") ==
          std::vector<uint32_t>{0, 1, 2, 1, 2, 0, 2, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3});
    CHECK(got->words.at("order_backward") == std::vector<uint32_t>{2, 1, 0, 3, kNone, kNone});
    TensorMap inputs = two_rows();
    inputs["input_ids"] = ints({2, 7}, {1, 58, 5, 59, 7, 8, 9, 58, 5, 58, 6, 59, 7, 58});
    const auto next = read(with(kGliner, "embed_ent_token", false), inputs);
    REQUIRE_MESSAGE(next.ok(), next.error().message);
    CHECK(next->words.at("label_rows") == std::vector<uint32_t>{2, kNone, kNone, 8, 10, kNone});
  }

  TEST_CASE("gliner: without a mask of words every token that is kept is one") {
    TensorMap inputs = two_rows();
    inputs.erase("words_mask");
    inputs["attention_mask"] = ints({2, 7}, {1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1});
    const auto got = read(kGliner, inputs);
    REQUIRE_MESSAGE(got.ok(), got.error().message);
    CHECK(got->shape.more == std::vector<int64_t>{7, 1});
    CHECK(got->words.at("word_rows")[7] == 9);
    CHECK(got->words.at("word_rows")[12] == ~0u);
  }

  TEST_CASE("gliner: inputs that do not fit together are refused") {
    const auto changed = [](const char* name, Tensor tensor) {
      TensorMap inputs = two_rows();
      inputs[name] = std::move(tensor);
      return inputs;
    };
    check_inputs_refused(changed("words_mask", ints({2, 6}, std::vector<int64_t>(12))),
                         {"[words_mask]", "(2, 6)", "(2, 7)"});
    std::vector<int64_t> numbers(14);
    numbers[3] = -1;
    check_inputs_refused(changed("words_mask", ints({2, 7}, numbers)), {"[words_mask]", "-1"});
    numbers[3] = numbers[5] = 1;
    check_inputs_refused(changed("words_mask", ints({2, 7}, numbers)), {"[words_mask]", "twice"});
    check_inputs_refused(changed("text_lengths", ints({3}, {3, 1, 1})), {"[text_lengths]", "(3)"});
    check_inputs_refused(changed("text_lengths", ints({2}, {2, 1})), {"[text_lengths]", "2", "3"});
    check_inputs_refused(changed("span_mask", ints({2, 2, 3}, std::vector<int64_t>(12))),
                         {"[span_mask]", "(2, 2, 3)", "3"});
    std::vector<int64_t> spans(18);
    spans[8] = 1;
    check_inputs_refused(changed("span_mask", ints({2, 3, 3}, spans)),
                         {"[span_mask]", "3 words from word 2"});
    check_inputs_refused(changed("words", ints({2}, {2, 1})), {"[words]", "words_mask"});
    const auto given = read(kGliner, changed("text_lengths", ints({2, 1}, {4, 1})));
    REQUIRE_MESSAGE(given.ok(), given.error().message);
    CHECK(given->shape.more == std::vector<int64_t>{4, 1});
  }

  TEST_CASE("gliner: graphs score every span for every label") {
    const GoldenGraphs newer = golden_graphs("gliner-v0");
    CHECK(row_of(newer, "projection")->rows == 22);
    CHECK(row_of(newer, "encoder.0.backward.state")->width == 11);
    CHECK(row_of(newer, "span.out.end")->part->first_input == 22);
    CHECK(row_of(newer, "span.out.prompt")->rows == 88);
    const Graph graph = newer.forward({.batch = 2, .source = 9, .more = {4, 3}}, {});
    CHECK(graph.tensor(graph.find_external("logits")).shape == Shape{2, 4, 5, 3});
    const GoldenGraphs older = golden_graphs("gliner-marker");
    CHECK(row_of(older, "projection") == nullptr);
    CHECK(row_of(older, "span.out.prompt") == nullptr);
    CHECK(row_of(older, "span.start.up")->rows == 32);
    CHECK(row_of(older, "encoder.1.forward.input") != nullptr);
    CHECK(row_of(golden_graphs("gliner-plain"), "encoder.0.forward.input") == nullptr);
  }
}

}  // namespace vkformer::testing
