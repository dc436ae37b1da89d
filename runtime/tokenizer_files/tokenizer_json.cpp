#include "tokenizer_files/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"
#include "base/message.h"
#include "base/utf8_step.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostTextBytes = size_t{256} << 20;
constexpr int kDeepest = 64;
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void append_code_point(std::string& text, uint32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else {
    text += static_cast<char>(0xc0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 63));
  }
}

// "token", or {"content": "token"}.
std::optional<std::string> content_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return std::nullopt;
}

bool flag_of(const Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

}  // namespace

bool TokenizerSettings::flag(const char* key, bool otherwise) const {
  return flag_of(config, key, otherwise);
}

std::string TokenizerSettings::text(const char* key, const std::string& otherwise) const {
  const auto found = config.find(key);
  return found != config.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::optional<std::string> TokenizerSettings::token(const char* role) const {
  const auto found = config.find(role);
  return found == config.end() ? std::nullopt : content_of(*found);
}

Result<std::string> read_text(const FileStore& files, const std::string& name) {
  VKF_ASSIGN(const MappedFile file, files.open(name));
  const auto bytes = file.bytes();
  if (bytes.size() > kMostTextBytes) {
    return invalid_file(message({"File [", file.path(), "] has ", bytes.size(),
                                 " bytes; the limit of a tokenizer is ", kMostTextBytes, "."}));
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<Json> read_json_file(const FileStore& files, const std::string& name) {
  VKF_ASSIGN(const std::string text, read_text(files, name));
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  Json json = Json::parse(text, watch, false);
  if (!json.is_discarded() && !too_deep) return json;
  return invalid_file(
      message({"File [", files.label_of(name), "] is not JSON of at most ", kDeepest, " levels."}));
}

Result<TokenizerSettings> read_tokenizer_settings(const FileStore& files) {
  constexpr const char* kName = "tokenizer_config.json";
  TokenizerSettings settings{.config = Json::object(), .label = files.label_of(kName), .kind = {}};
  if (!files.has(kName)) return settings;
  VKF_ASSIGN(settings.config, read_json_file(files, kName));
  if (!settings.config.is_object()) {
    return invalid_file(message({"File [", settings.label, "] is not a JSON object."}));
  }
  settings.kind = settings.text("tokenizer_class", "");
  if (settings.kind.ends_with("Fast")) settings.kind.resize(settings.kind.size() - 4);
  return settings;
}

Result<Json> added_tokens_json(const TokenizerSettings& settings, std::vector<AddedToken> known) {
  std::map<int64_t, AddedToken> tokens;
  for (AddedToken& token : known) tokens[token.id] = std::move(token);
  const auto listed = settings.config.find("added_tokens_decoder");
  if (listed != settings.config.end() && listed->is_object()) {
    for (const auto& [digits, value] : listed->items()) {
      const std::optional<std::string> text = content_of(value);
      const bool number = !digits.empty() && digits.size() < 10 &&
                          digits.find_first_not_of("0123456789") == std::string::npos;
      if (!number || !text || !value.is_object()) {
        return invalid_file(message({"[added_tokens_decoder] in ", settings.label, " has ",
                                     bracketed(digits), ", which is no id with a token."}));
      }
      const int64_t id = std::stoll(digits);
      tokens[id] = {id, *text, flag_of(value, "special", false), flag_of(value, "lstrip", false),
                    flag_of(value, "rstrip", false)};
    }
  }
  Json list = Json::array();
  for (const auto& [id, token] : tokens) {
    if (token.text.empty() || !is_whole_utf8(token.text)) continue;
    list.push_back({{"id", id},
                    {"content", token.text},
                    {"single_word", false},
                    {"lstrip", token.lstrip},
                    {"rstrip", token.rstrip},
                    {"normalized", false},
                    {"special", token.special}});
  }
  return list;
}

Json around_text(const AroundText& around) {
  if (around.before.empty() && around.after.empty()) return nullptr;
  Json single = Json::array(), named = Json::object();
  const auto add = [&](Json& to, const auto& tokens, int type) {
    for (const auto& [text, id] : tokens) {
      to.push_back({{"SpecialToken", {{"id", text}, {"type_id", type}}}});
      named[text] = {{"id", text}, {"ids", Json::array({id})}, {"tokens", Json::array({text})}};
    }
  };
  const auto add_text = [](Json& to, const char* name, int type) {
    to.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
  };
  const int second = around.pair_types ? 1 : 0;
  add(single, around.before, 0);
  add_text(single, "A", 0);
  add(single, around.after, 0);
  Json pair = single;
  if (around.twice_between) add(pair, around.after, 0);
  if (around.pair_begins) add(pair, around.before, second);
  add_text(pair, "B", second);
  add(pair, around.after, second);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", named}};
}

Json json_step(const char* type) {
  return {{"type", type}};
}

Json json_sequence(const char* key, Json steps) {
  if (steps.empty()) return nullptr;
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}

Json json_replace(const char* kind, const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{kind, from}}}, {"content", to}};
}

Json json_byte_level(bool prefix_space, bool cuts, bool trims) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", trims},
          {"use_regex", cuts}};
}

Json json_split(const std::string& pattern) {
  return json_sequence("pretokenizers", Json::array({{{"type", "Split"},
                                                      {"pattern", {{"Regex", pattern}}},
                                                      {"behavior", "Isolated"},
                                                      {"invert", false}},
                                                     json_byte_level(false, false, true)}));
}

Json json_bpe(Json vocabulary, Json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

std::string tokenizer_text(TokenizerSteps steps) {
  Json json = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", steps.added.is_null() ? Json::array() : std::move(steps.added)},
               {"normalizer", std::move(steps.normalizer)},
               {"pre_tokenizer", std::move(steps.pre_tokenizer)},
               {"post_processor", std::move(steps.post_processor)},
               {"decoder", std::move(steps.decoder)},
               {"model", std::move(steps.model)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string byte_level_text(std::string_view bytes) {
  static const std::array<uint32_t, 256> characters = [] {
    std::array<uint32_t, 256> made{};
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      made[byte] = shown ? byte : next++;
    }
    return made;
  }();
  std::string text;
  for (const char c : bytes) append_code_point(text, characters[static_cast<unsigned char>(c)]);
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t four = 0;
    size_t filled = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t digit = kLetters.find(text[i + j]);
      const bool fill = text[i + j] == '=' && j >= 2 && i + 4 == text.size();
      if ((digit == std::string_view::npos && !fill) || (filled > 0 && !fill)) return std::nullopt;
      filled += fill ? 1 : 0;
      four = four << 6 | (fill ? 0u : static_cast<uint32_t>(digit));
    }
    for (size_t j = 0; j + filled < 3; ++j) bytes += static_cast<char>(four >> (16 - 8 * j) & 255u);
  }
  return bytes;
}

std::string base64_of(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) {
      const bool inside = i + j < bytes.size();
      three = three << 8 | (inside ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kLetters[three >> (18 - 6 * j) & 63u] : '=';
    }
  }
  return text;
}

bool is_whole_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (!step.valid) return false;
    at += step.length;
  }
  return true;
}

}  // namespace vkformer
