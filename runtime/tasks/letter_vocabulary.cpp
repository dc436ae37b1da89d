#include "tasks/letter_vocabulary.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/message.h"
#include "json/json_access.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

constexpr TokenId kBlank = 0;

std::string one_letter(char32_t c) {
  std::string text;
  append_utf8(text, c);
  return text;
}

// Of the first character of valid UTF-8.
size_t letter_bytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0u) == 0x80u) ++bytes;
  return bytes;
}

bool is_latin(const std::u32string& text) {
  return std::all_of(text.begin(), text.end(), [](char32_t c) { return c < 0x80; });
}

}  // namespace

Result<LetterVocabulary> LetterVocabulary::parse(std::string_view json, const std::string& name,
                                                 LetterSettings settings) {
  VKF_ASSIGN(const nlohmann::json document, parse_json(json, name));
  const JsonRef root(document, name);
  if (!root.node().is_object()) return root.wrong_type("an object of ids by token");
  LetterVocabulary made(std::move(settings));
  for (const auto& [token, id] : root.node().items()) {
    VKF_ASSIGN(
        const int64_t value,
        JsonRef(id, root.path() + " " + token).integer(0, std::numeric_limits<int32_t>::max()));
    made.ids_[token] = value;
  }
  return made;
}

std::string LetterVocabulary::special_at(std::string_view rest) const {
  std::string longest;
  const auto take = [&](const std::string& token) {
    if (token.size() > longest.size() && rest.starts_with(token)) longest = token;
  };
  take(settings_.unknown);
  take(settings_.pad);
  for (const auto& [token, id] : settings_.added) take(token);
  return longest;
}

Result<TokenId> LetterVocabulary::id_of(const std::string& token) const {
  for (const std::string& name : {token, settings_.unknown}) {
    if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
    if (const auto found = settings_.added.find(name); found != settings_.added.end()) {
      return found->second;
    }
  }
  return invalid_argument(message({"[text] has '", token,
                                   "', which is not in the model's "
                                   "vocab.json, and neither is '",
                                   settings_.unknown, "' for unknown characters; leave it out."}));
}

// Lower case, but for what is a token as it is.
Result<std::string> LetterVocabulary::normalized(const std::string& text) const {
  VKF_CHECK(decode_utf8(text, "The text"));
  std::string lower;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    std::string token = special_at(rest);
    for (const auto& [name, id] : ids_) {
      if (name.size() > token.size() && rest.starts_with(name)) token = name;
    }
    if (!token.empty()) {
      lower += token;
      at += token.size();
      continue;
    }
    const std::string letter = text.substr(at, letter_bytes(rest));
    VKF_ASSIGN(const std::u32string chars, decode_utf8(letter, "The text"));
    std::vector<CharChange> changes;
    append_lower_case(chars[0], changes);
    for (const CharChange& change : changes) append_utf8(lower, change.c);
    at += letter.size();
  }
  return lower;
}

Result<std::string> LetterVocabulary::prepared(const std::string& text, Written written) const {
  std::string made = text;
  if (settings_.normalizes) {
    VKF_ASSIGN(made, normalized(text));
  }
  VKF_ASSIGN(std::u32string chars, decode_utf8(made, "The text"));
  // Romanian files have the letters with cedillas.
  if (settings_.language == "ron") std::replace(chars.begin(), chars.end(), U'\u021b', U'\u0163');
  if (settings_.romanizes && !is_latin(chars)) {
    return unsupported(
        "[text] has characters that are not Latin letters, and this model's tokenizer_config.json "
        "says is_uroman; romanize the text with uroman before.");
  }
  if (settings_.phonemizes) {
    if (written == Written::kPhonemes) return encode_utf8(chars);
    return unsupported(
        "[phonemize] is true in this model's tokenizer_config.json, and letters are not made "
        "phonemes here; give the text as phonemes (espeak's, with stress) and say so: "
        "SpeakOptions::phonemes, --phonemes.");
  }
  if (!settings_.normalizes) return encode_utf8(chars);
  std::u32string kept;
  for (const char32_t c : chars) {
    if (ids_.count(one_letter(c)) != 0) kept += c;
  }
  size_t begin = 0, end = kept.size();
  while (begin < end && is_white_space(kept[begin])) ++begin;
  while (end > begin && is_white_space(kept[end - 1])) --end;
  return encode_utf8(std::u32string_view(kept).substr(begin, end - begin));
}

Result<std::vector<TokenId>> LetterVocabulary::encode(const std::string& text,
                                                      Written written) const {
  VKF_ASSIGN(const std::string made, prepared(text, written));
  std::vector<TokenId> ids;
  // What is between two special tokens has blanks around each of its characters.
  bool inside = false;
  for (size_t at = 0; at < made.size();) {
    const std::string special = special_at(std::string_view(made).substr(at));
    std::string token = special;
    if (special.empty()) {
      token = made.substr(at, letter_bytes(std::string_view(made).substr(at)));
      if (settings_.blanks && !inside) ids.push_back(kBlank);
    }
    VKF_ASSIGN(const TokenId id, id_of(token));
    ids.push_back(id);
    if (special.empty() && settings_.blanks) ids.push_back(kBlank);
    inside = special.empty();
    at += token.size();
  }
  if (!ids.empty()) return ids;
  return invalid_argument(message({"[text] '", text,
                                   "' has no character that is in the model's "
                                   "vocab.json; give one with letters that it knows."}));
}

}  // namespace vkformer
