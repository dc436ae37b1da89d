#include "gguf/gguf_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "base/message.h"
#include "base/utf8_step.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostTokens = size_t{1} << 22;
// The longest piece whose parts are looked at for merges, in bytes; longer ones are never merged.
constexpr size_t kLongestMerged = 512;
// More than four times those of the largest vocabularies.
constexpr size_t kMostMerges = size_t{1} << 22;
constexpr std::string_view kSpace = "\xe2\x96\x81";  // stands for a space in pieces

std::string key_of(const std::string& name) {
  return "tokenizer.ggml." + name;
}

// tokenizer.ggml.token_type
enum class Kind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (!step.valid) return false;
    at += step.length;
  }
  return true;
}

struct Vocabulary {
  std::vector<std::string_view> tokens;
  std::vector<Kind> kinds;     // of every token
  std::vector<double> scores;  // of every token, or none
};

Result<std::vector<Kind>> read_kinds(const GgufFile& file, size_t count) {
  const std::string key = key_of("token_type");
  VKF_ASSIGN(const std::vector<double> numbers, file.get_numbers(key));
  std::vector<Kind> kinds(count, Kind::kNormal);
  if (numbers.empty()) return kinds;
  if (numbers.size() != count) {
    return file.key_error(
        key, message({"with ", numbers.size(), " entries, but there are ", count, " tokens."}));
  }
  for (size_t i = 0; i < count; ++i) {
    // 0 is a kind that is not known, as old files have it.
    if (!(numbers[i] >= 0 && numbers[i] <= 6)) {
      return file.key_error(
          key, message({"with ", numbers[i], " at ", i, ", but kinds of tokens are 1 to 6."}));
    }
    if (numbers[i] >= 1) kinds[i] = static_cast<Kind>(numbers[i]);
  }
  return kinds;
}

Result<Vocabulary> read_vocabulary(const GgufFile& file) {
  Vocabulary vocabulary;
  const std::string key = key_of("tokens");
  VKF_ASSIGN(vocabulary.tokens, file.get_strings(key));
  const size_t count = vocabulary.tokens.size();
  if (count == 0 || count > kMostTokens) {
    return file.key_error(
        key, message({"with ", count, " tokens, but there must be 1 to ", kMostTokens, "."}));
  }
  for (size_t i = 0; i < count; ++i) {
    if (is_utf8(vocabulary.tokens[i])) continue;
    return file.key_error(key, message({"with the token ", bracketed(vocabulary.tokens[i]), " at ",
                                        i, ", which is not UTF-8."}));
  }
  VKF_ASSIGN(vocabulary.kinds, read_kinds(file, count));
  VKF_ASSIGN(vocabulary.scores, file.get_numbers(key_of("scores")));
  for (const double score : vocabulary.scores) {
    if (!std::isfinite(score)) {
      return file.key_error(key_of("scores"), message({"with ", score,
                                                       ", but scores must be "
                                                       "finite numbers."}));
    }
  }
  if (vocabulary.scores.empty() || vocabulary.scores.size() == count) return vocabulary;
  return file.key_error(key_of("scores"), message({"with ", vocabulary.scores.size(),
                                                   " entries, but there are ", count, " tokens."}));
}

Status need_scores(const GgufFile& file, const Vocabulary& vocabulary) {
  if (!vocabulary.scores.empty()) return {};
  return file.get_int(key_of("scores")).error();  // which says that the key is missing
}

// The id in that role, which must be one of a token.
Result<std::optional<size_t>> special_id(const GgufFile& file, const char* role,
                                         const Vocabulary& vocabulary) {
  const std::string key = key_of(std::string(role) + "_token_id");
  if (!file.has(key)) return std::optional<size_t>();
  VKF_ASSIGN(const int64_t id, file.get_int(key));
  // Some writers have the largest number for none.
  if (id == -1 || id == 0xffffffff) return std::optional<size_t>();
  if (id >= 0 && static_cast<size_t>(id) < vocabulary.tokens.size()) {
    return std::optional<size_t>(static_cast<size_t>(id));
  }
  return file.key_error(
      key, message({"as ", id, ", but there are ", vocabulary.tokens.size(), " tokens."}));
}

// The first of the roles that the file names a token for.
Result<std::optional<size_t>> first_special_id(const GgufFile& file,
                                               std::initializer_list<const char*> roles,
                                               const Vocabulary& vocabulary) {
  for (const char* role : roles) {
    VKF_ASSIGN(const std::optional<size_t> id, special_id(file, role, vocabulary));
    if (id) return id;
  }
  return std::optional<size_t>();
}

std::optional<size_t> find_token(const Vocabulary& vocabulary, std::string_view text) {
  const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text);
  if (found == vocabulary.tokens.end()) return std::nullopt;
  return static_cast<size_t>(found - vocabulary.tokens.begin());
}

std::string text_of(const Vocabulary& vocabulary, size_t id) {
  return std::string(vocabulary.tokens[id]);
}

bool is_added(Kind kind) {
  return kind == Kind::kControl || kind == Kind::kUnknown || kind == Kind::kUserDefined;
}

Json added_tokens(const Vocabulary& vocabulary) {
  Json list = Json::array();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const Kind kind = vocabulary.kinds[i];
    if (!is_added(kind) || vocabulary.tokens[i].empty()) continue;
    list.push_back({{"id", i},
                    {"content", text_of(vocabulary, i)},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", kind != Kind::kUserDefined}});
  }
  return list;
}

Json text_ids(const Vocabulary& vocabulary) {
  Json ids = Json::object();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    ids.emplace(text_of(vocabulary, i), i);  // of equal ones the first counts
  }
  return ids;
}

// What surrounds a text: the tokens of these roles, where the file has them and asks for them.
struct Surroundings {
  std::optional<size_t> before, after;
  bool twice_between = false;  // RoBERTa ends the first of two texts and begins the second alike
};

Json special_piece(const Vocabulary& vocabulary, size_t id, int type) {
  return {{"SpecialToken", {{"id", text_of(vocabulary, id)}, {"type_id", type}}}};
}

// `second`: the type of the second text; `begins_again`: it has a token in front, too.
Json template_processing(const Vocabulary& vocabulary, const Surroundings& around, int second,
                         bool begins_again) {
  Json single = Json::array(), pair, named = Json::object();
  const auto add = [&](Json& to, const std::optional<size_t>& id, int type) {
    if (!id) return;
    to.push_back(special_piece(vocabulary, *id, type));
    const std::string text = text_of(vocabulary, *id);
    named[text] = {{"id", text}, {"ids", Json::array({*id})}, {"tokens", Json::array({text})}};
  };
  const auto add_text = [](Json& to, const char* name, int type) {
    to.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
  };
  add(single, around.before, 0);
  add_text(single, "A", 0);
  add(single, around.after, 0);
  pair = single;
  if (around.twice_between) add(pair, around.after, 0);
  if (begins_again) add(pair, around.before, second);
  add_text(pair, "B", second);
  add(pair, around.after, second);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", named}};
}

Result<Surroundings> read_surroundings(const GgufFile& file, const Vocabulary& vocabulary,
                                       bool begins, bool ends) {
  Surroundings around;
  VKF_ASSIGN(begins, file.get_bool_or(key_of("add_bos_token"), begins));
  VKF_ASSIGN(ends, file.get_bool_or(key_of("add_eos_token"), ends));
  if (begins) {
    VKF_ASSIGN(around.before, special_id(file, "bos", vocabulary));
  }
  if (ends) {
    VKF_ASSIGN(around.after, special_id(file, "eos", vocabulary));
  }
  return around;
}

Json step(const char* type) {
  return {{"type", type}};
}

Json sequence(const char* key, Json steps) {
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}

// `trims`: offsets do not cover the space before a word.
Json byte_level(bool cuts, bool trims = true) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", trims},
          {"use_regex", cuts}};
}

// GPT-2's byte-level BPE

// Ways of cutting words before they are merged, by the patterns of the tokenizers that they name.
enum class Digits : uint8_t { kAsCut, kOneByOne };
struct WordCut {
  std::vector<std::string_view> names;
  const char* pattern;  // null: GPT-2's own, which ByteLevel has
  Digits digits = Digits::kAsCut;
  bool composed = false;     // texts are in NFC
  bool whole_words = false;  // a word that is a token is one, whatever merges make of it
  bool begins = false;       // texts begin with the token for that
};

constexpr const char* kLlama3Words =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr const char* kQwen2Words =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr const char* kGpt4oWords =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr const char* kTekkenWords =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

const std::vector<WordCut>& word_cuts() {
  static const std::vector<WordCut> cuts = {
      {{"default", "gpt-2", "gpt2", "phi-2", "roberta-bpe", "jina-es", "jina-de", "jina-v2-code",
        "mpt", "olmo", "jais", "gigachat", "exaone4"},
       nullptr},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "lfm2"},
       kLlama3Words,
       Digits::kAsCut,
       false,
       true,
       true},
      {{"dbrx", "smaug-bpe"}, kLlama3Words},
      {{"qwen2", "deepseek-r1-qwen", "megrez"}, kQwen2Words, Digits::kAsCut, true},
      {{"stablelm2", "hunyuan"}, kQwen2Words},
      {{"gpt-4o", "llama4"}, kGpt4oWords},
      {{"tekken"}, kTekkenWords, Digits::kAsCut, false, true},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
       nullptr,
       Digits::kOneByOne}};
  return cuts;
}

Result<const WordCut*> find_cut(const GgufFile& file) {
  const std::string key = key_of("pre");
  VKF_ASSIGN(const std::string name, file.get_string_or(key, "default"));
  std::string known;
  for (const WordCut& cut : word_cuts()) {
    for (const std::string_view one : cut.names) {
      if (name == one) return &cut;
      known += (known.empty() ? "" : ", ") + std::string(one);
    }
  }
  return unsupported(
      message({"File [", file.path(), "] has [", key, "] as ", bracketed(name),
               ", a way of cutting words that vkformer does not know. It knows ", known, "."}));
}

// The steps of a tokenizer one after the other, without what only offsets depend on.
void add_flat(const Json& step, const char* key, Json& flat) {
  if (!step.is_object()) return;
  if (step.value("type", "") == "Sequence" && step.contains(key)) {
    for (const Json& one : step[key]) add_flat(one, key, flat);
    return;
  }
  Json plain = step;
  plain.erase("trim_offsets");
  flat.push_back(std::move(plain));
}

Json words_of(const WordCut& cut) {
  Json steps = Json::array();
  if (cut.digits == Digits::kOneByOne) {
    steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  }
  if (cut.pattern != nullptr) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", cut.pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back(byte_level(cut.pattern == nullptr));
  return sequence("pretokenizers", std::move(steps));
}

// "a b" as its two parts; a part may begin with a space.
Result<Json> read_merges(const GgufFile& file) {
  const std::string key = key_of("merges");
  VKF_ASSIGN(const std::vector<std::string_view> merges, file.get_strings(key));
  Json list = Json::array();
  for (size_t i = 0; i < merges.size(); ++i) {
    const size_t space = merges[i].find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merges[i].size() || !is_utf8(merges[i])) {
      return file.key_error(key, message({"with ", bracketed(merges[i]), " at ", i,
                                          ", which is not two texts with a space between."}));
    }
    list.push_back(Json::array(
        {std::string(merges[i].substr(0, space)), std::string(merges[i].substr(space + 1))}));
  }
  return list;
}

Result<Json> byte_pair_tokenizer(const GgufFile& file, const Vocabulary& vocabulary) {
  VKF_ASSIGN(const WordCut* cut, find_cut(file));
  VKF_ASSIGN(Json merges, read_merges(file));
  VKF_ASSIGN(const std::string architecture, file.get_string_or("general.architecture", ""));
  const bool encoder = architecture == "bert";
  VKF_ASSIGN(Surroundings around,
             read_surroundings(file, vocabulary, cut->begins || encoder, encoder));
  around.twice_between = encoder;
  Json steps = Json::array({byte_level(true, false)});
  if (around.before || around.after) {
    steps.push_back(template_processing(vocabulary, around, encoder ? 0 : 1, !encoder));
  }
  return Json{{"normalizer", cut->composed ? step("NFC") : Json()},
              {"pre_tokenizer", words_of(*cut)},
              {"post_processor", sequence("processors", std::move(steps))},
              {"decoder", byte_level(true)},
              {"model",
               {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", cut->whole_words},
                {"vocab", text_ids(vocabulary)},
                {"merges", std::move(merges)}}}};
}

// BPE of SentencePiece

struct Merge {
  std::string_view left, right;
  double score;
  size_t left_id, right_id;
};

// Every way to make a piece of two others, those of the best pieces first: SentencePiece has scores
// in place of a list of merges.
Result<Json> merges_by_score(const GgufFile& file, const Vocabulary& vocabulary) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) ids.emplace(vocabulary.tokens[i], i);
  std::vector<Merge> merges;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string_view piece = vocabulary.tokens[i];
    if (vocabulary.kinds[i] != Kind::kNormal || piece.size() > kLongestMerged) continue;
    std::vector<Merge> own;
    for (size_t at = 1; at < piece.size(); ++at) {
      const bool inside = (static_cast<unsigned char>(piece[at]) & 0xc0u) == 0x80u;
      if (inside) continue;
      const auto left = ids.find(piece.substr(0, at)), right = ids.find(piece.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      own.push_back({left->first, right->first, vocabulary.scores[i], left->second, right->second});
    }
    std::sort(own.begin(), own.end(), [](const Merge& a, const Merge& b) {
      return std::pair(a.left_id, a.right_id) < std::pair(b.left_id, b.right_id);
    });
    merges.insert(merges.end(), own.begin(), own.end());
    if (merges.size() <= kMostMerges) continue;
    return file.key_error(key_of("tokens"), message({"with tokens that are made of others in more "
                                                     "than ",
                                                     kMostMerges, " ways."}));
  }
  std::stable_sort(merges.begin(), merges.end(),
                   [](const Merge& a, const Merge& b) { return a.score > b.score; });
  Json list = Json::array();
  for (const Merge& merge : merges) {
    list.push_back(Json::array({std::string(merge.left), std::string(merge.right)}));
  }
  return list;
}

bool has_bytes(const Vocabulary& vocabulary) {
  return std::find(vocabulary.kinds.begin(), vocabulary.kinds.end(), Kind::kByte) !=
         vocabulary.kinds.end();
}

Json replace_step(const char* from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", std::string(to)}};
}

Result<std::optional<size_t>> unknown_id(const GgufFile& file, const Vocabulary& vocabulary) {
  VKF_ASSIGN(const std::optional<size_t> named, special_id(file, "unknown", vocabulary));
  if (named) return named;
  const auto found = std::find(vocabulary.kinds.begin(), vocabulary.kinds.end(), Kind::kUnknown);
  if (found == vocabulary.kinds.end()) return std::optional<size_t>();
  return std::optional<size_t>(static_cast<size_t>(found - vocabulary.kinds.begin()));
}

Result<Json> sentence_piece_tokenizer(const GgufFile& file, const Vocabulary& vocabulary) {
  VKF_CHECK(need_scores(file, vocabulary));
  VKF_ASSIGN(const bool prefix, file.get_bool_or(key_of("add_space_prefix"), true));
  VKF_ASSIGN(const std::optional<size_t> unknown, unknown_id(file, vocabulary));
  VKF_ASSIGN(const Surroundings around, read_surroundings(file, vocabulary, true, false));
  VKF_ASSIGN(Json merges, merges_by_score(file, vocabulary));
  Json normalizers = Json::array(), decoders = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", std::string(kSpace)}});
  normalizers.push_back(replace_step(" ", kSpace));
  decoders = Json::array(
      {replace_step(std::string(kSpace).c_str(), " "), step("ByteFallback"), step("Fuse")});
  if (prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  const bool surrounds = around.before || around.after;
  return Json{
      {"normalizer", sequence("normalizers", std::move(normalizers))},
      {"pre_tokenizer", nullptr},
      {"post_processor", surrounds ? template_processing(vocabulary, around, 1, true) : Json()},
      {"decoder", sequence("decoders", std::move(decoders))},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", unknown ? Json(text_of(vocabulary, *unknown)) : Json()},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", true},
        {"byte_fallback", has_bytes(vocabulary)},
        {"ignore_merges", false},
        {"vocab", text_ids(vocabulary)},
        {"merges", std::move(merges)}}}};
}

// WordPiece

// Files mark the beginnings of words; tokenizers mark what continues them.
std::string word_piece(std::string_view token, Kind kind) {
  if (kind == Kind::kControl) return std::string(token);
  if (token.starts_with(kSpace)) return std::string(token.substr(kSpace.size()));
  return "##" + std::string(token);
}

Result<Json> word_piece_tokenizer(const GgufFile& file, const Vocabulary& vocabulary, Json& added) {
  Json ids = Json::object();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    ids.emplace(word_piece(vocabulary.tokens[i], vocabulary.kinds[i]), i);
  }
  for (Json& one : added) {
    const size_t id = one["id"];
    one["content"] = word_piece(vocabulary.tokens[id], vocabulary.kinds[id]);
  }
  VKF_ASSIGN(const std::optional<size_t> unknown, special_id(file, "unknown", vocabulary));
  const std::string unknown_text =
      unknown ? word_piece(vocabulary.tokens[*unknown], vocabulary.kinds[*unknown]) : "[UNK]";
  Surroundings around;
  VKF_ASSIGN(around.before, first_special_id(file, {"cls", "bos"}, vocabulary));
  VKF_ASSIGN(around.after, first_special_id(file, {"seperator", "eos"}, vocabulary));
  if (!around.before) around.before = find_token(vocabulary, "[CLS]");
  if (!around.after) around.after = find_token(vocabulary, "[SEP]");
  VKF_ASSIGN(const bool lower, file.get_bool_or(key_of("normalizer.lowercase"), true));
  VKF_ASSIGN(const bool strips, file.get_bool_or(key_of("normalizer.strip_accents"), lower));
  return Json{{"normalizer",
               {{"type", "BertNormalizer"},
                {"clean_text", true},
                {"handle_chinese_chars", true},
                {"strip_accents", strips},
                {"lowercase", lower}}},
              {"pre_tokenizer", step("BertPreTokenizer")},
              {"post_processor", template_processing(vocabulary, around, 1, false)},
              {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
              {"model",
               {{"type", "WordPiece"},
                {"unk_token", unknown_text},
                {"continuing_subword_prefix", "##"},
                {"max_input_chars_per_word", 100},
                {"vocab", std::move(ids)}}}};
}

// Unigram

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) {
      three = three << 8u | (i + j < bytes.size() ? static_cast<uint32_t>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kLetters[three >> (18 - 6 * j) & 63u] : '=';
    }
  }
  return text;
}

// `trims`: runs of spaces count as one.
Result<Json> unigram_normalizer(const GgufFile& file, bool trims) {
  Json steps = Json::array();
  const std::string key = key_of("precompiled_charsmap");
  const auto map = file.values().find(key);
  if (map != file.values().end()) {
    if (map->second.kind != GgufKind::kArray ||
        (map->second.element != GgufKind::kU8 && map->second.element != GgufKind::kI8)) {
      return file.key_error(key, message({"as ", gguf_kind_name(map->second.kind),
                                          ", where a list of bytes must be."}));
    }
    if (!map->second.bytes.empty()) {
      steps.push_back(
          {{"type", "Precompiled"}, {"precompiled_charsmap", base64(map->second.bytes)}});
    }
  }
  if (trims) {
    steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  }
  return steps.empty() ? Json() : sequence("normalizers", std::move(steps));
}

Result<Json> unigram_tokenizer(const GgufFile& file, const Vocabulary& vocabulary) {
  VKF_CHECK(need_scores(file, vocabulary));
  VKF_ASSIGN(const bool prefix, file.get_bool_or(key_of("add_space_prefix"), true));
  VKF_ASSIGN(const std::optional<size_t> unknown, unknown_id(file, vocabulary));
  VKF_ASSIGN(const std::string architecture, file.get_string_or("general.architecture", ""));
  const bool bert = architecture == "bert" || architecture.starts_with("nomic-bert");
  VKF_ASSIGN(Surroundings around, read_surroundings(file, vocabulary, bert, true));
  around.twice_between = bert;
  VKF_ASSIGN(const bool trims, file.get_bool_or(key_of("remove_extra_whitespaces"), true));
  VKF_ASSIGN(Json normalizer, unigram_normalizer(file, trims));
  Json pieces = Json::array();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    pieces.push_back(Json::array({text_of(vocabulary, i), vocabulary.scores[i]}));
  }
  const Json metaspace = {{"type", "Metaspace"},
                          {"replacement", std::string(kSpace)},
                          {"prepend_scheme", prefix ? "always" : "never"},
                          {"split", true}};
  const bool surrounds = around.before || around.after;
  return Json{
      {"normalizer", std::move(normalizer)},
      {"pre_tokenizer",
       trims ? sequence("pretokenizers", Json::array({step("WhitespaceSplit"), metaspace}))
             : metaspace},
      {"post_processor", surrounds ? template_processing(vocabulary, around, 0, false) : Json()},
      {"decoder", metaspace},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", unknown ? Json(*unknown) : Json()},
        {"vocab", std::move(pieces)},
        {"byte_fallback", has_bytes(vocabulary)}}}};
}

// Chat templates: the one without a name, and those that have one.
Result<Json> chat_templates(const GgufFile& file) {
  const std::string key = "tokenizer.chat_template";
  const auto read = [&](const std::string& from) -> Result<std::string> {
    VKF_ASSIGN(std::string text, file.get_string(from));
    if (is_utf8(text)) return text;
    return file.key_error(from, "as a text that is not UTF-8.");
  };
  Json plain;
  if (file.has(key)) {
    VKF_ASSIGN(plain, read(key));
  }
  Json list = Json::array();
  VKF_ASSIGN(const std::vector<std::string_view> names,
             file.get_strings("tokenizer.chat_templates"));
  for (const std::string_view name : names) {
    if (!is_utf8(name))
      return file.key_error("tokenizer.chat_templates", "with a name that is not UTF-8.");
    VKF_ASSIGN(const std::string text, read(key + "." + std::string(name)));
    list.push_back({{"name", std::string(name)}, {"template", text}});
  }
  if (list.empty()) return plain;
  if (!plain.is_null()) list.push_back({{"name", "default"}, {"template", plain}});
  return list;
}

Result<std::string> tokenizer_model(const GgufFile& file) {
  const std::string key = key_of("model");
  if (file.has(key)) return file.get_string(key);
  return not_found(
      message({"File [", file.path(), "] has no tokenizer: its metadata lacks [", key, "]."}));
}

}  // namespace

Json gguf_steps(const Json& step, const char* key) {
  Json flat = Json::array();
  add_flat(step, key, flat);
  return flat;
}

std::string gguf_word_cut(const Json& tokenizer) {
  const Json words = gguf_steps(tokenizer.value("pre_tokenizer", Json()), "pretokenizers");
  const Json normalizer = gguf_steps(tokenizer.value("normalizer", Json()), "normalizers");
  const bool whole_words = tokenizer["model"].value("ignore_merges", false);
  for (const WordCut& cut : word_cuts()) {
    const Json composed = cut.composed ? Json::array({step("NFC")}) : Json::array();
    if (cut.whole_words != whole_words || composed != normalizer) continue;
    if (gguf_steps(words_of(cut), "pretokenizers") != words) continue;
    // "default" is what older files have, whatever they mean.
    return std::string(cut.names[cut.names[0] == "default" ? 1 : 0]);
  }
  return {};
}

Result<std::string> gguf_tokenizer_json(const GgufFile& file) {
  VKF_ASSIGN(const std::string model, tokenizer_model(file));
  VKF_ASSIGN(const Vocabulary vocabulary, read_vocabulary(file));
  Json added = added_tokens(vocabulary);
  Result<Json> made = Json();
  if (model == "gpt2") {
    made = byte_pair_tokenizer(file, vocabulary);
  } else if (model == "llama") {
    made = sentence_piece_tokenizer(file, vocabulary);
  } else if (model == "bert") {
    made = word_piece_tokenizer(file, vocabulary, added);
  } else if (model == "t5") {
    made = unigram_tokenizer(file, vocabulary);
  } else {
    return unsupported(
        message({"File [", file.path(), "] has [", key_of("model"), "] as ", bracketed(model),
                 "; supported kinds of tokenizers are gpt2, llama, bert and t5."}));
  }
  if (!made) return made.error();
  (*made)["version"] = "1.0";
  (*made)["truncation"] = nullptr;
  (*made)["padding"] = nullptr;
  (*made)["added_tokens"] = std::move(added);
  return made->dump();
}

Result<std::string> gguf_tokenizer_config(const GgufFile& file) {
  Json config = Json::object();
  if (file.has(key_of("tokens"))) {
    VKF_ASSIGN(const std::string model, tokenizer_model(file));
    VKF_ASSIGN(const Vocabulary vocabulary, read_vocabulary(file));
    for (const auto& [role, name] :
         {std::pair{"bos", "bos_token"}, std::pair{"eos", "eos_token"},
          std::pair{"unknown", "unk_token"}, std::pair{"padding", "pad_token"},
          std::pair{"seperator", "sep_token"}, std::pair{"cls", "cls_token"},
          std::pair{"mask", "mask_token"}}) {
      VKF_ASSIGN(const std::optional<size_t> id, special_id(file, role, vocabulary));
      if (id) config[name] = text_of(vocabulary, *id);
    }
  }
  VKF_ASSIGN(Json templates, chat_templates(file));
  if (!templates.is_null()) config["chat_template"] = std::move(templates);
  return config.dump();
}

}  // namespace vkformer
