#include "text/metaspace.h"

#include <algorithm>

#include "base/check.h"
#include "text/word_list.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

// Which words get the replacement in front when they do not start with it.
enum class PrependScheme : uint8_t {
  kAlways,
  kFirst,  // words that start where the text does
  kNever,
};

struct MetaspaceSettings {
  char32_t replacement = 0x2581;
  PrependScheme scheme = PrependScheme::kAlways;
  bool split = true;  // whether words are cut before each replacement
};

Result<PrependScheme> parse_scheme(const JsonRef& json) {
  VKF_ASSIGN(const auto member, json.optional_member("prepend_scheme"));
  VKF_ASSIGN(const bool prefix_space, json.boolean_or("add_prefix_space", true));
  if (!member) return prefix_space ? PrependScheme::kAlways : PrependScheme::kNever;
  VKF_ASSIGN(const auto name, member->text());
  if (!prefix_space && name != "never") {
    return member->malformed("is [" + name +
                             "], but [add_prefix_space] is false, which asks for never.");
  }
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return member->not_supported("is [" + name + "]; this build knows always, first and never.");
}

Result<MetaspaceSettings> parse_settings(const JsonRef& json) {
  MetaspaceSettings settings;
  VKF_ASSIGN(const auto replacement, json.member("replacement"));
  VKF_ASSIGN(const auto chars, replacement.code_points());
  if (chars.size() != 1) return replacement.malformed("must be a string of one character.");
  settings.replacement = chars[0];
  VKF_ASSIGN(settings.scheme, parse_scheme(json));
  VKF_ASSIGN(settings.split, json.boolean_or("split", true));
  return settings;
}

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(const MetaspaceSettings& settings) : settings_(settings) {}

  Status apply(WordList& words) const override {
    for (char32_t& c : words.mutable_chars()) {
      c = c == U' ' ? settings_.replacement : c;
    }
    VKF_CHECK(prepend(words));
    if (!settings_.split) return {};
    return words.cut([&](std::u32string_view word, std::vector<CharSpan>& parts) {
      size_t begin = 0;
      while (begin < word.size()) {
        const size_t end = std::min(word.find(settings_.replacement, begin + 1), word.size());
        parts.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
        begin = end;
      }
      return Status();
    });
  }

 private:
  Status prepend(WordList& words) const {
    const auto wants = [&](CharSpan word) {
      if (words.chars()[word.begin] == settings_.replacement) return false;
      if (settings_.scheme == PrependScheme::kFirst)
        return words.text().original_range(word.begin, word.end).begin == 0;
      return settings_.scheme == PrependScheme::kAlways;
    };
    if (std::none_of(words.words().begin(), words.words().end(), wants)) return {};
    if (words.prepend_to_whole({&settings_.replacement, 1})) return {};
    return words.rewrite_each([&](const AlignedText& text, CharSpan word, AlignedText& out) {
      if (wants(word)) out.append(settings_.replacement, text.span(word.begin));
      out.append(text, word.begin, word.end);
      return Status();
    });
  }

  MetaspaceSettings settings_;
};

class MetaspaceDecoder final : public TokenwiseDecoder {
 public:
  explicit MetaspaceDecoder(const MetaspaceSettings& settings)
      : drops_first_(settings.scheme != PrependScheme::kNever) {
    append_utf8(replacement_, settings.replacement);
  }

  // The replacements of the first token were put there, all others stand for spaces.
  Result<std::string> decode_token(std::string token, TokenPlace place) const override {
    std::string text;
    size_t at = 0;
    for (size_t mark = 0; (mark = token.find(replacement_, at)) != std::string::npos;) {
      text.append(token, at, mark - at);
      if (!place.is_first || !drops_first_) text += ' ';
      at = mark + replacement_.size();
    }
    text.append(token, at);
    return text;
  }

 private:
  std::string replacement_;
  bool drops_first_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> parse_metaspace_pre_tokenizer(const JsonRef& json, int) {
  VKF_ASSIGN(const auto settings, parse_settings(json));
  return std::unique_ptr<PreTokenizer>(std::make_unique<MetaspacePreTokenizer>(settings));
}

Result<std::unique_ptr<TokenDecoder>> parse_metaspace_decoder(const JsonRef& json, int) {
  VKF_ASSIGN(const auto settings, parse_settings(json));
  return std::unique_ptr<TokenDecoder>(std::make_unique<MetaspaceDecoder>(settings));
}

}  // namespace vkformer
