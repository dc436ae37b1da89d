#include "text/normalizers.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/message.h"
#include "text/bert_text.h"
#include "text/byte_level.h"
#include "text/precompiled.h"
#include "text/text_pattern.h"
#include "text/type_list.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

using NormalizerPtr = std::unique_ptr<TextNormalizer>;

class SequenceNormalizer final : public TextNormalizer {
 public:
  static Result<NormalizerPtr> parse(const JsonRef& json, int depth) {
    auto sequence = std::make_unique<SequenceNormalizer>();
    VKF_CHECK(parse_each(
        json, "normalizers", [&](const JsonRef& one) { return parse_normalizer(one, depth + 1); },
        [&](NormalizerPtr step) { sequence->steps_.push_back(std::move(step)); }));
    return NormalizerPtr(std::move(sequence));
  }

  Status apply(AlignedText& text) const override {
    for (const auto& step : steps_) {
      const size_t before = text.size();
      VKF_CHECK(step->apply(text));
      VKF_CHECK(check_growth(before, text.size()));
    }
    return {};
  }

 private:
  std::vector<NormalizerPtr> steps_;
};

class FormNormalizer final : public TextNormalizer {
 public:
  template <UnicodeForm form>
  static Result<NormalizerPtr> parse(const JsonRef&, int) {
    return NormalizerPtr(std::make_unique<FormNormalizer>(form));
  }
  explicit FormNormalizer(UnicodeForm form) : form_(form) {}

  Status apply(AlignedText& text) const override {
    const auto chars = text.chars();
    if (is_ascii(chars)) return {};
    text.rewrite(normalization_changes(chars, form_), 0);
    return {};
  }

 private:
  UnicodeForm form_;
};

class LowercaseNormalizer final : public TextNormalizer {
 public:
  static Result<NormalizerPtr> parse(const JsonRef&, int) {
    return NormalizerPtr(std::make_unique<LowercaseNormalizer>());
  }

  Status apply(AlignedText& text) const override {
    lower_case(text);
    return {};
  }
};

class StripNormalizer final : public TextNormalizer {
 public:
  static Result<NormalizerPtr> parse(const JsonRef& json, int) {
    auto strip = std::make_unique<StripNormalizer>();
    VKF_ASSIGN(strip->left_, json.boolean_or("strip_left", true));
    VKF_ASSIGN(strip->right_, json.boolean_or("strip_right", true));
    return NormalizerPtr(std::move(strip));
  }

  Status apply(AlignedText& text) const override {
    const auto chars = text.chars();
    size_t begin = 0;
    size_t end = chars.size();
    while (left_ && begin < end && is_white_space(chars[begin])) ++begin;
    while (right_ && end > begin && is_white_space(chars[end - 1])) --end;
    std::vector<uint8_t> keep(chars.size(), 0);
    std::fill(keep.begin() + static_cast<ptrdiff_t>(begin),
              keep.begin() + static_cast<ptrdiff_t>(end), uint8_t{1});
    text.filter(keep);
    return {};
  }

 private:
  bool left_ = true;
  bool right_ = true;
};

class StripAccentsNormalizer final : public TextNormalizer {
 public:
  static Result<NormalizerPtr> parse(const JsonRef&, int) {
    return NormalizerPtr(std::make_unique<StripAccentsNormalizer>());
  }

  Status apply(AlignedText& text) const override {
    std::vector<uint8_t> keep;
    keep.reserve(text.size());
    for (const char32_t c : text.chars()) keep.push_back(is_mark(c) ? 0 : 1);
    text.filter(keep);
    return {};
  }
};

class ReplaceNormalizer final : public TextNormalizer {
 public:
  static Result<NormalizerPtr> parse(const JsonRef& json, int) {
    auto replace = std::make_unique<ReplaceNormalizer>();
    VKF_ASSIGN(const auto pattern, json.member("pattern"));
    VKF_ASSIGN(replace->pattern_, TextPattern::parse(pattern));
    VKF_ASSIGN(const auto content, json.member("content"));
    VKF_ASSIGN(replace->content_, content.code_points());
    return NormalizerPtr(std::move(replace));
  }

  Status apply(AlignedText& text) const override {
    if (pattern_.character() && content_.size() == 1) {
      // Without a branch, which would be mispredicted at every word.
      for (char32_t& c : text.mutable_chars()) c = c == *pattern_.character() ? content_[0] : c;
      return {};
    }
    VKF_ASSIGN(const auto found, pattern_.find_all(text.chars()));
    if (found.empty()) return {};
    size_t kept = text.size();
    for (const CharSpan& range : found) kept -= range.end - range.begin;
    // Both factors are below 2^32.
    VKF_CHECK(check_growth(text.size(), kept + found.size() * content_.size()));
    text.replace_ranges(found, content_);
    return {};
  }

 private:
  TextPattern pattern_;
  std::u32string content_;
};

class PrependNormalizer final : public TextNormalizer {
 public:
  static Result<NormalizerPtr> parse(const JsonRef& json, int) {
    auto prepend = std::make_unique<PrependNormalizer>();
    VKF_ASSIGN(const auto content, json.member("prepend"));
    VKF_ASSIGN(prepend->content_, content.code_points());
    return NormalizerPtr(std::move(prepend));
  }

  Status apply(AlignedText& text) const override {
    VKF_CHECK(check_growth(text.size(), text.size() + content_.size()));
    text.prepend(content_);
    return {};
  }

 private:
  std::u32string content_;
};

constexpr std::array<TypeRow<NormalizerPtr>, 14> kNormalizers = {{
    {"Sequence", SequenceNormalizer::parse},
    {"NFC", FormNormalizer::parse<UnicodeForm::kNfc>},
    {"NFD", FormNormalizer::parse<UnicodeForm::kNfd>},
    {"NFKC", FormNormalizer::parse<UnicodeForm::kNfkc>},
    {"NFKD", FormNormalizer::parse<UnicodeForm::kNfkd>},
    {"Lowercase", LowercaseNormalizer::parse},
    {"Strip", StripNormalizer::parse},
    {"StripAccents", StripAccentsNormalizer::parse},
    {"Replace", ReplaceNormalizer::parse},
    {"Prepend", PrependNormalizer::parse},
    {"BertNormalizer", parse_bert_normalizer},
    {"ByteLevel", parse_byte_level_normalizer},
    {"Precompiled", parse_precompiled_normalizer},
    {"Nmt", parse_nmt_normalizer},
}};

}  // namespace

Status check_growth(size_t before, size_t after) {
  if (after <= std::max(before, kMostNormalized)) return {};
  return invalid_argument(
      message({"[normalizer] A step makes ", after, " characters of a text of ", before,
               ", but a text that is made longer may have at most ", kMostNormalized,
               "; encode a shorter text, or look at the normalizer of tokenizer.json."}));
}

void lower_case(AlignedText& text) {
  const auto lower_ascii = [](char32_t c) { return c + (c - U'A' < 26 ? 0x20u : 0u); };
  const auto chars = text.mutable_chars();
  if (is_ascii(text.chars())) {
    std::transform(chars.begin(), chars.end(), chars.begin(), lower_ascii);
    return;
  }
  const auto is_lengthened = [](char32_t c) { return c == 0x130; };
  if (std::none_of(chars.begin(), chars.end(), is_lengthened)) {
    std::transform(chars.begin(), chars.end(), chars.begin(),
                   [&](char32_t c) { return c < 0x80 ? lower_ascii(c) : to_lower(c); });
    return;
  }
  std::vector<CharChange> changes;
  changes.reserve(text.size());
  for (const char32_t c : text.chars()) append_lower_case(c, changes);
  text.rewrite(changes, 0);
}

Result<NormalizerPtr> parse_normalizer(const JsonRef& json, int depth) {
  return parse_by_type<NormalizerPtr>(kNormalizers, json, depth, "normalizer");
}

}  // namespace vkformer
