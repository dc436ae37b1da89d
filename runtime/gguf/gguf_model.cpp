#include "gguf/gguf_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "gguf/gguf_architectures.h"
#include "gguf/gguf_metadata.h"
#include "gguf/gguf_names.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;

// `gated`: of the feed-forward layers of T5.
std::vector<GgufName> names_of(const GgufArchitecture& architecture, bool gated) {
  return architecture.names != nullptr ? architecture.names() : t5_names(gated);
}

// How texts become embeddings: by pooling, then to length 1, as the format's own programs do.
Status add_pooling(const GgufMetadata& m, GgufModel& model) {
  VKF_ASSIGN(const int64_t type, m.file().get_int_or(m.key("pooling_type"), 0));
  constexpr int64_t kRank = 4;  // by a classifier, which is a part of the model
  const bool ranks = type == kRank && m.tensor("cls.output.weight") != nullptr;
  if (type == 0 || ranks) return {};
  constexpr const char* kModes[] = {"mean", "cls", "lasttoken"};
  if (type < 0 || type > 3) {
    return m.refused("pooling_type", message({"as ", type,
                                              "; 0 (none), 1 (mean), 2 (first token), "
                                              "3 (last token) and, of architecture bert with "
                                              "[cls.output.weight], 4 (rank) are supported."}));
  }
  model.pooling = {{"pooling_mode", kModes[type - 1]}};
  Json& modules = model.modules;
  modules = Json::array();
  const auto add = [&](const char* path, const char* name) {
    modules.push_back({{"idx", modules.size()},
                       {"name", std::to_string(modules.size())},
                       {"path", path},
                       {"type", std::string("sentence_transformers.models.") + name}});
  };
  add("", "Transformer");
  add("1_Pooling", "Pooling");
  for (const auto& [tensor, folder] :
       {std::pair{"dense_2.weight", "2_Dense"}, std::pair{"dense_3.weight", "3_Dense"}}) {
    const GgufTensor* dense = m.tensor(tensor);
    if (dense == nullptr || dense->shape.size() != 2) continue;
    add(folder, "Dense");
    model.dense[std::string(folder) + "/config.json"] = {
        {"in_features", dense->shape[1]}, {"out_features", dense->shape[0]}, {"bias", false}};
  }
  add("2_Normalize", "Normalize");
  return {};
}

// Texts of tokens that end an answer in the templates of instruction-tuned models. Their files name
// one token that ends a text, but not always this one.
constexpr std::string_view kEnds[] = {"<|eot_id|>",    "<|im_end|>", "<|end|>",  "<|eom_id|>",
                                      "<end_of_turn>", "<|return|>", "<|call|>", "<|endoftext|>"};

Status add_ends(const GgufMetadata& m, const std::vector<std::string_view>& tokens, Json& ends) {
  const auto add = [&](int64_t id) {
    if (std::find(ends.begin(), ends.end(), Json(id)) == ends.end()) ends.push_back(id);
  };
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (!m.file().has(key)) continue;
    VKF_ASSIGN(const int64_t id, m.file().get_int(key));
    add(id);
  }
  VKF_ASSIGN(const std::vector<double> types, m.file().get_numbers("tokenizer.ggml.token_type"));
  constexpr double kControl = 3;
  for (size_t i = 0; i < tokens.size() && i < types.size(); ++i) {
    // GPT-OSS ends a message, not its answer, with this one.
    if (tokens[i] == "<|end|>" && m.architecture() == "gpt-oss") continue;
    const bool known = std::find(std::begin(kEnds), std::end(kEnds), tokens[i]) != std::end(kEnds);
    if (known && types[i] == kControl) add(static_cast<int64_t>(i));
  }
  return {};
}

Status add_token_ids(const GgufMetadata& m, GgufModel& model) {
  const GgufFile& file = m.file();
  VKF_ASSIGN(const std::vector<std::string_view> tokens, file.get_strings("tokenizer.ggml.tokens"));
  Json& generation = model.generation;
  generation = Json::object();
  for (const auto& [to, from] : {std::pair{"bos_token_id", "tokenizer.ggml.bos_token_id"},
                                 std::pair{"pad_token_id", "tokenizer.ggml.padding_token_id"}}) {
    if (!file.has(from)) continue;
    VKF_ASSIGN(generation[to], file.get_int(from));
    model.config[to] = generation[to];
  }
  if (m.architecture() == "t5") {
    generation["decoder_start_token_id"] = model.config["decoder_start_token_id"];
  }
  Json ends = Json::array();
  VKF_CHECK(add_ends(m, tokens, ends));
  if (ends.empty()) return {};
  generation["eos_token_id"] = ends;
  model.config["eos_token_id"] = ends.front();
  return {};
}

}  // namespace

std::string gguf_architectures() {
  std::string names;
  for (const GgufArchitecture& one : gguf_architecture_list()) {
    names += std::string(names.empty() ? "" : ", ") + one.name;
  }
  return names;
}

Result<GgufNaming> gguf_naming(const std::string& architecture, const JsonConfig& config) {
  const GgufArchitecture* found = find_gguf_architecture(architecture);
  if (found == nullptr) {
    return unsupported(message({"The architecture is ", bracketed(architecture),
                                ", which is not supported in GGUF files. Supported are ",
                                gguf_architectures(), "."}));
  }
  VKF_ASSIGN(const std::string type, config.get_string("model_type"));
  const std::string further = message({" ", found->further, " "});
  if (type != found->family && further.find(" " + type + " ") == std::string::npos) {
    return invalid_file(message({"The architecture is ", architecture, ", but [model_type] in ",
                                 config.where(), " is ", bracketed(type), "."}));
  }
  // Models of pictures and texts have the numbers of their texts in an object.
  const JsonConfig texts = config.has("text_config") ? config.object("text_config") : config;
  VKF_ASSIGN(const std::string ffn, texts.get_string_or("feed_forward_proj", ""));
  GgufNaming naming{.names = names_of(*found, ffn.starts_with("gated")),
                    .architecture = architecture};
  VKF_ASSIGN(naming.heads, texts.get_int_or("num_attention_heads", 0));
  VKF_ASSIGN(naming.kv_heads, texts.get_int_or("num_key_value_heads", naming.heads));
  return naming;
}

Result<GgufModel> read_gguf_model(const std::vector<const GgufFile*>& files) {
  const GgufFile& file = *files.front();
  VKF_ASSIGN(const std::string kind, file.get_string_or("general.type", "model"));
  if (kind == "adapter") {
    return invalid_file(message({"File [", file.path(),
                                 "] is an adapter by its [general.type] and no model; give it "
                                 "beside its model, as --adapter or in ModelOptions::adapters."}));
  }
  VKF_ASSIGN(const std::string name, file.get_string("general.architecture"));
  const GgufArchitecture* found = find_gguf_architecture(name);
  if (found == nullptr) {
    return unsupported(
        message({"File [", file.path(), "] has [general.architecture] as ", bracketed(name),
                 ", which is not supported in GGUF files. "
                 "Supported are ",
                 gguf_architectures(), "."}));
  }
  const GgufMetadata m(files, name);
  GgufModel model;
  VKF_ASSIGN(Json config, found->config(m));
  model.config = std::move(config);
  if (!model.config.contains("model_type")) {
    model.config["model_type"] = found->family;
    model.config["architectures"] = Json::array({found->of});
  }
  const bool gated = m.tensor("enc.blk.0.ffn_gate.weight") != nullptr;
  model.naming = {.names = names_of(*found, gated),
                  .architecture = name,
                  .heads = model.config.value("num_attention_heads", int64_t{0}),
                  .kv_heads = model.config.value("num_key_value_heads", int64_t{0})};
  VKF_CHECK(add_token_ids(m, model));
  VKF_CHECK(add_pooling(m, model));
  return model;
}

}  // namespace vkformer
