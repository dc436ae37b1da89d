#include "text/byte_level.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "text/word_scanner.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

constexpr bool is_visible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

// The bytes that are no visible character take U+0100 and up, in order.
constexpr auto kCharOfByte = [] {
  std::array<char32_t, 256> table{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(byte)] = is_visible(byte) ? static_cast<char32_t>(byte) : next++;
  }
  return table;
}();

constexpr auto kByteOfChar = [] {
  std::array<int16_t, 0x144> table{};
  for (int16_t& byte : table) byte = -1;
  for (size_t byte = 0; byte < 256; ++byte) {
    table[kCharOfByte[byte]] = static_cast<int16_t>(byte);
  }
  return table;
}();

constexpr char32_t kSpaceChar = kCharOfByte[' '];

// The bytes of a character, each as its character.
struct ByteChars {
  std::array<char32_t, 4> chars{};
  size_t count = 0;
};

ByteChars byte_chars(char32_t c) {
  ByteChars out;
  const auto push = [&](char32_t byte) { out.chars[out.count++] = kCharOfByte[byte & 0xFF]; };
  const auto tail = [&](int shift) { push(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    push(c);
  } else if (c < 0x800) {
    push(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    push(0xE0 | (c >> 12));
    tail(6);
  } else {
    push(0xF0 | (c >> 18));
    tail(12);
    tail(6);
  }
  if (c >= 0x80) tail(0);
  return out;
}

class ByteLevelNormalizer final : public TextNormalizer {
 public:
  Status apply(AlignedText& text) const override {
    if (is_ascii(text.chars())) {
      for (char32_t& c : text.mutable_chars()) c = kCharOfByte[c];
      return {};
    }
    std::vector<CharChange> changes;
    changes.reserve(text.size());
    for (const char32_t c : text.chars()) {
      const ByteChars bytes = byte_chars(c);
      for (size_t i = 0; i < bytes.count; ++i) changes.push_back({bytes.chars[i], i == 0 ? 0 : 1});
    }
    text.rewrite(changes, 0);
    return {};
  }
};

class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  static Result<std::unique_ptr<PreTokenizer>> parse(const JsonRef& json) {
    auto made = std::make_unique<ByteLevelPreTokenizer>();
    VKF_ASSIGN(made->add_prefix_space_, json.boolean_or("add_prefix_space", true));
    VKF_ASSIGN(made->use_regex_, json.boolean_or("use_regex", true));
    return std::unique_ptr<PreTokenizer>(std::move(made));
  }

  Status apply(WordList& words) const override {
    if (add_prefix_space_) VKF_CHECK(add_prefix_spaces(words));
    if (use_regex_) {
      VKF_CHECK(words.cut([](std::u32string_view word, std::vector<CharSpan>& parts) -> Status {
        scan_words(WordPattern::kGpt2, word, parts);
        return {};
      }));
    }
    if (is_ascii(words.chars())) {
      for (char32_t& c : words.mutable_chars()) c = kCharOfByte[c];
      return {};
    }
    return words.rewrite_each([](const AlignedText& text, CharSpan word, AlignedText& out) {
      if (is_ascii(text.chars().substr(word.begin, word.end - word.begin))) {
        const size_t first = out.size();
        out.append(text, word.begin, word.end);
        for (char32_t& c : out.mutable_chars().subspan(first)) c = kCharOfByte[c];
        return Status();
      }
      for (uint32_t at = word.begin; at < word.end; ++at) {
        const ByteChars bytes = byte_chars(text.chars()[at]);
        for (size_t i = 0; i < bytes.count; ++i) out.append(bytes.chars[i], text.span(at));
      }
      return Status();
    });
  }

 private:
  // Every word gets a space in front that shares the range of its first character.
  static Status add_prefix_spaces(WordList& words) {
    return words.rewrite_each([](const AlignedText& text, CharSpan word, AlignedText& out) {
      if (text.chars()[word.begin] != U' ') out.append(U' ', text.span(word.begin));
      out.append(text, word.begin, word.end);
      return Status();
    });
  }

  bool add_prefix_space_ = true;
  bool use_regex_ = true;
};

class ByteLevelProcessor final : public PostProcessor {
 public:
  static Result<std::unique_ptr<PostProcessor>> parse(const JsonRef& json) {
    auto made = std::make_unique<ByteLevelProcessor>();
    VKF_ASSIGN(const bool prefix, json.boolean_or("add_prefix_space", true));
    made->prefix_space_ = prefix ? PrefixSpace::kAdded : PrefixSpace::kNotAdded;
    VKF_ASSIGN(made->trim_offsets_, json.boolean_or("trim_offsets", true));
    return std::unique_ptr<PostProcessor>(std::move(made));
  }

  size_t added_count(size_t) const override { return 0; }

  Result<std::vector<Encoding>> process(std::vector<Encoding> parts, SpecialTokens) const override {
    if (!trim_offsets_) return parts;
    for (Encoding& part : parts) trim_byte_level_offsets(part, prefix_space_);
    return parts;
  }

 private:
  PrefixSpace prefix_space_ = PrefixSpace::kAdded;
  bool trim_offsets_ = true;
};

// How many characters at the front of a token are white space, and at its back.
struct TokenSpaces {
  int32_t leading = 0;
  int32_t trailing = 0;
};

TokenSpaces spaces_of(std::string_view token) {
  TokenSpaces spaces;
  // Most tokens are ASCII at both ends, after at most one space.
  const auto is_inner = [](char c) { return c > ' ' && c < 0x7F; };
  const bool space = token.starts_with("\u0120");
  const size_t begin = space ? 2 : 0;
  if (begin < token.size() && is_inner(token[begin]) && is_inner(token.back())) {
    spaces.leading = space ? 1 : 0;
    return spaces;
  }
  // Tokens are UTF-8, as the file is.
  const auto chars = decode_utf8(token, "token");
  if (!chars) return spaces;
  const auto is_space = [](char32_t c) { return c == kSpaceChar || is_white_space(c); };
  const auto inner = std::find_if_not(chars->begin(), chars->end(), is_space);
  spaces.leading = static_cast<int32_t>(inner - chars->begin());
  const auto last = std::find_if_not(chars->rbegin(), chars->rend(), is_space);
  spaces.trailing = static_cast<int32_t>(last - chars->rbegin());
  return spaces;
}

}  // namespace

char32_t byte_level_char(uint8_t byte) {
  return kCharOfByte[byte];
}

std::optional<uint8_t> byte_level_byte(char32_t c) {
  if (c >= kByteOfChar.size() || kByteOfChar[c] < 0) return std::nullopt;
  return static_cast<uint8_t>(kByteOfChar[c]);
}

void trim_byte_level_offsets(Encoding& encoding, PrefixSpace prefix_space) {
  for (size_t i = 0; i < encoding.offsets.size(); ++i) {
    TextRange& range = encoding.offsets[i];
    TokenSpaces spaces = spaces_of(encoding.tokens[i]);
    // Several spaces cannot all have been put there.
    const bool is_first = i == 0 || range.begin == 0;
    if (is_first && spaces.leading == 1 && prefix_space == PrefixSpace::kAdded) spaces.leading = 0;
    range.begin = std::min(range.begin + spaces.leading, range.end);
    if (range.end >= spaces.trailing) {
      range.end = std::max(range.end - spaces.trailing, range.begin);
    }
  }
}

Result<std::unique_ptr<TextNormalizer>> parse_byte_level_normalizer(const JsonRef&, int) {
  return std::unique_ptr<TextNormalizer>(std::make_unique<ByteLevelNormalizer>());
}

Result<std::unique_ptr<PreTokenizer>> parse_byte_level_pre_tokenizer(const JsonRef& json, int) {
  return ByteLevelPreTokenizer::parse(json);
}

Result<std::unique_ptr<PostProcessor>> parse_byte_level_processor(const JsonRef& json, int) {
  return ByteLevelProcessor::parse(json);
}

}  // namespace vkformer
