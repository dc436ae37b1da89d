#include "tokenizer_files/tokenizer_store.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "tokenizer_files/byte_pair_files.h"
#include "tokenizer_files/sentence_piece.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;

constexpr const char* kTokenizer = "tokenizer.json";

// WordPiece of BERT (Devlin et al., 2019): a piece on every line.
Result<std::string> word_piece_json(const FileStore& files, const TokenizerSettings& settings) {
  static const std::vector<std::string> known = {"",
                                                 "BertTokenizer",
                                                 "DistilBertTokenizer",
                                                 "ElectraTokenizer",
                                                 "MPNetTokenizer",
                                                 "PreTrainedTokenizer",
                                                 "LayoutLMTokenizer",
                                                 "MobileBertTokenizer"};
  if (std::find(known.begin(), known.end(), settings.kind) == known.end()) {
    return unsupported(
        message({"[tokenizer_class] in ", settings.label, " is ", bracketed(settings.kind),
                 ", which vkformer does not read of vocab.txt; it reads "
                 "BertTokenizer and those that are the same. Save the tokenizer as "
                 "tokenizer.json."}));
  }
  VKF_ASSIGN(const std::string text, read_text(files, "vocab.txt"));
  Json ids = Json::object();
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string piece = text.substr(at, end - at);
    if (piece.ends_with('\r')) piece.pop_back();
    if (!is_whole_utf8(piece)) {
      return invalid_file(message({"File [", files.label_of("vocab.txt"), "] has in line ",
                                   count + 1, " a piece that is not UTF-8."}));
    }
    ids[piece] = count;  // of equal ones the last counts
    at = end + 1;
  }
  std::vector<AddedToken> added;
  const auto special = [&](const char* role, const char* otherwise) {
    const std::string token = settings.token(role).value_or(otherwise);
    const auto found = ids.find(token);
    if (found != ids.end()) added.push_back({found->get<int64_t>(), token});
    return token;
  };
  AroundText around{.before = {}, .after = {}, .pair_types = true, .pair_begins = false};
  const std::string unknown = special("unk_token", "[UNK]");
  const std::string first = special("cls_token", "[CLS]"), last = special("sep_token", "[SEP]");
  special("pad_token", "[PAD]");
  special("mask_token", "[MASK]");
  if (ids.contains(first)) around.before.push_back({first, ids[first].get<int64_t>()});
  if (ids.contains(last)) around.after.push_back({last, ids[last].get<int64_t>()});
  const bool lower = settings.flag("do_lower_case", true);
  const auto accents = settings.config.find("strip_accents");
  const bool strips =
      accents != settings.config.end() && accents->is_boolean() ? accents->get<bool>() : lower;
  TokenizerSteps steps{
      .normalizer = {{"type", "BertNormalizer"},
                     {"clean_text", true},
                     {"handle_chinese_chars", settings.flag("tokenize_chinese_chars", true)},
                     {"strip_accents", strips},
                     {"lowercase", lower}},
      .pre_tokenizer = json_step("BertPreTokenizer"),
      .post_processor = around_text(around),
      .decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}},
      .model = {{"type", "WordPiece"},
                {"unk_token", unknown},
                {"continuing_subword_prefix", "##"},
                {"max_input_chars_per_word", 100},
                {"vocab", std::move(ids)}}};
  VKF_ASSIGN(steps.added, added_tokens_json(settings, std::move(added)));
  return tokenizer_text(std::move(steps));
}

// The file that a tokenizer is made of; "" where there is none.
std::string found_file(const FileStore& files) {
  for (const std::string& name : tokenizer_file_names()) {
    if (!files.has(name)) continue;
    if (name == "vocab.json" && !files.has("merges.txt")) continue;
    return name;
  }
  return {};
}

class TokenizerStore : public FileStore {
 public:
  explicit TokenizerStore(std::shared_ptr<const FileStore> files) : files_(std::move(files)) {}

  bool has(const std::string& name) const override {
    return files_->has(name) || (name == kTokenizer && !found_file(*files_).empty());
  }
  Result<MappedFile> open(const std::string& name) const override {
    const std::string from =
        name == kTokenizer && !files_->has(name) ? found_file(*files_) : std::string();
    if (from.empty()) return files_->open(name);
    VKF_ASSIGN(const std::string text, tokenizer_json_of(*files_, from));
    const auto bytes = std::as_bytes(std::span(text));
    return MappedFile::from_bytes({bytes.begin(), bytes.end()}, files_->label_of(from));
  }
  Result<std::vector<std::string>> safetensors_names() const override {
    return files_->safetensors_names();
  }
  Result<std::shared_ptr<const StoredTensors>> tensors() const override {
    return files_->tensors();
  }
  std::vector<StoredAdapter> adapters() const override { return files_->adapters(); }
  const FileStore* host_files() const override { return files_->host_files(); }
  std::string label() const override { return files_->label(); }

 private:
  std::shared_ptr<const FileStore> files_;
};

}  // namespace

std::vector<std::string> tokenizer_file_names() {
  return {
      "tekken.json",        "tokenizer.model",    "spiece.model",         "sentencepiece.bpe.model",
      "spm.model",          "qwen.tiktoken",      "cl100k_base.tiktoken", "o200k_base.tiktoken",
      "p50k_base.tiktoken", "r50k_base.tiktoken", "vocab.json",           "vocab.txt"};
}

Result<std::string> tokenizer_json_of(const FileStore& files, const std::string& name) {
  VKF_ASSIGN(const TokenizerSettings settings, read_tokenizer_settings(files));
  if (name == "tekken.json") return tekken_json(files, name, settings);
  if (name == "vocab.json") return vocabulary_and_merges_json(files, settings);
  if (name == "vocab.txt") return word_piece_json(files, settings);
  VKF_ASSIGN(const std::string content, read_text(files, name));
  if (name.ends_with(".tiktoken") || is_tiktoken(content)) {
    return tiktoken_json(files, name, settings);
  }
  return sentence_piece_json(content, files.label_of(name), settings);
}

std::shared_ptr<const FileStore> with_tokenizer(std::shared_ptr<const FileStore> files) {
  return std::make_shared<TokenizerStore>(std::move(files));
}

}  // namespace vkformer
