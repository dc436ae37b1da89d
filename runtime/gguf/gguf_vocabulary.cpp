#include "gguf/gguf_vocabulary.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "gguf/gguf_tokenizer.h"
#include "tokenizer_files/tokenizer_json.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;

constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr std::string_view kPieceSpace = "\xe2\x96\x81";  // stands for a space in pieces
constexpr size_t kMostWrittenTokens = size_t{1} << 22;

// tokenizer.ggml.token_type
constexpr int32_t kNormalToken = 1, kUnknownToken = 2, kControlToken = 3, kUserToken = 4,
                  kUnusedToken = 5, kByteToken = 6;

std::string ggml_key(const char* name) {
  return std::string("tokenizer.ggml.") + name;
}

Json member(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object.at(key) : Json();
}

std::string type_name(const Json& step) {
  const Json type = member(step, "type");
  return type.is_string() ? type.get<std::string>() : std::string();
}

struct WrittenToken {
  std::string text;
  int32_t kind = kUnusedToken;
  float score = 0.0f;
};

// What stands before and after a text.
struct WrittenEnds {
  std::optional<int64_t> before, after;
};

class VocabularyWriter {
 public:
  VocabularyWriter(const Json& tokenizer, const Json& config, std::string label, int64_t rows,
                   GgufTokenIds ids, GgufWriter& writer)
      : tokenizer_(tokenizer),
        model_(tokenizer.at("model")),
        config_(config),
        label_(std::move(label)),
        rows_(rows),
        ids_(std::move(ids)),
        writer_(writer) {}

  Status put();

 private:
  Error refused(const std::string& what) const {
    return unsupported(message({"File [", label_, "] ", what, ", which a GGUF file cannot say."}));
  }
  Status add_token(int64_t id, std::string text, int32_t kind);
  Status read_tokens();
  Status read_added();
  Status read_ends();
  Status put_byte_level();
  Status put_sentence_piece();
  Status put_word_pieces();
  Status put_unigram();
  Status put_roles();
  void put_tokens(const char* model);
  void put_scores();
  std::optional<int64_t> id_of(const std::string& text) const;

  const Json& tokenizer_;
  const Json& model_;
  const Json& config_;
  std::string label_;
  int64_t rows_;
  GgufTokenIds ids_;
  GgufWriter& writer_;
  std::vector<WrittenToken> tokens_;
  std::map<std::string, int64_t> by_text_;
  WrittenEnds ends_;
};

Status VocabularyWriter::add_token(int64_t id, std::string text, int32_t kind) {
  if (id < 0 || id >= rows_) {
    return refused(message({"has the token ", bracketed(text), " with the id ", id,
                            ", but the model has embeddings of ", rows_, " tokens"}));
  }
  by_text_.emplace(text, id);
  tokens_[static_cast<size_t>(id)] = {std::move(text), kind, 0.0f};
  return {};
}

Status VocabularyWriter::read_tokens() {
  // Rows that no token has are unused.
  tokens_.resize(static_cast<size_t>(rows_));
  for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i].text = message({"[PAD", i, "]"});
  const Json& vocabulary = model_.at("vocab");
  if (vocabulary.is_object()) {
    for (const auto& [text, id] : vocabulary.items()) {
      VKF_CHECK(add_token(id.get<int64_t>(), text, kNormalToken));
    }
    return read_added();
  }
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    VKF_CHECK(add_token(static_cast<int64_t>(i), vocabulary.at(i).at(0).get<std::string>(),
                        kNormalToken));
    tokens_[i].score = vocabulary.at(i).at(1).get<float>();
  }
  return read_added();
}

Status VocabularyWriter::read_added() {
  const Json added = member(tokenizer_, "added_tokens");
  for (const Json& one : added) {
    const auto id = one.at("id").get<int64_t>();
    const bool special = one.at("special").get<bool>();
    const float score = id >= 0 && id < rows_ ? tokens_[static_cast<size_t>(id)].score : 0.0f;
    VKF_CHECK(
        add_token(id, one.at("content").get<std::string>(), special ? kControlToken : kUserToken));
    tokens_[static_cast<size_t>(id)].score = score;
  }
  return {};
}

std::optional<int64_t> VocabularyWriter::id_of(const std::string& text) const {
  const auto found = by_text_.find(text);
  if (found == by_text_.end()) return std::nullopt;
  return found->second;
}

// The special tokens that stand around one text.
Status VocabularyWriter::read_ends() {
  for (const Json& step : gguf_steps(member(tokenizer_, "post_processor"), "processors")) {
    const std::string type = type_name(step);
    if (type == "ByteLevel") continue;
    if (type == "BertProcessing") {
      ends_ = {step.at("cls").at(1).get<int64_t>(), step.at("sep").at(1).get<int64_t>()};
      continue;
    }
    if (type != "TemplateProcessing") return refused("has a post_processor of the type " + type);
    bool text = false;
    for (const Json& piece : step.at("single")) {
      if (piece.contains("Sequence")) {
        text = true;
        continue;
      }
      std::optional<int64_t>& end = text ? ends_.after : ends_.before;
      if (end) return refused("puts several tokens at one end of a text");
      end = id_of(piece.at("SpecialToken").at("id").get<std::string>());
    }
  }
  return {};
}

void VocabularyWriter::put_tokens(const char* model) {
  writer_.put_text(ggml_key("model"), model);
  std::vector<std::string> texts;
  std::vector<int32_t> kinds;
  for (const WrittenToken& token : tokens_) {
    texts.push_back(token.text);
    kinds.push_back(token.kind);
  }
  writer_.put_texts(ggml_key("tokens"), texts);
  writer_.put_numbers(ggml_key("token_type"), kinds);
}

void VocabularyWriter::put_scores() {
  std::vector<float> scores;
  for (const WrittenToken& token : tokens_) scores.push_back(token.score);
  writer_.put_floats(ggml_key("scores"), scores);
}

// "a b", or the two of them.
std::pair<std::string, std::string> merge_of(const Json& merge) {
  if (merge.is_array()) return {merge.at(0).get<std::string>(), merge.at(1).get<std::string>()};
  const auto text = merge.get<std::string>();
  const size_t space = text.find(' ', 1);
  return {text.substr(0, space), space == std::string::npos ? "" : text.substr(space + 1)};
}

Status VocabularyWriter::put_byte_level() {
  const std::string cut = gguf_word_cut(tokenizer_);
  if (cut.empty()) {
    return refused("cuts words, or changes texts, in a way that has no name among [" +
                   ggml_key("pre") + "]");
  }
  std::vector<std::string> merges;
  for (const Json& merge : model_.at("merges")) {
    const auto [left, right] = merge_of(merge);
    merges.push_back(left + " " + right);
  }
  put_tokens("gpt2");
  writer_.put_text(ggml_key("pre"), cut);
  writer_.put_texts(ggml_key("merges"), merges);
  return {};
}

// Whether texts get a space in front; nothing where the steps are not SentencePiece's.
std::optional<bool> space_prefix(const Json& tokenizer) {
  const Json space = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", std::string(kPieceSpace)}};
  const Json normalizer = gguf_steps(member(tokenizer, "normalizer"), "normalizers");
  const Json words = gguf_steps(member(tokenizer, "pre_tokenizer"), "pretokenizers");
  if (normalizer.empty()) {
    if (words.size() != 1 || type_name(words[0]) != "Metaspace") return std::nullopt;
    return words[0].value("prepend_scheme", "always") != "never";
  }
  const bool cut_at_spaces = words.size() == 1 && type_name(words[0]) == "Split" &&
                             words[0].at("pattern") == Json{{"String", " "}};
  if (!words.empty() && !cut_at_spaces) return std::nullopt;
  const Json prefix = {{"type", "Prepend"}, {"prepend", std::string(kPieceSpace)}};
  if (normalizer == Json::array({prefix, space})) return true;
  if (normalizer == Json::array({space})) return false;
  return std::nullopt;
}

// Scores count merges down: those of a better piece come first.
Status VocabularyWriter::put_sentence_piece() {
  const std::optional<bool> prefix = space_prefix(tokenizer_);
  if (!prefix) return refused("has other steps than SentencePiece's");
  for (WrittenToken& token : tokens_) token.score = -1e6f;
  const Json& merges = model_.at("merges");
  for (size_t rank = merges.size(); rank-- > 0;) {
    const auto [left, right] = merge_of(merges.at(rank));
    const auto id = id_of(left + right);
    if (!id)
      return refused(message({"merges to ", bracketed(left + right), ", which is not a token"}));
    tokens_[static_cast<size_t>(*id)].score = -static_cast<float>(rank);
  }
  for (WrittenToken& token : tokens_) {
    const bool byte = token.text.size() == 6 && token.text.starts_with("<0x");
    if (byte && token.kind != kUnusedToken && model_.value("byte_fallback", false)) {
      token.kind = kByteToken;
    }
  }
  put_tokens("llama");
  put_scores();
  writer_.put_bool(ggml_key("add_space_prefix"), *prefix);
  return {};
}

// Files mark the beginnings of words; tokenizers mark what continues them.
Status VocabularyWriter::put_word_pieces() {
  const Json normalizer = member(tokenizer_, "normalizer");
  if (type_name(normalizer) != "BertNormalizer" || !normalizer.value("clean_text", true) ||
      !normalizer.value("handle_chinese_chars", true) ||
      type_name(member(tokenizer_, "pre_tokenizer")) != "BertPreTokenizer" ||
      model_.value("continuing_subword_prefix", "##") != "##") {
    return refused("has other steps than BERT's");
  }
  for (WrittenToken& token : tokens_) {
    if (token.kind == kControlToken || token.kind == kUnusedToken) continue;
    token.text =
        token.text.starts_with("##") ? token.text.substr(2) : std::string(kPieceSpace) + token.text;
  }
  put_tokens("bert");
  const bool lower = normalizer.value("lowercase", true);
  const Json strips = member(normalizer, "strip_accents");
  writer_.put_bool(ggml_key("normalizer.lowercase"), lower);
  if (strips.is_boolean() && strips.get<bool>() != lower) {
    writer_.put_bool(ggml_key("normalizer.strip_accents"), strips.get<bool>());
  }
  return {};
}

Status VocabularyWriter::put_unigram() {
  std::string map;
  bool trims = false;
  for (const Json& step : gguf_steps(member(tokenizer_, "normalizer"), "normalizers")) {
    const std::string type = type_name(step);
    if (type == "Precompiled") {
      const auto bytes = bytes_of_base64(step.at("precompiled_charsmap").get<std::string>());
      if (!bytes) return refused("has a precompiled_charsmap that is not base64");
      map = *bytes;
    } else if (type == "Replace" && step.at("pattern") == Json{{"Regex", " {2,}"}}) {
      trims = true;
    } else if (type != "Strip") {
      return refused("has a normalizer of the type " + type);
    }
  }
  std::optional<bool> prefix;
  for (const Json& step : gguf_steps(member(tokenizer_, "pre_tokenizer"), "pretokenizers")) {
    const std::string type = type_name(step);
    if (type == "Metaspace") {
      const bool added = step.value("add_prefix_space", true);
      prefix = step.value("prepend_scheme", added ? "always" : "never") != "never";
    } else if (type == "WhitespaceSplit") {
      trims = true;
    } else {
      return refused("has a pre_tokenizer of the type " + type);
    }
  }
  if (!prefix) return refused("has no Metaspace among its steps");
  const Json unknown = member(model_, "unk_id");
  if (unknown.is_number_integer() && unknown.get<int64_t>() >= 0 &&
      unknown.get<int64_t>() < rows_) {
    tokens_[unknown.get<size_t>()].kind = kUnknownToken;
    writer_.put_number(ggml_key("unknown_token_id"), unknown.get<uint32_t>());
  }
  put_tokens("t5");
  put_scores();
  writer_.put_bool(ggml_key("add_space_prefix"), *prefix);
  writer_.put_bool(ggml_key("remove_extra_whitespaces"), trims);
  if (!map.empty()) {
    writer_.put_bytes(ggml_key("precompiled_charsmap"), std::as_bytes(std::span(map)));
  }
  return {};
}

// Special tokens by their roles.
Status VocabularyWriter::put_roles() {
  VKF_CHECK(read_ends());
  const bool words = type_name(model_) == "WordPiece";
  std::map<std::string, int64_t> roles;
  const auto add = [&](const char* role, const std::optional<int64_t>& id) {
    if (id && *id >= 0 && *id < rows_) roles.emplace(role, *id);
  };
  const auto named = [&](const char* name) -> std::optional<int64_t> {
    const Json token = member(config_, name);
    const Json content = token.is_object() ? member(token, "content") : token;
    if (!content.is_string()) return std::nullopt;
    return id_of(content.get<std::string>());
  };
  if (words) {
    // llama.cpp reads the token that begins a text from this key alone.
    add("bos", ends_.before);
    add("cls", ends_.before);
    add("seperator", ends_.after);
    add("unknown", id_of(model_.value("unk_token", "[UNK]")));
  } else {
    writer_.put_bool(ggml_key("add_bos_token"), ends_.before.has_value());
    writer_.put_bool(ggml_key("add_eos_token"), ends_.after.has_value());
    add("bos", ends_.before);
    add("eos", ends_.after);
  }
  add("bos", ids_.bos);
  add("bos", named("bos_token"));
  size_t next = 0;
  for (const char* role : {"eos", "eot", "eom"}) {
    while (next < ids_.ends.size() && roles.count("eos") != 0 &&
           ids_.ends[next] == roles.at("eos")) {
      ++next;
    }
    if (roles.count(role) == 0 && next < ids_.ends.size()) add(role, ids_.ends[next++]);
  }
  if (next < ids_.ends.size()) {
    return refused(message({"is of a model with ", ids_.ends.size(), " tokens that end a text"}));
  }
  add("eos", named("eos_token"));
  add("padding", ids_.pad);
  add("padding", named("pad_token"));
  add("mask", named("mask_token"));
  add("seperator", named("sep_token"));
  add("cls", named("cls_token"));
  if (type_name(model_) == "BPE") {
    const Json unknown = member(model_, "unk_token");
    if (unknown.is_string()) add("unknown", id_of(unknown.get<std::string>()));
  }
  for (const auto& [role, id] : roles) {
    writer_.put_number(ggml_key((role + "_token_id").c_str()), static_cast<uint32_t>(id));
  }
  return {};
}

Status VocabularyWriter::put() {
  VKF_CHECK(read_tokens());
  VKF_CHECK(put_roles());
  const std::string type = type_name(model_);
  if (type == "Unigram") return put_unigram();
  if (type == "WordPiece") return put_word_pieces();
  if (type != "BPE") return refused("has a model of the type " + bracketed(type));
  for (const Json& step : gguf_steps(member(tokenizer_, "pre_tokenizer"), "pretokenizers")) {
    if (type_name(step) == "ByteLevel") return put_byte_level();
  }
  return put_sentence_piece();
}

// The ways to make a piece, in the order of pieces. Those of one piece follow each other in any
// order, since none of them is where another one is.
struct PieceMerges {
  std::string piece;
  std::set<std::string> lefts;
  bool operator==(const PieceMerges&) const = default;
};

std::vector<PieceMerges> grouped_merges(const Json& merges) {
  std::vector<PieceMerges> groups;
  for (const Json& merge : merges) {
    const auto [left, right] = merge_of(merge);
    if (groups.empty() || groups.back().piece != left + right) groups.push_back({left + right, {}});
    groups.back().lefts.insert(left);
  }
  return groups;
}

// What a file says must be what the tokenizer had: tokens by id, and merges in their order.
Status compare_back(const Json& tokenizer, const Json& back, const std::string& label) {
  const auto differs = [&](const char* what) {
    return unsupported(message({"File [", label, "] has ", what,
                                ", which a GGUF file of its kind "
                                "cannot say."}));
  };
  const Json& model = tokenizer.at("model");
  const Json& read = back.at("model");
  if (type_name(model) != type_name(read)) return differs("a model of another type");
  const Json& vocabulary = model.at("vocab");
  const Json& known = read.at("vocab");
  if (vocabulary.is_object()) {
    for (const auto& [text, id] : vocabulary.items()) {
      if (!known.contains(text) || known.at(text) != id) return differs("two tokens of one text");
    }
  } else {
    for (size_t i = 0; i < vocabulary.size(); ++i) {
      if (known.at(i).at(0) != vocabulary.at(i).at(0)) return differs("other tokens");
    }
  }
  if (model.value("byte_fallback", false) != read.value("byte_fallback", false)) {
    return differs("byte_fallback without tokens for bytes");
  }
  if (!model.contains("merges")) return {};
  return grouped_merges(model.at("merges")) == grouped_merges(read.at("merges"))
             ? Status{}
             : Status(differs("merges that do not follow from scores of its tokens"));
}

Status put_tokenizer(const Json& tokenizer, const Json& config, const std::string& label,
                     const std::string& architecture, int64_t rows, const GgufTokenIds& ids,
                     GgufWriter& writer) {
  GgufWriter own;
  own.put_text("general.architecture", architecture);
  VKF_CHECK(VocabularyWriter(tokenizer, config, label, rows, ids, own).put());
  VKF_ASSIGN(const GgufFile file, GgufFile::parse(MappedFile::from_bytes(own.head(), label)));
  VKF_ASSIGN(const std::string text, gguf_tokenizer_json(file));
  VKF_CHECK(compare_back(tokenizer, Json::parse(text), label));
  for (const auto& [key, value] : file.values()) {
    if (key.starts_with("tokenizer.")) writer.put_value(key, value);
  }
  return {};
}

// chat_template.jinja, or the one or several of tokenizer_config.json.
Status put_templates(const FileStore& files, const Json& config, GgufWriter& writer) {
  const std::string key = "tokenizer.chat_template";
  constexpr const char* kOwnFile = "chat_template.jinja";
  if (files.has(kOwnFile)) {
    VKF_ASSIGN(const MappedFile file, files.open(kOwnFile));
    writer.put_text(key, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
    return {};
  }
  const Json templates = member(config, "chat_template");
  if (templates.is_string()) writer.put_text(key, templates.get<std::string>());
  if (!templates.is_array()) return {};
  std::vector<std::string> names;
  for (const Json& one : templates) {
    const auto name = one.at("name").get<std::string>();
    const auto text = one.at("template").get<std::string>();
    if (name == "default") {
      writer.put_text(key, text);
      continue;
    }
    names.push_back(name);
    writer.put_text(key + "." + name, text);
  }
  if (!names.empty()) writer.put_texts("tokenizer.chat_templates", names);
  return {};
}

// The ids alone, of a model without a tokenizer.
void put_ids(const GgufTokenIds& ids, GgufWriter& writer) {
  const auto put = [&](const char* role, int64_t id) {
    if (id >= 0) writer.put_number(ggml_key(role), static_cast<uint32_t>(id));
  };
  if (ids.bos) put("bos_token_id", *ids.bos);
  if (ids.pad) put("padding_token_id", *ids.pad);
  constexpr const char* kRoles[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
  for (size_t i = 0; i < std::size(kRoles) && i < ids.ends.size(); ++i) put(kRoles[i], ids.ends[i]);
}

}  // namespace

Status put_gguf_vocabulary(const FileStore& files, const std::string& architecture, int64_t rows,
                           const GgufTokenIds& ids, GgufWriter& writer) {
  if (!files.has(kTokenizerFile)) {
    put_ids(ids, writer);
    return {};
  }
  const std::string label = files.label_of(kTokenizerFile);
  if (rows < 1 || static_cast<uint64_t>(rows) > kMostWrittenTokens) {
    return unsupported(message({"The model has embeddings of ", rows,
                                " tokens, but a vocabulary "
                                "has 1 to ",
                                kMostWrittenTokens, "."}));
  }
  VKF_ASSIGN(const Json tokenizer, read_json_file(files, kTokenizerFile));
  Json config = Json::object();
  if (files.has(kConfigFile)) {
    VKF_ASSIGN(config, read_json_file(files, kConfigFile));
  }
  // A value of another type than its key asks for is found where it is read.
  try {
    VKF_CHECK(put_tokenizer(tokenizer, config, label, architecture, rows, ids, writer));
    return put_templates(files, config, writer);
  } catch (const Json::exception& error) {
    return invalid_file(message({"File [", label, "] is no tokenizer.json: ", error.what(), "."}));
  }
}

}  // namespace vkformer
