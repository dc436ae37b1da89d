#include "chat/template_lexer.h"

#include <algorithm>
#include <array>

#include "chat/fault.h"
#include "unicode/utf8.h"

namespace vkformer::chat {
namespace {

using TokenKind = Token::Kind;

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) ||
         static_cast<unsigned char>(c) >= 0x80;
}

// All line breaks as "\n", and without one at the end.
std::string normal_lines(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normal_lines(source)) {}

  std::vector<Token> cut() {
    while (at_ < source_.size()) cut_text();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view text) const {
    return std::string_view(source_).substr(at_).starts_with(text);
  }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void advance_to(size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }
  void skip_space() {
    size_t end = at_;
    while (end < source_.size() && is_space(source_[end])) ++end;
    advance_to(end);
  }

  size_t next_tag() const {
    size_t at = at_;
    while ((at = source_.find('{', at)) != source_.npos) {
      if (at + 1 < source_.size() &&
          std::string_view("{%#").find(source_[at + 1]) != std::string_view::npos) {
        return at;
      }
      ++at;
    }
    return source_.size();
  }

  // Text up to a tag without what the tag's sign or lstrip_blocks takes off, and the tag.
  void cut_text() {
    const size_t tag = next_tag();
    std::string text = source_.substr(at_, tag - at_);
    const bool has_tag = tag < source_.size();
    const char kind = has_tag ? source_[tag + 1] : '\0';
    char sign = has_tag && tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (sign != '-' && sign != '+') sign = '\0';
    if (sign == '-') {
      while (!text.empty() && is_space(text.back())) text.pop_back();
    } else if (has_tag && sign == '\0' && kind != '{') {
      const size_t line = text.rfind('\n') + 1;  // 0 without a line break
      const bool begins_line = line > 0 || starts_line_;
      if (begins_line &&
          std::all_of(text.begin() + static_cast<std::ptrdiff_t>(line), text.end(), is_space)) {
        text.resize(line);
      }
    }
    if (!text.empty()) add(TokenKind::kText, std::move(text));
    advance_to(tag);
    if (!has_tag) return;
    at_ += sign == '\0' ? 2 : 3;
    if (kind == '#') return cut_comment();
    if (kind == '%' && cut_raw()) return;
    add(kind == '{' ? TokenKind::kOutputBegin : TokenKind::kBlockBegin, "");
    cut_tag(kind == '{');
  }

  // After the end of a tag: white space after "-", else one line break unless the tag is an output
  // or has a "+".
  void end_tag(char sign, bool is_output) {
    starts_line_ = false;
    if (sign == '-') {
      const size_t before = at_;
      skip_space();
      starts_line_ = at_ > before && source_[at_ - 1] == '\n';
    } else if (sign != '+' && !is_output && starts("\n")) {
      advance_to(at_ + 1);
      starts_line_ = true;
    }
  }

  void cut_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) fail("a comment has no end.", line_);
    const char sign = end > at_ ? source_[end - 1] : '\0';
    advance_to(end + 2);
    end_tag(sign, false);
  }

  // {% raw %} and the text up to {% endraw %}.
  bool cut_raw() {
    const size_t begin = at_;
    skip_space();
    if (!starts("raw") || (at_ + 3 < source_.size() && is_name_char(source_[at_ + 3]))) {
      at_ = begin;
      return false;
    }
    at_ += 3;
    skip_space();
    char sign = starts("-") || starts("+") ? source_[at_] : '\0';
    at_ += sign == '\0' ? 0 : 1;
    if (!starts("%}")) fail("expected %} after raw.", line_);
    at_ += 2;
    end_tag(sign, false);
    size_t end = at_;
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != source_.npos; ++tag) {
      end = tag + 2;
      const bool strips = end < source_.size() && source_[end] == '-';
      if (strips) ++end;
      while (end < source_.size() && is_space(source_[end])) ++end;
      if (source_.compare(end, 6, "endraw") != 0) continue;
      std::string text = source_.substr(at_, tag - at_);
      while (strips && !text.empty() && is_space(text.back())) text.pop_back();
      if (!text.empty()) add(TokenKind::kText, std::move(text));
      advance_to(end + 6);
      skip_space();
      sign = starts("-") || starts("+") ? source_[at_] : '\0';
      at_ += sign == '\0' ? 0 : 1;
      if (!starts("%}")) fail("expected %} after endraw.", line_);
      at_ += 2;
      end_tag(sign, false);
      return true;
    }
    fail("raw has no endraw.", line_);
  }

  void cut_tag(bool is_output) {
    const std::string_view end = is_output ? "}}" : "%}";
    std::string open;  // brackets that are open: a dict may end with }}
    while (true) {
      skip_space();
      if (at_ >= source_.size()) fail("a tag has no end.", line_);
      const char sign = (starts("-") || starts("+")) ? source_[at_] : '\0';
      const size_t signs = sign == '\0' ? 0 : 1;
      if (open.empty() && source_.compare(at_ + signs, 2, end) == 0 &&
          (sign != '+' || !is_output)) {
        add(is_output ? TokenKind::kOutputEnd : TokenKind::kBlockEnd, "");
        at_ += signs + 2;
        return end_tag(sign, is_output);
      }
      cut_token(open);
    }
  }

  void cut_token(std::string& open) {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return cut_string(c);
    if (is_digit(c)) return cut_number();
    if (is_name_char(c)) {
      size_t end = at_;
      while (end < source_.size() && is_name_char(source_[end])) ++end;
      add(TokenKind::kName, source_.substr(at_, end - at_));
      at_ = end;
      return;
    }
    static constexpr std::array kOperators = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "*",
                                              "/",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                              ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const char* text : kOperators) {
      if (!starts(text)) continue;
      if (std::string_view("[({").find(c) != std::string_view::npos) open += c;
      if (std::string_view("])}").find(c) != std::string_view::npos) {
        if (open.empty()) fail(std::string("'") + c + "' closes nothing.", line_);
        open.pop_back();
      }
      add(TokenKind::kOperator, text);
      at_ += std::string_view(text).size();
      return;
    }
    fail("a tag holds a character that no expression has.", line_);
  }

  void cut_number() {
    size_t end = at_;
    bool is_float = false;
    const auto digits = [&] {
      while (end < source_.size() && (is_digit(source_[end]) || source_[end] == '_')) ++end;
    };
    const auto digit_at = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
    digits();
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      is_float = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const bool has_sign =
          end + 1 < source_.size() && (source_[end + 1] == '-' || source_[end + 1] == '+');
      if (digit_at(end + (has_sign ? 2 : 1))) {
        is_float = true;
        end += has_sign ? 2 : 1;
        digits();
      }
    }
    std::string text = source_.substr(at_, end - at_);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(text));
    at_ = end;
  }

  // Python's escapes; unknown ones stay as they are.
  void cut_string(char quote) {
    const int line = line_;
    size_t at = at_ + 1;
    std::string text;
    for (; at < source_.size() && source_[at] != quote; ++at) {
      if (source_[at] != '\\' || at + 1 >= source_.size()) {
        text += source_[at];
        continue;
      }
      const char kind = source_[++at];
      static constexpr std::string_view kNames = "ntr\\'\"abfv\n";
      static constexpr std::string_view kValues = "\n\t\r\\'\"\a\b\f\v";
      const size_t found = kNames.find(kind);
      const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
      if (found < kValues.size()) {
        text += kValues[found];
      } else if (digits > 0) {
        append_utf8(text, code_point(at + 1, digits));
        at += digits;
      } else if (kind != '\n') {
        text += {'\\', kind};
      }
    }
    if (at >= source_.size()) fail("a string has no end.", line);
    advance_to(at + 1);
    tokens_.push_back({TokenKind::kString, std::move(text), line});
  }

  char32_t code_point(size_t at, size_t digits) const {
    char32_t value = 0;
    for (size_t i = at; i < at + digits; ++i) {
      const char c = i < source_.size() ? source_[i] : '\0';
      const size_t digit = std::string_view("0123456789abcdefABCDEF").find(c);
      if (c == '\0' || digit == std::string_view::npos) fail("a string has a bad escape.", line_);
      value = value * 16 + static_cast<char32_t>(digit < 16 ? digit : digit - 6);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      fail("an escape stands for no character.", line_);
    }
    return value;
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;  // whether the tag before ended with a line break
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> cut_template(std::string_view source) {
  return Lexer(source).cut();
}

}  // namespace vkformer::chat
