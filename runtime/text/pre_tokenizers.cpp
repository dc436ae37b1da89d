#include "text/pre_tokenizers.h"

#include <array>

#include "text/bert_text.h"
#include "text/byte_level.h"
#include "text/metaspace.h"
#include "text/text_pattern.h"
#include "text/type_list.h"
#include "text/word_scanner.h"
#include "unicode/unicode_tables.h"

namespace vkformer {
namespace {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;
using Parts = std::vector<CharSpan>;

class SequencePreTokenizer final : public PreTokenizer {
 public:
  static Result<PreTokenizerPtr> parse(const JsonRef& json, int depth) {
    auto sequence = std::make_unique<SequencePreTokenizer>();
    VKF_CHECK(parse_each(
        json, "pretokenizers",
        [&](const JsonRef& one) { return parse_pre_tokenizer(one, depth + 1); },
        [&](PreTokenizerPtr step) { sequence->steps_.push_back(std::move(step)); }));
    return PreTokenizerPtr(std::move(sequence));
  }

  Status apply(WordList& words) const override {
    for (const auto& step : steps_) VKF_CHECK(step->apply(words));
    return {};
  }

 private:
  std::vector<PreTokenizerPtr> steps_;
};

class SplitPreTokenizer final : public PreTokenizer {
 public:
  static Result<PreTokenizerPtr> parse(const JsonRef& json, int) {
    auto split = std::make_unique<SplitPreTokenizer>();
    VKF_ASSIGN(const auto pattern, json.member("pattern"));
    VKF_ASSIGN(split->pattern_, TextPattern::parse(pattern));
    if (const auto regex = pattern.node().find("Regex"); regex != pattern.node().end()) {
      if (regex->is_string()) split->words_ = find_word_pattern(regex->get<std::string>());
    }
    VKF_ASSIGN(const auto behavior, json.member("behavior"));
    VKF_ASSIGN(split->behavior_, parse_split_behavior(behavior));
    VKF_ASSIGN(const bool invert, json.boolean_or("invert", false));
    split->side_ = invert ? SplitSide::kNonMatches : SplitSide::kMatches;
    return PreTokenizerPtr(std::move(split));
  }

  Status apply(WordList& words) const override {
    return words.cut([&](std::u32string_view word, Parts& parts) -> Status {
      // The matches of a word pattern cover the text, so that isolating them is all there is to do.
      if (words_ && behavior_ == SplitBehavior::kIsolated) {
        scan_words(*words_, word, parts);
        return {};
      }
      Parts found;
      if (words_) {
        scan_words(*words_, word, found);
      } else {
        VKF_ASSIGN(found, pattern_.find_all(word));
      }
      const Parts cut = split_parts(word.size(), found, behavior_, side_);
      parts.insert(parts.end(), cut.begin(), cut.end());
      return {};
    });
  }

 private:
  TextPattern pattern_;
  std::optional<WordPattern> words_;  // where the pattern is one that has a scanner
  SplitBehavior behavior_ = SplitBehavior::kRemoved;
  SplitSide side_ = SplitSide::kMatches;
};

// Words, and runs of what is neither word nor white space: \w+|[^\w\s]+
class WhitespacePreTokenizer final : public PreTokenizer {
 public:
  static Result<PreTokenizerPtr> parse(const JsonRef&, int) {
    return PreTokenizerPtr(std::make_unique<WhitespacePreTokenizer>());
  }

  Status apply(WordList& words) const override {
    return words.cut([&](std::u32string_view word, Parts& parts) -> Status {
      const auto size = static_cast<uint32_t>(word.size());
      for (uint32_t begin = 0; begin < size;) {
        const Class run = class_of(word[begin]);
        uint32_t end = begin + 1;
        while (end < size && class_of(word[end]) == run) ++end;
        if (run != Class::kSpace) parts.push_back({begin, end});
        begin = end;
      }
      return {};
    });
  }

 private:
  enum class Class : uint8_t { kSpace, kWord, kOther };
  static Class class_of(char32_t c) {
    if (is_word(c)) return Class::kWord;
    return is_white_space(c) ? Class::kSpace : Class::kOther;
  }
};

// Cuts at single characters of one class.
class CharacterPreTokenizer final : public PreTokenizer {
 public:
  CharacterPreTokenizer(bool (*accepts)(char32_t), SplitBehavior behavior)
      : accepts_(accepts), behavior_(behavior) {}

  static Result<PreTokenizerPtr> parse_whitespace_split(const JsonRef&, int) {
    return PreTokenizerPtr(
        std::make_unique<CharacterPreTokenizer>(is_white_space, SplitBehavior::kRemoved));
  }
  static Result<PreTokenizerPtr> parse_punctuation(const JsonRef& json, int) {
    auto behavior = SplitBehavior::kIsolated;
    VKF_ASSIGN(const auto member, json.optional_member("behavior"));
    if (member) {
      VKF_ASSIGN(behavior, parse_split_behavior(*member));
    }
    return PreTokenizerPtr(std::make_unique<CharacterPreTokenizer>(is_punctuation, behavior));
  }
  static Result<PreTokenizerPtr> parse_digits(const JsonRef& json, int) {
    VKF_ASSIGN(const bool individual, json.boolean_or("individual_digits", false));
    return PreTokenizerPtr(std::make_unique<CharacterPreTokenizer>(
        is_numeric, individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous));
  }

  Status apply(WordList& words) const override {
    return words.cut([&](std::u32string_view word, Parts& parts) -> Status {
      const Parts cut =
          split_parts(word.size(), find_characters(word, accepts_), behavior_, SplitSide::kMatches);
      parts.insert(parts.end(), cut.begin(), cut.end());
      return {};
    });
  }

 private:
  bool (*accepts_)(char32_t);
  SplitBehavior behavior_;
};

// Cuts where the script changes. A space, and a character without a script, belongs to the word
// before it, and to none at the front. Chinese and Japanese are one script, as SentencePiece has
// it.
class ScriptPreTokenizer final : public PreTokenizer {
 public:
  ScriptPreTokenizer()
      : han_(script_number("Han")),
        hiragana_(script_number("Hiragana")),
        katakana_(script_number("Katakana")) {}

  static Result<PreTokenizerPtr> parse(const JsonRef&, int) {
    return PreTokenizerPtr(std::make_unique<ScriptPreTokenizer>());
  }

  Status apply(WordList& words) const override {
    return words.cut([&](std::u32string_view word, Parts& parts) -> Status {
      uint8_t last = kNone;
      for (uint32_t at = 0; at < word.size(); ++at) {
        const uint8_t script = script_at(word[at]);
        if (script != kNone && script != last) {
          parts.push_back({at, at});
          last = script;
        }
        if (last != kNone) parts.back().end = at + 1;
      }
      return {};
    });
  }

 private:
  static constexpr uint8_t kNone = 0;

  uint8_t script_at(char32_t c) const {
    if (c == U' ') return kNone;
    const uint8_t script = c == 0x30FC ? han_ : script_in_9(c);
    return script == hiragana_ || script == katakana_ ? han_ : script;
  }

  uint8_t han_;
  uint8_t hiragana_;
  uint8_t katakana_;
};

constexpr std::array<TypeRow<PreTokenizerPtr>, 10> kPreTokenizers = {{
    {"Sequence", SequencePreTokenizer::parse},
    {"Split", SplitPreTokenizer::parse},
    {"Whitespace", WhitespacePreTokenizer::parse},
    {"WhitespaceSplit", CharacterPreTokenizer::parse_whitespace_split},
    {"Punctuation", CharacterPreTokenizer::parse_punctuation},
    {"Digits", CharacterPreTokenizer::parse_digits},
    {"BertPreTokenizer", parse_bert_pre_tokenizer},
    {"ByteLevel", parse_byte_level_pre_tokenizer},
    {"Metaspace", parse_metaspace_pre_tokenizer},
    {"UnicodeScripts", ScriptPreTokenizer::parse},
}};

}  // namespace

Result<PreTokenizerPtr> parse_pre_tokenizer(const JsonRef& json, int depth) {
  return parse_by_type<PreTokenizerPtr>(kPreTokenizers, json, depth, "pre-tokenizer");
}

}  // namespace vkformer
