#include "tokenizer_files/byte_pair_files.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostTokens = size_t{1} << 22;
constexpr size_t kLongestToken = 4096;  // bytes

constexpr const char* kCl100kWords =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr const char* kQwenWords =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr const char* kO200kWords =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr const char* kGpt2Words =
    R"re('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re";

Error file_error(const std::string& label, const std::string& what) {
  return invalid_file(message({"File [", label, "] ", what, "."}));
}

// Calls `use` for every line, without what ends it; stops where that gives an error.
template <class Use>
Status each_line(std::string_view text, Use use) {
  for (size_t at = 0, number = 1; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    VKF_CHECK(use(line, number));
    at = end + 1;
  }
  return {};
}

// Tokens as bytes, by rank: what is merged first has the lowest.
using Ranks = std::unordered_map<std::string, int64_t>;

// The two parts that merging makes a token of: what is left of its bytes when all pairs of lower
// rank are merged. Nothing where it is a byte, or where no two parts are left.
std::optional<std::pair<std::string, std::string>> parts_of(const std::string& token, int64_t rank,
                                                            const Ranks& ranks) {
  std::vector<std::string> parts;
  for (const char c : token) parts.emplace_back(1, c);
  while (parts.size() > 2) {
    size_t best = SIZE_MAX;
    int64_t lowest = rank;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found != ranks.end() && found->second < lowest) {
        best = i;
        lowest = found->second;
      }
    }
    if (best == SIZE_MAX) return std::nullopt;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  if (parts.size() != 2) return std::nullopt;
  return std::pair(parts[0], parts[1]);
}

// Byte-level BPE whose ids are ranks plus `first`. Words that are tokens need no merges.
Json model_of_ranks(const Ranks& ranks, int64_t first) {
  std::vector<std::pair<int64_t, const std::string*>> sorted;
  for (const auto& [token, rank] : ranks) sorted.emplace_back(rank, &token);
  std::sort(sorted.begin(), sorted.end());
  Json ids = Json::object(), merges = Json::array();
  for (const auto& [rank, token] : sorted) {
    ids[byte_level_text(*token)] = first + rank;
    const auto parts = parts_of(*token, rank, ranks);
    if (!parts) continue;
    merges.push_back(Json::array({byte_level_text(parts->first), byte_level_text(parts->second)}));
  }
  Json model = json_bpe(std::move(ids), std::move(merges));
  model["ignore_merges"] = true;
  return model;
}

Status add_rank(Ranks& ranks, const std::string& label, std::string token, int64_t rank) {
  if (token.empty() || token.size() > kLongestToken) {
    return file_error(label, message({"has a token of ", token.size(), " bytes, but one has 1 to ",
                                      kLongestToken}));
  }
  if (ranks.size() == kMostTokens) {
    return file_error(label, message({"has more than ", kMostTokens, " tokens"}));
  }
  if (rank >= 0 && rank < (int64_t{1} << 30)) {
    if (ranks.emplace(std::move(token), rank).second) return {};
    return file_error(label, message({"has the token of rank ", rank, " twice"}));
  }
  return file_error(label, message({"has the rank ", rank}));
}

std::optional<int64_t> number_of(std::string_view digits) {
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  int64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::string_view file_part(std::string_view name) {
  return name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
}

struct KnownRanks {
  const char* pattern;
  std::vector<std::string> specials;  // after the ranks, in order
};

std::vector<std::string> llama3_specials() {
  std::vector<std::string> specials = {"<|begin_of_text|>",
                                       "<|end_of_text|>",
                                       "<|reserved_special_token_0|>",
                                       "<|reserved_special_token_1|>",
                                       "<|finetune_right_pad_id|>",
                                       "<|reserved_special_token_2|>",
                                       "<|start_header_id|>",
                                       "<|end_header_id|>",
                                       "<|eom_id|>",
                                       "<|eot_id|>",
                                       "<|python_tag|>"};
  for (int i = 3; specials.size() < 256; ++i) {
    specials.push_back("<|reserved_special_token_" + std::to_string(i) + "|>");
  }
  return specials;
}

std::vector<std::string> qwen_specials() {
  std::vector<std::string> specials = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int i = 0; i < 205; ++i) specials.push_back("<|extra_" + std::to_string(i) + "|>");
  return specials;
}

// How a list of ranks of that name cuts words.
Result<KnownRanks> known_ranks(std::string_view name, const std::string& label,
                               const TokenizerSettings& settings) {
  if (name == "tokenizer.model") return KnownRanks{kCl100kWords, llama3_specials()};
  if (name.starts_with("qwen")) return KnownRanks{kCl100kWords, qwen_specials()};
  if (name.starts_with("cl100k")) return KnownRanks{kCl100kWords, {}};
  if (name.starts_with("o200k")) return KnownRanks{kO200kWords, {}};
  if (name.starts_with("r50k") || name.starts_with("p50k") || name.starts_with("gpt2")) {
    return KnownRanks{kGpt2Words, {}};
  }
  return unsupported(message({"File [", label,
                              "] does not say how words are cut, and neither does ", settings.label,
                              "; vkformer knows the names tokenizer.model (Llama 3), "
                              "qwen*.tiktoken, cl100k*, o200k*, p50k* and r50k*."}));
}

int64_t count_of(const Json& object, const char* key, int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

// Byte-level BPE of a vocabulary and a list of merges

// A class of tokenizers of this kind.
struct BytePairClass {
  const char* pattern = nullptr;  // null: GPT-2's, which ByteLevel has
  bool composed = false;          // NFC
  bool surrounds = false;         // <s> and </s>, as RoBERTa
};

Result<BytePairClass> find_class(const TokenizerSettings& settings) {
  const std::string& kind = settings.kind;
  if (kind == "Qwen2Tokenizer") return BytePairClass{kQwenWords, true, false};
  for (const char* one :
       {"", "GPT2Tokenizer", "PreTrainedTokenizer", "CodeGenTokenizer", "BlenderbotTokenizer"}) {
    if (kind == one) return BytePairClass{};
  }
  for (const char* one :
       {"RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer"}) {
    if (kind == one) return BytePairClass{nullptr, false, true};
  }
  return unsupported(message({"[tokenizer_class] in ", settings.label, " is ", bracketed(kind),
                              ", which vkformer does not read of vocab.json and merges.txt; it "
                              "reads GPT2Tokenizer, CodeGenTokenizer, Qwen2Tokenizer, "
                              "RobertaTokenizer, BartTokenizer, LongformerTokenizer and "
                              "LEDTokenizer. Save the tokenizer as tokenizer.json."}));
}

Result<Json> read_merges(const FileStore& files) {
  const std::string label = files.label_of("merges.txt");
  VKF_ASSIGN(const std::string text, read_text(files, "merges.txt"));
  Json merges = Json::array();
  VKF_CHECK(each_line(text, [&](std::string_view line, size_t number) -> Status {
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return {};
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos || !is_whole_utf8(line)) {
      return file_error(label, message({"has in line ", number, " ", bracketed(line),
                                        ", which is not two texts with a space between"}));
    }
    merges.push_back(
        Json::array({std::string(line.substr(0, space)), std::string(line.substr(space + 1))}));
    return {};
  }));
  return merges;
}

}  // namespace

bool is_tiktoken(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space > 2 * kLongestToken) return false;
  return bytes_of_base64(line.substr(0, space)).has_value();
}

Result<std::string> vocabulary_and_merges_json(const FileStore& files,
                                               const TokenizerSettings& settings) {
  VKF_ASSIGN(const BytePairClass kind, find_class(settings));
  VKF_ASSIGN(Json vocabulary, read_json_file(files, "vocab.json"));
  const std::string label = files.label_of("vocab.json");
  if (!vocabulary.is_object()) return file_error(label, "is not a JSON object of ids");
  std::vector<AddedToken> added;
  AroundText around;
  around.twice_between = kind.surrounds;
  around.pair_begins = !kind.surrounds;
  const auto surround = [&](auto& to, const char* role, const char* otherwise) {
    const std::string text = settings.token(role).value_or(otherwise);
    const auto found = vocabulary.find(text);
    if (found != vocabulary.end() && found->is_number_integer()) {
      to.push_back({text, found->template get<int64_t>()});
    }
  };
  for (const char* role : {"bos_token", "eos_token", "unk_token", "pad_token", "cls_token",
                           "sep_token", "mask_token"}) {
    const auto text = settings.token(role);
    if (!text || !vocabulary.contains(*text) || !vocabulary[*text].is_number_integer()) continue;
    const bool masks = kind.surrounds && std::string_view(role) == "mask_token";
    added.push_back({vocabulary[*text].get<int64_t>(), *text, true, masks});
  }
  if (kind.surrounds) {
    surround(around.before, "cls_token", "<s>");
    surround(around.after, "sep_token", "</s>");
  } else if (settings.flag("add_bos_token", false)) {
    surround(around.before, "bos_token", "<|endoftext|>");
  }
  const bool prefix = settings.flag("add_prefix_space", false);
  VKF_ASSIGN(Json merges, read_merges(files));
  TokenizerSteps steps{.normalizer = kind.composed ? json_step("NFC") : Json(),
                       .pre_tokenizer = kind.pattern != nullptr
                                            ? json_split(kind.pattern)
                                            : json_byte_level(prefix, true, true),
                       .post_processor = around_text(around),
                       .decoder = json_byte_level(false, true, true),
                       .model = json_bpe(std::move(vocabulary), std::move(merges))};
  VKF_ASSIGN(steps.added, added_tokens_json(settings, std::move(added)));
  return tokenizer_text(std::move(steps));
}

Result<std::string> tiktoken_json(const FileStore& files, const std::string& name,
                                  const TokenizerSettings& settings) {
  const std::string label = files.label_of(name);
  VKF_ASSIGN(const KnownRanks known, known_ranks(file_part(name), label, settings));
  VKF_ASSIGN(const std::string text, read_text(files, name));
  Ranks ranks;
  int64_t next = 0;
  VKF_CHECK(each_line(text, [&](std::string_view line, size_t number) -> Status {
    if (line.empty()) return {};
    const size_t space = line.find(' ');
    const auto token = bytes_of_base64(line.substr(0, std::min(space, line.size())));
    const auto rank =
        space == std::string_view::npos ? std::nullopt : number_of(line.substr(space + 1));
    if (!token || !rank) {
      return file_error(label, message({"has in line ", number,
                                        " something else than base64, a space and a rank"}));
    }
    next = std::max(next, *rank + 1);
    return add_rank(ranks, label, *token, *rank);
  }));
  std::vector<AddedToken> added;
  // The configuration's own list takes the place of the usual one.
  if (!settings.config.contains("added_tokens_decoder")) {
    for (const std::string& special : known.specials) added.push_back({next++, special});
  }
  AroundText around{.before = {}, .after = {}, .pair_types = true};
  if (name == "tokenizer.model" && !added.empty()) {
    around.before.push_back({added[0].text, added[0].id});
  }
  TokenizerSteps steps{
      .normalizer = file_part(name).starts_with("qwen") ? json_step("NFC") : Json(),
      .pre_tokenizer = json_split(file_part(name).starts_with("qwen") ? kQwenWords : known.pattern),
      .post_processor = around_text(around),
      .decoder = json_byte_level(false, true, true),
      .model = model_of_ranks(ranks, 0)};
  VKF_ASSIGN(steps.added, added_tokens_json(settings, std::move(added)));
  return tokenizer_text(std::move(steps));
}

Result<std::string> tekken_json(const FileStore& files, const std::string& name,
                                const TokenizerSettings& settings) {
  const std::string label = files.label_of(name);
  VKF_ASSIGN(const Json json, read_json_file(files, name));
  if (!json.is_object() || !json.contains("config") || !json["config"].is_object() ||
      !json.contains("vocab") || !json["vocab"].is_array()) {
    return file_error(label, "has no [config] and [vocab] of a tekken tokenizer");
  }
  const Json& config = json["config"];
  const auto pattern = config.find("pattern");
  const int64_t specials = count_of(config, "default_num_special_tokens", 1000);
  const int64_t all = count_of(config, "default_vocab_size", 131072);
  if (pattern == config.end() || !pattern->is_string() || specials < 0 || all <= specials ||
      all > static_cast<int64_t>(kMostTokens)) {
    return file_error(label, message({"has no [pattern], or [default_vocab_size] ", all,
                                      " and [default_num_special_tokens] ", specials}));
  }
  Ranks ranks;
  for (const Json& one : json["vocab"]) {
    const bool whole = one.is_object() && one.contains("token_bytes") &&
                       one["token_bytes"].is_string() && one.contains("rank") &&
                       one["rank"].is_number_integer();
    const auto token =
        whole ? bytes_of_base64(one["token_bytes"].get<std::string>()) : std::nullopt;
    if (!token) return file_error(label, "has in [vocab] an entry without rank and token_bytes");
    // A vocabulary may be longer than what is used of it.
    if (one["rank"].get<int64_t>() >= all - specials) continue;
    VKF_CHECK(add_rank(ranks, label, *token, one["rank"].get<int64_t>()));
  }
  std::vector<AddedToken> added;
  std::vector<std::string> names = {"<unk>", "<s>", "</s>"};
  if (json.contains("special_tokens") && json["special_tokens"].is_array()) {
    names.clear();
    for (const Json& one : json["special_tokens"]) {
      const bool whole =
          one.is_object() && one.contains("token_str") && one["token_str"].is_string();
      if (!whole) return file_error(label, "has in [special_tokens] an entry without token_str");
      const auto id =
          static_cast<size_t>(count_of(one, "rank", static_cast<int64_t>(names.size())));
      if (id >= static_cast<size_t>(specials)) {
        return file_error(label, message({"has a special token of rank ", id, " of ", specials}));
      }
      if (names.size() <= id) names.resize(id + 1);
      names[id] = one["token_str"].get<std::string>();
    }
  }
  for (size_t i = 0; i < names.size(); ++i) added.push_back({static_cast<int64_t>(i), names[i]});
  AroundText around{.before = {}, .after = {}, .pair_types = true};
  for (const AddedToken& token : added) {
    if (token.text == "<s>") around.before.push_back({token.text, token.id});
  }
  TokenizerSteps steps{.pre_tokenizer = json_split(pattern->get<std::string>()),
                       .post_processor = around_text(around),
                       .decoder = json_byte_level(false, true, true),
                       .model = model_of_ranks(ranks, specials)};
  VKF_ASSIGN(steps.added, added_tokens_json(settings, std::move(added)));
  return tokenizer_text(std::move(steps));
}

}  // namespace vkformer
