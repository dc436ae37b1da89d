#include "tasks/ctc_vocabulary.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/message.h"
#include "json/json_access.h"
#include "text/tokenizer_engine.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

Result<std::string> lowered_text(const std::string& text) {
  VKF_ASSIGN(const std::u32string chars, decode_utf8(text, "A token of the vocabulary"));
  std::vector<CharChange> changes;
  for (const char32_t c : chars) append_lower_case(c, changes);
  std::string lower;
  for (const CharChange& change : changes) append_utf8(lower, change.c);
  return lower;
}

// Without the white space at both ends.
Result<std::string> stripped(const std::string& text) {
  VKF_ASSIGN(const std::u32string chars, decode_utf8(text, "The transcript"));
  size_t begin = 0, end = chars.size();
  while (begin < end && is_white_space(chars[begin])) ++begin;
  while (end > begin && is_white_space(chars[end - 1])) --end;
  return encode_utf8(std::u32string_view(chars).substr(begin, end - begin));
}

// The object of ids by token, or that of a language in it.
Result<JsonRef> vocabulary_of(const JsonRef& root, const std::string& language) {
  const bool several =
      root.node().is_object() && !root.node().empty() && root.node().begin()->is_object();
  if (!several) return root;
  if (!language.empty() && root.node().contains(language)) return root.member(language);
  std::string known;
  for (const auto& [name, ids] : root.node().items()) known += (known.empty() ? "" : ", ") + name;
  return root.malformed(message({"has vocabularies of the languages ", known,
                                 ", but target_lang of tokenizer_config.json is '", language,
                                 "'; name one of them there."}));
}

}  // namespace

Result<CtcVocabulary> CtcVocabulary::parse(std::string_view json, const std::string& name,
                                           CtcSettings settings) {
  VKF_ASSIGN(const nlohmann::json document, parse_json(json, name));
  VKF_ASSIGN(const JsonRef root, vocabulary_of(JsonRef(document, name), settings.language));
  if (!root.node().is_object()) return root.wrong_type("an object of ids by token");
  CtcVocabulary made(std::move(settings));
  for (const auto& [token, id] : root.node().items()) {
    VKF_ASSIGN(
        const int64_t value,
        JsonRef(id, root.path() + " " + token).integer(0, std::numeric_limits<int32_t>::max()));
    made.tokens_[value] = token;
  }
  return made;
}

Result<FrameText> CtcVocabulary::decode(std::span<const TokenId> classes) const {
  const auto token_of = [&](TokenId id) -> const std::string& {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? settings_.unknown : found->second;
  };
  FrameText result;
  std::string text;
  bool inside = false;  // a word
  for (size_t begin = 0, end = 0; begin < classes.size(); begin = end) {
    const std::string& token = token_of(classes[begin]);
    for (end = begin + 1; end < classes.size() && token_of(classes[end]) == token;) ++end;
    if (token == settings_.pad) continue;
    const bool between = token == settings_.delimiter || token == settings_.space;
    const std::string& written = token == settings_.delimiter ? settings_.space : token;
    text += written;
    if (!between && !inside) result.words.push_back({"", begin, end});
    inside = !between;
    if (between) continue;
    result.words.back().text += written;
    result.words.back().end = end;
  }
  VKF_ASSIGN(result.text, stripped(text));
  if (!settings_.lowers) return result;
  VKF_ASSIGN(result.text, lowered_text(result.text));
  for (FrameWord& word : result.words) {
    VKF_ASSIGN(word.text, lowered_text(word.text));
  }
  return result;
}

Result<FrameText> decode_frames(const TokenizerEngine& tokenizer, TokenId blank,
                                std::span<const TokenId> classes) {
  // A token's frames, and how long the text is with it, in bytes.
  struct Piece {
    size_t begin, end, length;
  };
  std::vector<Piece> pieces;
  std::vector<TokenId> ids;
  FrameText result;
  for (size_t begin = 0, end = 0; begin < classes.size(); begin = end) {
    const TokenId id = classes[begin];
    for (end = begin + 1; end < classes.size() && classes[end] == id;) ++end;
    if (id == blank) continue;
    ids.push_back(id);
    VKF_ASSIGN(result.text, tokenizer.decode(ids, SpecialTokens::kInclude));
    const size_t before = pieces.empty() ? 0 : pieces.back().length;
    pieces.push_back({begin, end, std::max(before, result.text.size())});
  }
  const std::string& text = result.text;
  size_t piece = 0;
  for (size_t begin = text.find_first_not_of(' '); begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    while (pieces[piece].length <= begin) ++piece;
    FrameWord word{text.substr(begin, end - begin), pieces[piece].begin, 0};
    while (pieces[piece].length < end) ++piece;
    word.end = pieces[piece].end;
    result.words.push_back(std::move(word));
    begin = text.find_first_not_of(' ', end);
  }
  return result;
}

}  // namespace vkformer
