// The steps of BERT's and RoBERTa's tokenizers, as the tokenizers library defines them.
#include "text/bert_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "text/byte_level.h"
#include "unicode/unicode_older.h"

namespace vkformer {
namespace {

// CJK ideographs, as BERT has them (Devlin et al., 2019, tokenization.py).
bool is_ideograph(char32_t c) {
  if (c < 0x3400) return false;
  return (c >= 0x4E00 && c <= 0x9FFF) || c <= 0x4DBF || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class BertNormalizer final : public TextNormalizer {
 public:
  static Result<std::unique_ptr<TextNormalizer>> parse(const JsonRef& json) {
    auto made = std::make_unique<BertNormalizer>();
    VKF_ASSIGN(made->clean_, json.boolean_or("clean_text", true));
    VKF_ASSIGN(made->ideographs_, json.boolean_or("handle_chinese_chars", true));
    VKF_ASSIGN(made->lower_, json.boolean_or("lowercase", true));
    VKF_ASSIGN(made->accents_, json.boolean_or("strip_accents", made->lower_));
    return std::unique_ptr<TextNormalizer>(std::move(made));
  }

  Status apply(AlignedText& text) const override {
    const bool ascii = is_ascii(text.chars());
    if (clean_) clean(text);
    if (ideographs_ && !ascii) set_ideographs_apart(text);
    if (accents_ && !ascii) strip_accents(text);
    if (lower_) lower_case(text);
    return {};
  }

 private:
  static void clean(AlignedText& text) {
    const auto is_dropped = [](char32_t c) {
      if (c == '\t' || c == '\n' || c == '\r') return false;
      if (c < 0x80) return c < 0x20 || c == 0x7F;
      return c == 0xFFFD || is_other_8(c);
    };
    std::vector<uint8_t> keep;
    const auto chars = text.mutable_chars();
    for (size_t i = 0; i < chars.size(); ++i) {
      const char32_t c = chars[i];
      if (c >= 0x20 && c < 0x7F) continue;
      if (is_dropped(c)) {
        if (keep.empty()) keep.assign(chars.size(), 1);
        keep[i] = 0;
      } else if (is_white_space(c)) {
        chars[i] = U' ';
      }
    }
    if (!keep.empty()) text.filter(keep);
  }

  static void set_ideographs_apart(AlignedText& text) {
    const auto chars = text.chars();
    if (std::none_of(chars.begin(), chars.end(), is_ideograph)) return;
    AlignedText out = text.empty_copy();
    out.reserve(text.size());
    for (size_t i = 0; i < chars.size(); ++i) {
      const bool apart = is_ideograph(chars[i]);
      if (apart) out.append(U' ', text.span(i));
      out.append(chars[i], text.span(i));
      if (apart) out.append(U' ', text.span(i));
    }
    text = std::move(out);
  }

  static void strip_accents(AlignedText& text) {
    text.rewrite(normalization_changes(text.chars(), UnicodeForm::kNfd), 0);
    std::vector<uint8_t> keep(text.size());
    std::transform(text.chars().begin(), text.chars().end(), keep.begin(), [](char32_t c) {
      return static_cast<uint8_t>(is_nonspacing_mark_8(c) ? 0 : 1);
    });
    text.filter(keep);
  }

  bool clean_ = true;
  bool ideographs_ = true;
  bool accents_ = true;
  bool lower_ = true;
};

class BertPreTokenizer final : public PreTokenizer {
 public:
  BertPreTokenizer() {
    for (char32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = classify(c);
  }

  Status apply(WordList& words) const override {
    return words.cut([this](std::u32string_view word, std::vector<CharSpan>& parts) -> Status {
      const auto size = static_cast<uint32_t>(word.size());
      uint32_t begin = 0;
      for (uint32_t at = 0; at < size; ++at) {
        const char32_t c = word[at];
        const Class kind = c < ascii_.size() ? ascii_[c] : classify(c);
        if (kind == Class::kLetter) continue;
        if (begin != at) parts.push_back({begin, at});
        if (kind == Class::kPunctuation) parts.push_back({at, at + 1});
        begin = at + 1;
      }
      if (begin != size) parts.push_back({begin, size});
      return {};
    });
  }

 private:
  enum class Class : uint8_t { kLetter, kSpace, kPunctuation };

  static Class classify(char32_t c) {
    if (is_white_space(c)) return Class::kSpace;
    return is_punctuation(c) ? Class::kPunctuation : Class::kLetter;
  }

  std::array<Class, 0x80> ascii_{};
};

using SpecialToken = std::pair<std::string, int32_t>;

// ["[SEP]", 102]
Result<SpecialToken> parse_special_token(const JsonRef& json, std::string_view key) {
  VKF_ASSIGN(const auto pair, json.member(key));
  VKF_ASSIGN(const size_t size, pair.array_size());
  if (size != 2) {
    return pair.malformed("has " + std::to_string(size) +
                          " elements; it must have 2, a token and its id.");
  }
  VKF_ASSIGN(auto token, pair.element(0).text());
  VKF_ASSIGN(const int64_t id, pair.element(1).integer(0, INT32_MAX));
  return SpecialToken(std::move(token), static_cast<int32_t>(id));
}

void add_special(std::vector<Encoding>& parts, const SpecialToken& token, int32_t type_id) {
  Encoding one;
  append_token(one, token.second, token.first, {}, type_id);
  parts.push_back(std::move(one));
}

class BertProcessing final : public PostProcessor {
 public:
  static Result<std::unique_ptr<PostProcessor>> parse(const JsonRef& json) {
    auto made = std::make_unique<BertProcessing>();
    VKF_ASSIGN(made->sep_, parse_special_token(json, "sep"));
    VKF_ASSIGN(made->cls_, parse_special_token(json, "cls"));
    return std::unique_ptr<PostProcessor>(std::move(made));
  }

  size_t added_count(size_t texts) const override { return texts == 2 ? 3 : 2; }

  Result<std::vector<Encoding>> process(std::vector<Encoding> parts,
                                        SpecialTokens special_tokens) const override {
    if (special_tokens == SpecialTokens::kExclude) return parts;
    std::vector<Encoding> out;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i == 0) add_special(out, cls_, 0);
      out.push_back(std::move(parts[i]));
      add_special(out, sep_, i == 0 ? 0 : 1);
    }
    return out;
  }

 private:
  SpecialToken sep_;
  SpecialToken cls_;
};

class RobertaProcessing final : public PostProcessor {
 public:
  static Result<std::unique_ptr<PostProcessor>> parse(const JsonRef& json) {
    auto made = std::make_unique<RobertaProcessing>();
    VKF_ASSIGN(made->sep_, parse_special_token(json, "sep"));
    VKF_ASSIGN(made->cls_, parse_special_token(json, "cls"));
    VKF_ASSIGN(made->trim_offsets_, json.boolean_or("trim_offsets", true));
    VKF_ASSIGN(const bool added, json.boolean_or("add_prefix_space", true));
    made->prefix_space_ = added ? PrefixSpace::kAdded : PrefixSpace::kNotAdded;
    return std::unique_ptr<PostProcessor>(std::move(made));
  }

  size_t added_count(size_t texts) const override { return texts == 2 ? 4 : 2; }

  Result<std::vector<Encoding>> process(std::vector<Encoding> parts,
                                        SpecialTokens special_tokens) const override {
    std::vector<Encoding> out;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (trim_offsets_) trim_byte_level_offsets(parts[i], prefix_space_);
      // RoBERTa has no second segment.
      parts[i].type_ids.assign(parts[i].ids.size(), 0);
      const bool adds = special_tokens == SpecialTokens::kInclude;
      if (adds) add_special(out, i == 0 ? cls_ : sep_, 0);
      out.push_back(std::move(parts[i]));
      if (adds) add_special(out, sep_, 0);
    }
    return out;
  }

 private:
  SpecialToken sep_;
  SpecialToken cls_;
  bool trim_offsets_ = true;
  PrefixSpace prefix_space_ = PrefixSpace::kAdded;
};

// Replaces every `from`, from left to right.
void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

class WordPieceDecoder final : public TokenwiseDecoder {
 public:
  static Result<std::unique_ptr<TokenDecoder>> parse(const JsonRef& json) {
    auto made = std::make_unique<WordPieceDecoder>();
    VKF_ASSIGN(made->prefix_, json.text_or("prefix", "##"));
    VKF_ASSIGN(made->cleanup_, json.boolean_or("cleanup", true));
    return std::unique_ptr<TokenDecoder>(std::move(made));
  }

  Result<std::string> decode_token(std::string token, TokenPlace place) const override {
    if (!place.is_first && token.starts_with(prefix_)) {
      token.erase(0, prefix_.size());
    } else if (!place.is_first) {
      token.insert(0, 1, ' ');
    }
    if (cleanup_) clean_up(token);
    return token;
  }

 private:
  // Token by token and in this order, as the tokenizers library does it.
  static void clean_up(std::string& token) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplacements = {{
        {" .", "."},
        {" ?", "?"},
        {" !", "!"},
        {" ,", ","},
        {" ' ", "'"},
        {" n't", "n't"},
        {" 'm", "'m"},
        {" do not", " don't"},
        {" 's", "'s"},
        {" 've", "'ve"},
        {" 're", "'re"},
    }};
    if (token.find(' ') == token.npos) return;
    for (const auto& [from, to] : kReplacements) replace_all(token, from, to);
  }

  std::string prefix_;
  bool cleanup_ = true;
};

}  // namespace

Result<std::unique_ptr<TextNormalizer>> parse_bert_normalizer(const JsonRef& json, int) {
  return BertNormalizer::parse(json);
}

Result<std::unique_ptr<PreTokenizer>> parse_bert_pre_tokenizer(const JsonRef&, int) {
  return std::unique_ptr<PreTokenizer>(std::make_unique<BertPreTokenizer>());
}

Result<std::unique_ptr<PostProcessor>> parse_bert_processing(const JsonRef& json, int) {
  return BertProcessing::parse(json);
}

Result<std::unique_ptr<PostProcessor>> parse_roberta_processing(const JsonRef& json, int) {
  return RobertaProcessing::parse(json);
}

Result<std::unique_ptr<TokenDecoder>> parse_word_piece_decoder(const JsonRef& json, int) {
  return WordPieceDecoder::parse(json);
}

}  // namespace vkformer
