#include "grammar/gbnf.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/message.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

constexpr size_t kMostGbnfBytes = 4u << 20;
constexpr size_t kMostRules = 20000;
constexpr int kMostGbnfNesting = 100;
// Repetitions of a repetition, such as those of "a"*+?.
constexpr int kMostStacked = 10;
constexpr uint32_t kMostGbnfRepeats = 10000;

constexpr char32_t kQuote = 0x22;
constexpr char32_t kOpen = 0x28;
constexpr char32_t kClose = 0x29;
constexpr char32_t kOpenCount = 0x7B;
constexpr char32_t kCloseCount = 0x7D;

bool is_name_char(char32_t c) {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'0' && c <= U'9') ||
         c == U'-' || c == U'_';
}

int hex_value(char32_t c) {
  if (c >= U'0' && c <= U'9') return static_cast<int>(c - U'0');
  if (c >= U'a' && c <= U'f') return static_cast<int>(c - U'a') + 10;
  return c >= U'A' && c <= U'F' ? static_cast<int>(c - U'A') + 10 : -1;
}

class GbnfParser {
 public:
  GbnfParser(std::u32string_view text, GrammarTree& tree) : text_(text), tree_(tree) {}

  Status parse(const std::string& root) {
    VKF_CHECK(skip_space(Lines::kCross));
    while (!at_end()) VKF_CHECK(parse_rule());
    for (size_t i = 0; i < tree_.rules.size(); ++i) {
      if (defined_[i]) continue;
      return invalid_argument(
          message({"[", tree_.rules[i].name, "] is used in ", tree_.rules[i].place,
                   " of the grammar, but no rule has this name; add one, `", tree_.rules[i].name,
                   " ::= ...`."}));
    }
    const auto found = indices_.find(root);
    if (found == indices_.end()) {
      return invalid_argument(
          message({"[", root, "] is not a rule of the grammar, which has ", tree_.rules.size(),
                   " rules; the whole text must match one of this name."}));
    }
    tree_.root = found->second;
    return {};
  }

 private:
  enum class Lines : uint8_t { kStay, kCross };

  bool at_end() const { return at_ >= text_.size(); }
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : U'\0';
  }

  // Counts on from where it was asked for last.
  std::string place() {
    for (; counted_ < at_ && counted_ < text_.size(); ++counted_) {
      if (text_[counted_] != U'\n') continue;
      ++line_;
      line_begin_ = counted_ + 1;
    }
    return "line " + std::to_string(line_) + ", column " + std::to_string(at_ - line_begin_ + 1);
  }
  Error error(const std::string& complaint) {
    return invalid_argument(message({"[grammar] ", place(), ": ", complaint}));
  }
  // What stands here, for messages.
  std::string shown() const {
    if (at_end()) return "the end of the grammar";
    const char32_t c = peek();
    if (c == U'\n' || c == U'\r') return "the end of the line";
    return "'" + (c < 0x20 ? std::string("?") : encode_utf8(text_.substr(at_, 1))) + "'";
  }

  Status skip_space(Lines lines) {
    while (!at_end()) {
      const char32_t c = peek();
      if (c == U'#') {
        while (!at_end() && peek() != U'\n') ++at_;
      } else if (c == U' ' || c == U'\t' ||
                 (lines == Lines::kCross && (c == U'\n' || c == U'\r'))) {
        ++at_;
      } else if (lines == Lines::kStay && (c == U'\n' || c == U'\r')) {
        // A line that begins with `|` carries the rule on.
        size_t next = at_;
        while (next < text_.size() &&
               std::u32string_view(U" \t\r\n").find(text_[next]) != std::u32string_view::npos) {
          ++next;
        }
        if (next >= text_.size() || text_[next] != U'|') break;
        at_ = next;
      } else {
        break;
      }
    }
    return {};
  }

  Result<std::string> parse_name() {
    const size_t begin = at_;
    while (!at_end() && is_name_char(peek())) ++at_;
    if (at_ == begin) {
      return error("expected the name of a rule (letters, digits, - and _), but found " + shown() +
                   ".");
    }
    return encode_utf8(text_.substr(begin, at_ - begin));
  }

  Result<uint32_t> rule_index(const std::string& name) {
    const auto [found, is_new] = indices_.emplace(name, static_cast<uint32_t>(tree_.rules.size()));
    if (is_new) {
      if (tree_.rules.size() >= kMostRules) {
        return error("the grammar has more than " + std::to_string(kMostRules) +
                     " rules; make it smaller.");
      }
      tree_.add_rule(name, place(), 0);
      defined_.push_back(false);
    }
    return found->second;
  }

  Status parse_rule() {
    const std::string where = place();
    VKF_ASSIGN(const std::string name, parse_name());
    VKF_ASSIGN(const uint32_t index, rule_index(name));
    if (defined_[index]) {
      return invalid_argument(
          message({"[", name, "] is defined in ", tree_.rules[index].place, " and again in ", where,
                   " of the grammar; join both with `|` or rename one."}));
    }
    tree_.rules[index].place = where;
    defined_[index] = true;
    VKF_CHECK(skip_space(Lines::kStay));
    if (text_.substr(at_, 3) != U"::=") {
      return error("expected ::= after the rule's name [" + name + "], but found " + shown() + ".");
    }
    at_ += 3;
    VKF_CHECK(skip_space(Lines::kCross));
    VKF_ASSIGN(const uint32_t body, parse_choice(0));
    tree_.rules[index].body = body;
    if (!at_end() && peek() != U'\n' && peek() != U'\r') {
      return error("expected the rule's end, but found " + shown() + ".");
    }
    return skip_space(Lines::kCross);
  }

  // Alternatives, up to a closing bracket or the line's end.
  Result<uint32_t> parse_choice(int depth) {
    if (depth > kMostGbnfNesting) {
      return error("brackets nest deeper than the limit of " + std::to_string(kMostGbnfNesting) +
                   "; give the inner ones a rule of their own.");
    }
    std::vector<uint32_t> parts;
    while (true) {
      VKF_ASSIGN(const uint32_t part, parse_sequence(depth));
      parts.push_back(part);
      if (at_end() || peek() != U'|') break;
      ++at_;
      VKF_CHECK(skip_space(Lines::kCross));
    }
    return tree_.choice(std::move(parts));
  }

  Result<uint32_t> parse_sequence(int depth) {
    const Lines lines = depth > 0 ? Lines::kCross : Lines::kStay;
    std::vector<uint32_t> parts;
    int stacked = 0;
    while (!at_end()) {
      const char32_t c = peek();
      if (c == U'*' || c == U'+' || c == U'?' || c == kOpenCount) {
        if (parts.empty()) return error(shown() + " has nothing in front that it could repeat.");
        if (++stacked > kMostStacked) {
          return error("one part has more than the limit of " + std::to_string(kMostStacked) +
                       " repetitions after it; write them as one.");
        }
        VKF_ASSIGN(parts.back(), parse_repeat(parts.back()));
      } else if (is_name_char(c) ||
                 std::u32string_view(U"\"[.(<!").find(c) != std::u32string_view::npos) {
        VKF_ASSIGN(const uint32_t part, parse_part(depth));
        stacked = 0;
        parts.push_back(part);
      } else {
        break;
      }
      VKF_CHECK(skip_space(lines));
    }
    return tree_.sequence(std::move(parts));
  }

  Result<uint32_t> parse_part(int depth) {
    const char32_t c = peek();
    if (c == kQuote) return parse_literal();
    if (c == U'[') return parse_class();
    if (c == U'.') {
      ++at_;
      return tree_.chars({{0, GrammarTree::kLastChar}});
    }
    if (c == kOpen) {
      ++at_;
      VKF_CHECK(skip_space(Lines::kCross));
      VKF_ASSIGN(const uint32_t node, parse_choice(depth + 1));
      if (peek() != kClose) return error("expected ')', but found " + shown() + ".");
      ++at_;
      return node;
    }
    if (c == U'<' || c == U'!') {
      return error("tokens by name or number (<...>) are not supported; write their text.");
    }
    VKF_ASSIGN(const std::string name, parse_name());
    VKF_ASSIGN(const uint32_t index, rule_index(name));
    return tree_.rule(index);
  }

  // A number of repeats, or nothing where no digit stands.
  Result<uint32_t> parse_count() {
    const size_t begin = at_;
    uint32_t count = 0;
    while (peek() >= U'0' && peek() <= U'9') {
      count = count * 10 + static_cast<uint32_t>(peek() - U'0');
      ++at_;
      if (count > kMostGbnfRepeats) {
        return error("a repetition goes beyond the limit of " + std::to_string(kMostGbnfRepeats) +
                     "; use * or + for one without a limit.");
      }
    }
    if (at_ == begin) return error("expected a number of repeats, but found " + shown() + ".");
    return count;
  }

  Result<uint32_t> parse_repeat(uint32_t part) {
    const char32_t c = peek();
    ++at_;
    if (c == U'*') return tree_.repeat(part, 0, GrammarTree::kNoLimit);
    if (c == U'+') return tree_.repeat(part, 1, GrammarTree::kNoLimit);
    if (c == U'?') return tree_.repeat(part, 0, 1);
    VKF_CHECK(skip_space(Lines::kStay));
    VKF_ASSIGN(const uint32_t least, parse_count());
    uint32_t most = least;
    VKF_CHECK(skip_space(Lines::kStay));
    if (peek() == U',') {
      ++at_;
      VKF_CHECK(skip_space(Lines::kStay));
      most = GrammarTree::kNoLimit;
      if (peek() != kCloseCount) {
        VKF_ASSIGN(most, parse_count());
        VKF_CHECK(skip_space(Lines::kStay));
      }
    }
    if (peek() != kCloseCount) return error("expected '}', but found " + shown() + ".");
    if (most < least) {
      return error("a repetition from " + std::to_string(least) + " to " + std::to_string(most) +
                   " is impossible; the second number must not be smaller.");
    }
    ++at_;
    return tree_.repeat(part, least, most);
  }

  // A character of a literal or class, or an escape for one.
  Result<char32_t> parse_char() {
    if (peek() != U'\\') return text_[at_++];
    const char32_t kind = peek(1);
    const size_t digits = kind == U'x' ? 2 : kind == U'u' ? 4 : kind == U'U' ? 8 : 0;
    if (digits == 0) {
      static constexpr std::u32string_view kNames = U"nrt\\\"[]-^";
      static constexpr std::u32string_view kValues = U"\n\r\t\\\"[]-^";
      const size_t found = at_ + 1 < text_.size() ? kNames.find(kind) : kNames.npos;
      if (found == kNames.npos) {
        return error(
            "unknown escape; \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH and \\UHHHHHHHH "
            "are "
            "known.");
      }
      at_ += 2;
      return kValues[found];
    }
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      const int digit = at_ + 2 + i < text_.size() ? hex_value(peek(2 + i)) : -1;
      if (digit < 0) {
        return error("an escape needs " + std::to_string(digits) + " hexadecimal digits.");
      }
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > GrammarTree::kLastChar || (value >= 0xD800 && value <= 0xDFFF)) {
      return error(
          "an escape stands for no Unicode character; surrogates and values above 10FFFF "
          "cannot be matched.");
    }
    at_ += 2 + digits;
    return value;
  }

  Result<uint32_t> parse_literal() {
    ++at_;
    std::string bytes;
    while (peek() != kQuote) {
      if (at_end() || peek() == U'\n') return error("a literal has no closing quote.");
      VKF_ASSIGN(const char32_t c, parse_char());
      append_utf8(bytes, c);
    }
    ++at_;
    return tree_.literal(bytes);
  }

  Result<uint32_t> parse_class() {
    ++at_;
    const bool inverse = peek() == U'^';
    if (inverse) ++at_;
    std::vector<CharRange> ranges;
    while (peek() != U']') {
      if (at_end() || peek() == U'\n') return error("a character class has no closing bracket.");
      VKF_ASSIGN(const char32_t first, parse_char());
      char32_t last = first;
      if (peek() == U'-' && at_ + 1 < text_.size() && peek(1) != U']') {
        ++at_;
        if (peek() == U'\n') return error("a character class has no closing bracket.");
        VKF_ASSIGN(last, parse_char());
        if (last < first) return error("a range of characters ends before it begins.");
      }
      ranges.push_back({first, last});
    }
    ranges = normal_ranges(std::move(ranges));
    if (inverse) ranges = inverse_ranges(ranges);
    if (ranges.empty()) {
      return error("a character class holds no character, so that nothing can match it.");
    }
    ++at_;
    return tree_.chars(std::move(ranges));
  }

  std::u32string_view text_;
  size_t at_ = 0;
  size_t counted_ = 0;  // characters whose lines are in line_
  size_t line_ = 1;
  size_t line_begin_ = 0;
  GrammarTree& tree_;
  std::vector<bool> defined_;  // by rule
  std::unordered_map<std::string, uint32_t> indices_;
};

}  // namespace

Result<GrammarTree> parse_gbnf(std::string_view text, const std::string& root) {
  if (text.size() > kMostGbnfBytes) {
    return invalid_argument(
        message({"[grammar] has ", text.size(), " bytes; the limit is ", kMostGbnfBytes, "."}));
  }
  VKF_ASSIGN(const auto chars, decode_utf8(text, "grammar"));
  GrammarTree tree;
  VKF_CHECK(GbnfParser(chars, tree).parse(root));
  return tree;
}

}  // namespace vkformer
