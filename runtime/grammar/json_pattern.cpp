#include "grammar/json_pattern.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

constexpr uint64_t kUnlimited = UINT64_MAX;
constexpr int kMostPatternNesting = 50;
constexpr uint32_t kMostPatternRepeats = 2000;

using Ranges = std::vector<CharRange>;

uint64_t times(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > kUnlimited / b ? kUnlimited : a * b;
}
uint64_t plus(uint64_t a, uint64_t b) {
  return a > kUnlimited - b ? kUnlimited : a + b;
}

// \s and \S both omit the spaces that dialects of regular expressions do not agree on.
Ranges class_ranges(char32_t kind) {
  switch (kind) {
    case U'd':
      return {{U'0', U'9'}};
    case U'w':
      return normal_ranges({{U'0', U'9'}, {U'A', U'Z'}, {U'_', U'_'}, {U'a', U'z'}});
    case U's':
      return normal_ranges({{0x09, 0x0D}, {0x20, 0x20}});
    case U'S':
      return inverse_ranges(normal_ranges({{0x09, 0x0D},
                                           {0x1C, 0x20},
                                           {0x85, 0x85},
                                           {0xA0, 0xA0},
                                           {0x1680, 0x1680},
                                           {0x180E, 0x180E},
                                           {0x2000, 0x200B},
                                           {0x2028, 0x2029},
                                           {0x202F, 0x202F},
                                           {0x205F, 0x205F},
                                           {0x3000, 0x3000},
                                           {0xFEFF, 0xFEFF}}));
    default:
      return inverse_ranges(class_ranges(kind | 0x20));
  }
}

class PatternParser {
 public:
  PatternParser(std::u32string_view text, const std::string& place, GrammarTree& tree,
                JsonPieces& pieces)
      : text_(text), place_(place), tree_(tree), pieces_(pieces) {}

  Result<JsonText> parse() {
    VKF_ASSIGN(const JsonText whole, parse_choice(0));
    if (at_ < text_.size()) return error("has a ')' without its '('");
    return whole;
  }

 private:
  Error error(const std::string& complaint) const {
    return unsupported(
        message({"[", place_, "] The pattern ", complaint, " at character ", at_ + 1, "."}));
  }
  bool at_end() const { return at_ >= text_.size(); }
  char32_t peek() const { return at_end() ? U'\0' : text_[at_]; }
  bool take(char32_t c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  JsonText anything() {
    return {tree_.repeat(pieces_.character(), 0, GrammarTree::kNoLimit), 0, kUnlimited};
  }
  JsonText nothing() { return {tree_.sequence({}), 0, 0}; }
  JsonText both(const JsonText& a, const JsonText& b) {
    return {tree_.sequence({a.node, b.node}), plus(a.least, b.least), plus(a.most, b.most)};
  }

  // Alternatives; those of the whole expression match anywhere in a string but for ^ and $.
  Result<JsonText> parse_choice(int depth) {
    if (depth > kMostPatternNesting) return error("nests too many groups");
    std::vector<uint32_t> parts;
    JsonText out = {0, kUnlimited, 0};
    do {
      const bool from_start = depth == 0 && take(U'^');
      VKF_ASSIGN(JsonText part, parse_sequence(depth));
      const bool to_end = depth == 0 && take(U'$');
      if (depth == 0 && !from_start) part = both(anything(), part);
      if (depth == 0 && !to_end) part = both(part, anything());
      parts.push_back(part.node);
      out.least = std::min(out.least, part.least);
      out.most = std::max(out.most, part.most);
    } while (take(U'|'));
    out.node = tree_.choice(std::move(parts));
    return out;
  }

  Result<JsonText> parse_sequence(int depth) {
    JsonText out = nothing();
    while (!at_end() && peek() != U'|' && peek() != U')') {
      if (peek() == U'$' || peek() == U'^') {
        const bool ends =
            peek() == U'$' && depth == 0 && (at_ + 1 == text_.size() || text_[at_ + 1] == U'|');
        if (ends) break;
        return error("has a ^ or $ elsewhere than at its ends, which is not supported,");
      }
      VKF_ASSIGN(const JsonText atom, parse_atom(depth));
      VKF_ASSIGN(const JsonText part, parse_repeat(atom));
      out = both(out, part);
    }
    return out;
  }

  Result<JsonText> parse_atom(int depth) {
    if (take(U'(')) {
      if (take(U'?') && !take(U':')) {
        return error("has a group other than (...) and (?:...), which is not supported,");
      }
      VKF_ASSIGN(const JsonText inner, parse_choice(depth + 1));
      if (!take(U')')) return error("has a '(' without its ')'");
      return inner;
    }
    Ranges ranges;
    if (take(U'.')) {
      ranges = inverse_ranges(Ranges{{U'\n', U'\n'}, {U'\r', U'\r'}, {0x2028, 0x2029}});
    } else if (take(U'[')) {
      VKF_ASSIGN(ranges, parse_class());
    } else if (std::u32string_view(U"*+?{").find(peek()) != std::u32string_view::npos) {
      return error("repeats nothing");
    } else {
      VKF_ASSIGN(ranges, parse_char());
    }
    if (ranges.empty()) return error("has a class without characters");
    return JsonText{pieces_.character_of(ranges), 1, 1};
  }

  // One character, or one of a class such as \d.
  Result<Ranges> parse_char() {
    const char32_t c = text_[at_];
    ++at_;
    if (c != U'\\') return Ranges{{c, c}};
    if (at_end()) return error("ends with a backslash");
    const char32_t kind = text_[at_];
    ++at_;
    if (std::u32string_view(U"dwsDWS").find(kind) != std::u32string_view::npos) {
      return class_ranges(kind);
    }
    static constexpr std::u32string_view kNames = U"tnrvf";
    static constexpr std::u32string_view kValues = U"\t\n\r\v\f";
    const size_t found = kNames.find(kind);
    if (found != kNames.npos) return Ranges{{kValues[found], kValues[found]}};
    const size_t digits = kind == U'x' ? 2 : kind == U'u' ? 4 : 0;
    const bool is_letter = (kind >= U'a' && kind <= U'z') || (kind >= U'A' && kind <= U'Z');
    if (digits == 0) {
      if (is_letter || (kind >= U'0' && kind <= U'9')) {
        --at_;
        return error("has an escape that is not supported");
      }
      return Ranges{{kind, kind}};
    }
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const size_t digit = std::u32string_view(U"0123456789abcdefABCDEF").find(peek());
      if (at_end() || digit == std::u32string_view::npos) return error("has an incomplete escape");
      value = value * 16 + static_cast<char32_t>(digit < 16 ? digit : digit - 6);
    }
    return normal_ranges({{value, value}});
  }

  Result<Ranges> parse_class() {
    const bool inverse = take(U'^');
    Ranges ranges;
    while (!take(U']')) {
      if (at_end()) return error("has a '[' without its ']'");
      VKF_ASSIGN(const Ranges from, parse_char());
      ranges.insert(ranges.end(), from.begin(), from.end());
      const bool is_one = from.size() == 1 && from[0].first == from[0].last;
      if (!is_one || peek() != U'-' || at_ + 1 >= text_.size() || text_[at_ + 1] == U']') continue;
      ++at_;
      VKF_ASSIGN(const Ranges to, parse_char());
      if (to.size() != 1 || to[0].first != to[0].last || to[0].first < from[0].first) {
        return error("has a range of characters that ends before it begins");
      }
      ranges.push_back({from[0].first, to[0].first});
    }
    ranges = normal_ranges(std::move(ranges));
    return inverse ? inverse_ranges(ranges) : ranges;
  }

  Result<uint32_t> parse_count() {
    const size_t begin = at_;
    uint32_t count = 0;
    for (; peek() >= U'0' && peek() <= U'9' && count <= kMostPatternRepeats; ++at_) {
      count = count * 10 + static_cast<uint32_t>(peek() - U'0');
    }
    if (at_ == begin) return error("has a '{' without a number of repeats");
    if (count > kMostPatternRepeats) {
      return error("repeats more often than the limit of " + std::to_string(kMostPatternRepeats));
    }
    return count;
  }

  Result<JsonText> parse_repeat(const JsonText& part) {
    uint32_t least = 0;
    uint32_t most = GrammarTree::kNoLimit;
    if (take(U'+')) {
      least = 1;
    } else if (take(U'?')) {
      most = 1;
    } else if (take(U'{')) {
      VKF_ASSIGN(least, parse_count());
      most = least;
      if (take(U',')) {
        most = GrammarTree::kNoLimit;
        if (peek() != U'}') {
          VKF_ASSIGN(most, parse_count());
        }
      }
      if (!take(U'}') || most < least) return error("has an impossible repetition");
    } else if (!take(U'*')) {
      return part;
    }
    take(U'?');  // as many or as few as possible: the same strings
    const uint64_t limit = most == GrammarTree::kNoLimit ? kUnlimited : most;
    return JsonText{tree_.repeat(part.node, least, most), times(part.least, least),
                    times(part.most, limit)};
  }

  std::u32string_view text_;
  const std::string& place_;
  GrammarTree& tree_;
  JsonPieces& pieces_;
  size_t at_ = 0;
};

}  // namespace

Result<JsonText> parse_json_pattern(std::string_view pattern, const std::string& place,
                                    GrammarTree& tree, JsonPieces& pieces) {
  VKF_ASSIGN(const auto chars, decode_utf8(pattern, "pattern"));
  return PatternParser(chars, place, tree, pieces).parse();
}

}  // namespace vkformer
