#include "text/pre_tokenizers.h"

#include <array>

#include "text/text_pattern.h"
#include "text/type_list.h"

namespace vkformer {
namespace {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;
using Pieces = std::vector<AlignedText>;

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

  Result<Pieces> split(AlignedText text) const override {
    Pieces pieces;
    pieces.push_back(std::move(text));
    for (const auto& step : steps_) {
      Pieces next;
      for (AlignedText& piece : pieces) {
        VKF_ASSIGN(auto parts, step->split(std::move(piece)));
        for (AlignedText& part : parts) next.push_back(std::move(part));
      }
      pieces = std::move(next);
    }
    return pieces;
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
    VKF_ASSIGN(const auto behavior, json.member("behavior"));
    VKF_ASSIGN(split->behavior_, parse_split_behavior(behavior));
    VKF_ASSIGN(const bool invert, json.boolean_or("invert", false));
    split->side_ = invert ? SplitSide::kNonMatches : SplitSide::kMatches;
    return PreTokenizerPtr(std::move(split));
  }

  Result<Pieces> split(AlignedText text) const override {
    VKF_ASSIGN(const auto found, pattern_.find_all(text.chars()));
    return split_text(text, found, behavior_, side_);
  }

 private:
  TextPattern pattern_;
  SplitBehavior behavior_ = SplitBehavior::kRemoved;
  SplitSide side_ = SplitSide::kMatches;
};

// Words, and runs of what is neither word nor white space: \w+|[^\w\s]+
class WhitespacePreTokenizer final : public PreTokenizer {
 public:
  static Result<PreTokenizerPtr> parse(const JsonRef&, int) {
    return PreTokenizerPtr(std::make_unique<WhitespacePreTokenizer>());
  }

  Result<Pieces> split(AlignedText text) const override {
    enum class Class : uint8_t { kSpace, kWord, kOther };
    const auto class_of = [](char32_t c) {
      if (is_word(c)) return Class::kWord;
      return is_white_space(c) ? Class::kSpace : Class::kOther;
    };
    const auto chars = text.chars();
    Pieces pieces;
    for (size_t begin = 0; begin < chars.size();) {
      const Class run = class_of(chars[begin]);
      size_t end = begin + 1;
      while (end < chars.size() && class_of(chars[end]) == run) ++end;
      if (run != Class::kSpace) pieces.push_back(text.slice(begin, end));
      begin = end;
    }
    return pieces;
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

  Result<Pieces> split(AlignedText text) const override {
    return split_text(text, find_characters(text.chars(), accepts_), behavior_,
                      SplitSide::kMatches);
  }

 private:
  bool (*accepts_)(char32_t);
  SplitBehavior behavior_;
};

constexpr std::array<TypeRow<PreTokenizerPtr>, 6> kPreTokenizers = {{
    {"Sequence", SequencePreTokenizer::parse},
    {"Split", SplitPreTokenizer::parse},
    {"Whitespace", WhitespacePreTokenizer::parse},
    {"WhitespaceSplit", CharacterPreTokenizer::parse_whitespace_split},
    {"Punctuation", CharacterPreTokenizer::parse_punctuation},
    {"Digits", CharacterPreTokenizer::parse_digits},
}};

}  // namespace

Result<PreTokenizerPtr> parse_pre_tokenizer(const JsonRef& json, int depth) {
  return parse_by_type<PreTokenizerPtr>(kPreTokenizers, json, depth, "pre-tokenizer");
}

}  // namespace vkformer
