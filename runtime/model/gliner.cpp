// GLiNER (Zaratiana et al., 2024): a DeBERTa that finds entities of labels that are part of its
// input. gliner_config.json has its settings and, in newer files, the encoder's.
#include <algorithm>

#include "base/message.h"
#include "model/config_reading.h"
#include "model/deberta_v2.h"
#include "model/family_list.h"
#include "model/gliner_form.h"

namespace vkformer {
namespace {

constexpr const char* kEncoder = "token_rep_layer.bert_layer.model.";
constexpr int64_t kMostSpanWidth = 256;   // words
constexpr int64_t kMostTokens = 1 << 13;  // of a row, where positions are relative

// Encoders that files without an encoder_config name by model_name.
struct NamedEncoder {
  const char* name;
  int64_t width, layers, heads;
};
constexpr NamedEncoder kNamedEncoders[] = {{"microsoft/deberta-v3-xsmall", 384, 12, 6},
                                           {"microsoft/deberta-v3-small", 768, 6, 12},
                                           {"microsoft/deberta-v3-base", 768, 12, 12},
                                           {"microsoft/deberta-v3-large", 1024, 24, 16},
                                           {"microsoft/mdeberta-v3-base", 768, 12, 12}};

Error other_setting(const JsonConfig& config, const char* key, const std::string& value,
                    const char* supported) {
  return unsupported(message(
      {"[", key, "] is ", value, " in ", config.where(), "; supported is ", supported, "."}));
}

// Settings that make another architecture of it.
Status refuse_architectures(const JsonConfig& config) {
  for (const char* key : {"labels_encoder", "labels_decoder", "relations_layer"}) {
    VKF_ASSIGN(const std::string value, config.get_string_or(key, ""));
    if (!value.empty()) {
      return other_setting(config, key, "'" + value + "'",
                           "none: one encoder that reads labels and text together");
    }
  }
  for (const char* key : {"fuse_layers", "precomputed_prompts_mode", "represent_spans"}) {
    VKF_ASSIGN(const bool value, config.get_bool_or(key, false));
    if (value) return other_setting(config, key, "true", "false");
  }
  VKF_ASSIGN(const std::string fusion, config.get_string_or("post_fusion_schema", ""));
  if (!fusion.empty()) {
    return other_setting(config, "post_fusion_schema", "'" + fusion + "'", "none");
  }
  VKF_ASSIGN(const std::string pooling, config.get_string_or("subtoken_pooling", "first"));
  if (pooling != "first") {
    return other_setting(config, "subtoken_pooling", "'" + pooling + "'", "'first'");
  }
  VKF_ASSIGN(const std::string splitter, config.get_string_or("words_splitter_type", "whitespace"));
  if (splitter != "whitespace") {
    return other_setting(config, "words_splitter_type", "'" + splitter + "'", "'whitespace'");
  }
  return {};
}

// DeBERTa v3's settings with the sizes of one of them, as the text of a configuration.
Result<JsonConfig> named_encoder(const JsonConfig& config) {
  VKF_ASSIGN(const std::string name, config.get_string("model_name"));
  VKF_ASSIGN(const int64_t vocab, get_size(config, "vocab_size", kMostVocabulary));
  for (const NamedEncoder& known : kNamedEncoders) {
    if (name != known.name) continue;
    return JsonConfig::parse(
        message({"{\"model_type\": \"deberta-v2\", \"relative_attention\": true,"
                 " \"position_buckets\": 256, \"norm_rel_ebd\": \"layer_norm\","
                 " \"share_att_key\": true, \"pos_att_type\": \"p2c|c2p\","
                 " \"position_biased_input\": false, \"type_vocab_size\": 0,"
                 " \"hidden_size\": ",
                 known.width, ", \"intermediate_size\": ", 4 * known.width,
                 ", \"num_hidden_layers\": ", known.layers,
                 ", \"num_attention_heads\": ", known.heads, ", \"vocab_size\": ", vocab, "}"}),
        config.where());
  }
  std::string names;
  for (const NamedEncoder& known : kNamedEncoders) {
    names += std::string(names.empty() ? "" : ", ") + known.name;
  }
  return unsupported(message({"[model_name] is '", name, "' in ", config.where(),
                              ", and there is no encoder_config; known by name are ", names,
                              ". Add the encoder's config.json as encoder_config."}));
}

Result<JsonConfig> read_encoder_config(const JsonConfig& config) {
  if (!config.has("encoder_config")) return named_encoder(config);
  JsonConfig encoder = config.object("encoder_config");
  VKF_CHECK(encoder.status());
  VKF_ASSIGN(const std::string type, encoder.get_string("model_type"));
  if (type == "deberta-v2") return encoder;
  return other_setting(encoder, "model_type", "'" + type + "'", "'deberta-v2' as encoder_config");
}

Result<GlinerConfig> read_gliner(const JsonConfig& config, int64_t vocab) {
  GlinerConfig c;
  VKF_ASSIGN(c.width, get_size_or(config, "hidden_size", 512, kMostWidth));
  VKF_ASSIGN(c.max_width, get_size_or(config, "max_width", 12, kMostSpanWidth));
  VKF_ASSIGN(const std::string mode, config.get_string_or("span_mode", "markerV0"));
  if (mode != "markerV0" && mode != "marker") {
    return other_setting(config, "span_mode", "'" + mode + "'", "'markerV0' or 'marker'");
  }
  if (mode == "marker") c.mode = GlinerConfig::SpanMode::kMarker;
  VKF_ASSIGN(const bool marker, config.get_bool_or("embed_ent_token", true));
  if (!marker) c.label_state = GlinerConfig::LabelState::kNextToken;
  // Files without the id have the markers of labels and of the text as their last two words.
  VKF_ASSIGN(c.label_token, config.get_int_or("class_token_index", -1));
  if (c.label_token == -1) c.label_token = vocab - 2;
  if (c.label_token < 0 || c.label_token >= vocab) {
    return invalid_file(message({"[class_token_index] in ", config.where(), " is ", c.label_token,
                                 ", but must lie between 0 and ", vocab - 1, "."}));
  }
  VKF_ASSIGN(c.lstm_layers, config.get_int_or("num_rnn_layers", 1));
  VKF_ASSIGN(const bool recurrent, config.get_bool_or("has_rnn", true));
  if (!recurrent || c.lstm_layers < 0) c.lstm_layers = 0;
  if (c.lstm_layers > kMostLayers) {
    return invalid_file(message({"[num_rnn_layers] in ", config.where(), " is ", c.lstm_layers,
                                 ", but may be at most ", kMostLayers, "."}));
  }
  if (c.lstm_layers > 0 && c.width % 2 != 0) {
    return invalid_file(message({"[hidden_size] in ", config.where(), " is ", c.width,
                                 ", but must be even: each direction of the LSTM has half."}));
  }
  return c;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_gliner(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_CHECK(refuse_architectures(config));
  ModelFiles encoder;
  VKF_ASSIGN(encoder.config, read_encoder_config(config));
  VKF_ASSIGN(DebertaConfig deberta, read_deberta_v2(encoder));
  BertConfig& bert = deberta.bert;
  ModelFacts& facts = bert.facts;
  VKF_ASSIGN(const GlinerConfig gliner, read_gliner(config, facts.source_vocab));
  facts.family = "gliner";
  facts.architecture = "GLiNER";
  facts.head = HeadKind::kEntities;
  // Without a table of positions the encoder reads longer rows than it was trained with.
  if (bert.block.embedding.positions.empty()) {
    facts.max_source = std::max(facts.max_source, kMostTokens);
  }
  bert.block.form = std::make_shared<GlinerForm>(deberta.form, gliner, bert.block.stack.width);
  bert.names.prefix = kEncoder;
  return make_bert(std::move(bert));
}

}  // namespace vkformer
