#include "unicode/regex_tree.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/message.h"
#include "base/utf8_step.h"
#include "unicode/unicode_tables.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

using Kind = RegexNode::Kind;
using Mode = RegexNode::Mode;
using Range = CharSet::Range;

constexpr size_t kMaxPatternBytes = 64 * 1024;
constexpr int kMaxDepth = 200;
constexpr size_t kMaxSets = 1024;         // beside those of one character
constexpr uint32_t kMaxRepeat = 65535;    // PCRE2's
constexpr int kMaxRepeats = 16;           // one after the other
constexpr size_t kLongestPosixName = 20;  // Oniguruma looks no further for ":]"

// Single characters that \w, \W, \b and \p{Word} take for words, but only outside of brackets.
// Oniguruma looks up the characters of Latin-1 in a separate table there.
CharSet word_extras() {
  return CharSet({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}});
}

RegexNode node_of(Kind kind, std::string text = {}) {
  RegexNode node;
  node.kind = kind;
  node.text = std::move(text);
  return node;
}
RegexNode node_of(Kind kind, std::string text, RegexNode part) {
  RegexNode node = node_of(kind, std::move(text));
  node.parts.push_back(std::move(part));
  return node;
}

// Letters in parentheses: (?i), (?m) and (?x).
struct Flags {
  bool ignores_case = false;
  bool dot_takes_newline = false;
  bool extended = false;
};

class Parser {
 public:
  Parser(std::u32string_view pattern, const std::string& source, const std::string& where)
      : in_(pattern), source_(source), where_(where) {}

  Result<RegexTree> run() {
    find_names();
    VKF_ASSIGN(tree_.root, parse_choice(Flags(), 0));
    if (at_ < in_.size()) return wrong("closes a group that is not open");
    return std::move(tree_);
  }

 private:
  Error refuse(const std::string& what) const {
    return unsupported(
        message({"[", where_, "] The regular expression [", source_, "] uses ", what,
                 " at character ", at_, ", which this build cannot match faithfully."}));
  }
  Error wrong(const std::string& what) const {
    return invalid_file(message({"[", where_, "] The regular expression [", source_,
                                 "] does not compile: it ", what, " at character ", at_, "."}));
  }

  bool is_end() const { return at_ >= in_.size(); }
  char32_t peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : 0; }
  bool starts(std::u32string_view text) const { return in_.substr(at_).starts_with(text); }
  bool take(std::u32string_view text) {
    if (!starts(text)) return false;
    at_ += text.size();
    return true;
  }

  // Named groups make plain ones non-capturing. Brackets and escapes are not looked at closely:
  // what is not named that way in earnest loses a number that no pattern asks for.
  void find_names() {
    for (size_t i = 0; i + 3 < in_.size(); ++i) {
      if (in_[i] == '\\') {
        ++i;
      } else if (in_.substr(i, 3) == U"(?<" && in_[i + 3] != '=' && in_[i + 3] != '!') {
        has_names_ = true;
      } else if (in_.substr(i, 3) == U"(?'") {
        has_names_ = true;
      }
    }
  }

  // --- Sets.

  Result<RegexNode> set_node(CharSet set) {
    const auto known = set_numbers_.find(set);
    RegexNode node = node_of(Kind::kSet);
    if (known != set_numbers_.end()) {
      node.set = known->second;
      return node;
    }
    if (set.ranges().size() > 1 && ++large_sets_ > kMaxSets) {
      return unsupported(message({"[", where_, "] The regular expression has more than ", kMaxSets,
                                  " different character sets, which is the limit."}));
    }
    node.set = static_cast<uint32_t>(tree_.sets.size());
    tree_.sets.push_back(set);
    set_numbers_.emplace(std::move(set), node.set);
    return node;
  }

  Result<RegexNode> char_node(char32_t c, const Flags& flags) {
    const CharSet set({{c, c}});
    return set_node(flags.ignores_case ? without_case(set) : set);
  }

  const std::optional<CharSet>& find_property(const std::string& name) {
    const auto [found, is_new] = properties_.try_emplace(name);
    if (is_new) found->second = property_set(name);
    return found->second;
  }
  // Precondition: a known name.
  const CharSet& property(const std::string& name) { return *find_property(name); }

  // What \w and the like stand for; nothing for other letters.
  std::optional<CharSet> letter_class(char32_t letter, bool in_brackets) {
    switch (letter) {
      case 'w':
        return in_brackets ? property("word") : property("word").united(word_extras());
      case 'd':
        return property("digit");
      case 's':
        return property("space");
      case 'h':
        return property("xdigit");
      case 'W':
      case 'D':
      case 'S':
      case 'H':
        return letter_class(letter + 0x20, in_brackets)->inverted();
      default:
        return std::nullopt;
    }
  }

  // \p{...} or \P{...}, from the letter on.
  Result<CharSet> parse_property(bool in_brackets) {
    bool negated = peek() == 'P';
    ++at_;
    if (!take(U"{")) {
      return refuse(
          "\\p without braces, whose meaning depends on the version of Oniguruma; "
          "\\p{L} would be clear");
    }
    const size_t close = in_.find('}', at_);
    if (close == in_.npos) return wrong("has a \\p{ without an end");
    if (take(U"^")) negated = !negated;
    const std::string name = encode_utf8(in_.substr(at_, close - at_));
    const std::optional<CharSet>& known = find_property(name);
    if (!known) return refuse("the property [" + name + "]");
    at_ = close + 1;
    CharSet set = *known;
    if (!in_brackets && set == property("word")) set = set.united(word_extras());
    return negated ? set.inverted() : set;
  }

  // --- Single characters.

  static uint32_t digit_of(char32_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char32_t low = c | 0x20;
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : 16;
  }
  // Up to `most` digits of a base; nothing if there is none.
  std::optional<uint32_t> take_number(uint32_t base, size_t most) {
    uint64_t value = 0;
    size_t count = 0;
    for (; count < most && digit_of(peek()) < base; ++count) {
      value = std::min<uint64_t>(value * base + digit_of(peek()), UINT32_MAX);
      ++at_;
    }
    return count > 0 ? std::optional(static_cast<uint32_t>(value)) : std::nullopt;
  }

  Result<char32_t> checked(uint32_t c) {
    if (c > CharSet::kLast || (c >= 0xD800 && c < 0xE000)) {
      return wrong("names a character that Unicode does not have");
    }
    return static_cast<char32_t>(c);
  }

  // \xHH and \ooo are bytes of UTF-8: from 0x80 on, several of them make a character.
  Result<char32_t> parse_bytes(uint32_t first) {
    if (first > 0xFF) return wrong("has an octal number beyond a byte");
    if (first < 0x80) return static_cast<char32_t>(first);
    std::string bytes(1, static_cast<char>(first));
    while (bytes.size() < 4 && !utf8_step(bytes).valid && take(U"\\x")) {
      const auto next = take_number(16, 2);
      if (!next) return wrong("has a \\x without digits");
      bytes += static_cast<char>(*next);
    }
    const Utf8Step step = utf8_step(bytes);
    if (!step.valid || step.length != bytes.size()) {
      return wrong("has bytes that are no character of UTF-8");
    }
    return utf8_value(bytes, step.length);
  }

  Result<char32_t> parse_braced(uint32_t base) {
    const auto value = take_number(base, 12);
    if (!value || !take(U"}")) {
      return refuse("a character by its number other than with one number in braces");
    }
    return checked(*value);
  }

  // A character after a backslash. `at_` is at the letter.
  Result<char32_t> parse_escaped_char(bool in_brackets) {
    const char32_t letter = in_[at_++];
    switch (letter) {
      case 't':
        return U'\t';
      case 'n':
        return U'\n';
      case 'r':
        return U'\r';
      case 'f':
        return U'\f';
      case 'v':
        return U'\v';
      case 'a':
        return U'\a';
      case 'e':
        return char32_t{0x1B};
      case 'x': {
        if (take(U"{")) return parse_braced(16);
        const auto value = take_number(16, 2);
        if (!value) return wrong("has a \\x without digits");
        return parse_bytes(*value);
      }
      case 'o':
        if (take(U"{")) return parse_braced(8);
        return letter;
      case 'u': {
        const size_t begin = at_;
        const auto value = take_number(16, 4);
        if (!value || at_ != begin + 4) return wrong("has a \\u without four digits");
        return checked(*value);
      }
      case 'c':
      case 'C': {
        if (letter == 'C' && !take(U"-")) return wrong("has a \\C without \"-\"");
        if (is_end() || peek() == '\\') return refuse("a control character by an escape");
        const char32_t c = in_[at_++];
        return c == '?' ? char32_t{0x7F} : c & 0x9F;
      }
      case 'M':
        return refuse("\\M");
      case 'b':
        if (in_brackets) return U'\b';
        return letter;
      default:
        if (letter >= '0' && letter <= '7') {
          --at_;
          return parse_bytes(*take_number(8, 3));
        }
        return letter;
    }
  }

  // --- Brackets.

  // What one item of a bracket adds: a character, which a range may begin with, or a set.
  struct Item {
    std::optional<char32_t> c;
    CharSet set;
  };

  Result<Item> parse_escape_in_brackets() {
    ++at_;
    if (is_end()) return wrong("ends with a backslash");
    const char32_t letter = peek();
    if (letter == 'p' || letter == 'P') {
      VKF_ASSIGN(auto set, parse_property(true));
      return Item{std::nullopt, std::move(set)};
    }
    if (auto set = letter_class(letter, true)) {
      ++at_;
      return Item{std::nullopt, std::move(*set)};
    }
    VKF_ASSIGN(const char32_t c, parse_escaped_char(true));
    return Item{c, {}};
  }

  // [:name:] at `at_`; nothing if it is a bracket within a bracket after all.
  Result<std::optional<CharSet>> parse_posix() {
    const size_t close = in_.find(U":]", at_ + 2);
    if (close == in_.npos || close - at_ - 2 > kLongestPosixName) return std::optional<CharSet>();
    std::string name = encode_utf8(in_.substr(at_ + 2, close - at_ - 2));
    const bool negated = name.starts_with('^');
    if (negated) name.erase(0, 1);
    static constexpr std::string_view kNames =
        " alnum alpha blank cntrl digit graph lower print punct space upper xdigit ascii word ";
    if (name.empty() || kNames.find(" " + name + " ") == kNames.npos) {
      return wrong("has a POSIX bracket of an unknown name");
    }
    at_ = close + 2;
    CharSet set = property(name == "punct" ? "posixpunct" : name);
    return std::optional(negated ? set.inverted() : std::move(set));
  }

  Result<Item> parse_item(int depth) {
    if (peek() == '\\') return parse_escape_in_brackets();
    if (peek() == '[') {
      if (starts(U"[:")) {
        VKF_ASSIGN(auto posix, parse_posix());
        if (posix) return Item{std::nullopt, std::move(*posix)};
      }
      VKF_ASSIGN(auto set, parse_brackets(depth + 1, Flags()));
      return Item{std::nullopt, std::move(set)};
    }
    return Item{in_[at_++], {}};
  }

  // "[...]" at `at_`. Ranges bind closest, then what stands side by side, then "&&", then "^".
  Result<CharSet> parse_brackets(int depth, const Flags& flags) {
    if (depth > kMaxDepth) return refuse("brackets nested too deeply");
    ++at_;
    const bool negated = take(U"^");
    std::optional<CharSet> both;  // of the sides of "&&" so far
    std::vector<Range> side;
    const auto end_side = [&] {
      CharSet set(std::exchange(side, {}));
      both = both ? both->intersected(set) : std::move(set);
    };
    bool is_first = true;
    for (;; is_first = false) {
      if (is_end()) return wrong("has a bracket without an end");
      if (peek() == ']') {
        if (!is_first) break;
        if (in_.find(']', at_ + 1) == in_.npos) return wrong("has an empty bracket");
      }
      if (take(U"&&")) {
        end_side();
        continue;
      }
      VKF_ASSIGN(Item item, is_first && peek() == ']' ? take_char() : parse_item(depth));
      const bool is_range = peek() == '-' && at_ + 1 < in_.size() && peek(1) != ']';
      if (!is_range) {
        add(item, side);
        continue;
      }
      VKF_CHECK(parse_range(item, depth, side));
    }
    ++at_;
    end_side();
    CharSet set = flags.ignores_case ? without_case(*both) : std::move(*both);
    return negated ? set.inverted() : set;
  }

  Result<Item> take_char() { return Item{in_[at_++], {}}; }

  static void add(const Item& item, std::vector<Range>& side) {
    if (item.c) side.push_back({*item.c, *item.c});
    const auto ranges = item.set.ranges();
    side.insert(side.end(), ranges.begin(), ranges.end());
  }

  // What follows `item` begins with "-".
  Status parse_range(const Item& item, int depth, std::vector<Range>& side) {
    if (!item.c) {
      // After a class the sign is a character, where Oniguruma takes it at all.
      if (peek(1) == '&' && peek(2) == '&') {
        add(item, side);
        return {};
      }
      return wrong("has a range that begins with a class");
    }
    ++at_;
    if (starts(U"&&")) {
      add(item, side);
      side.push_back({'-', '-'});
      return {};
    }
    VKF_ASSIGN(const Item last, parse_item(depth));
    if (!last.c) return wrong("has a range that ends with a class");
    if (*last.c < *item.c) return wrong("has a range that ends before it begins");
    side.push_back({*item.c, *last.c});
    // "-" right after a range is a character.
    if (peek() == '-' && peek(1) != ']') {
      ++at_;
      side.push_back({'-', '-'});
    }
    return {};
  }

  // --- What surrounds characters.

  Result<RegexNode> parse_choice(const Flags& flags, int depth) {
    if (depth > kMaxDepth) return refuse("groups nested too deeply");
    RegexNode choice = node_of(Kind::kChoice);
    do {
      VKF_ASSIGN(auto part, parse_sequence(flags, depth));
      choice.parts.push_back(std::move(part));
    } while (take(U"|"));
    if (choice.parts.size() > 1) return choice;
    RegexNode only = std::move(choice.parts.front());
    return only;
  }

  Result<RegexNode> parse_sequence(const Flags& flags, int depth) {
    RegexNode sequence = node_of(Kind::kSequence);
    while (!is_end() && peek() != '|' && peek() != ')') {
      if (flags.extended && skip_extended()) continue;
      VKF_ASSIGN(auto atom, parse_atom(flags, depth));
      VKF_CHECK(parse_repeats(atom, flags));
      if (atom.kind != Kind::kEmpty) sequence.parts.push_back(std::move(atom));
    }
    return sequence;
  }

  // White space and comments between the parts of an extended pattern.
  bool skip_extended() {
    const char32_t c = peek();
    if (c == '#') {
      at_ = std::min(in_.find('\n', at_), in_.size());
      return true;
    }
    if (!property("space").contains(c)) return false;
    ++at_;
    return true;
  }

  Result<RegexNode> parse_atom(const Flags& flags, int depth) {
    const char32_t c = peek();
    switch (c) {
      case '\\':
        return parse_escape(flags);
      case '[': {
        VKF_ASSIGN(auto set, parse_brackets(0, flags));
        return set_node(std::move(set));
      }
      case '(':
        return parse_group(flags, depth);
      case '.':
        ++at_;
        return set_node(flags.dot_takes_newline ? CharSet({{0, CharSet::kLast}}) : not_newline());
      case '^':
      case '$':
        ++at_;
        return node_of(Kind::kAnchor, std::string(1, static_cast<char>(c)));
      case '*':
      case '+':
      case '?':
        return wrong("repeats nothing");
      default:
        ++at_;
        return char_node(c, flags);
    }
  }

  static CharSet not_newline() { return CharSet({{'\n', '\n'}}).inverted(); }

  Result<RegexNode> parse_escape(const Flags& flags) {
    ++at_;
    if (is_end()) return wrong("ends with a backslash");
    const char32_t letter = peek();
    if (letter == 'p' || letter == 'P') {
      VKF_ASSIGN(auto set, parse_property(false));
      return set_node(std::move(set));
    }
    if (auto set = letter_class(letter, false)) {
      ++at_;
      return set_node(std::move(*set));
    }
    if (letter >= '1' && letter <= '9') {
      if (auto number = take_reference()) {
        return reference("\\g{" + std::to_string(*number) + "}", flags);
      }
    }
    switch (letter) {
      case 'A':
      case 'G':
      case 'z':
      case 'Z':
        ++at_;
        return node_of(Kind::kAnchor, {'\\', static_cast<char>(letter)});
      case 'b':
      case 'B':
        return parse_word_boundary();
      case 'N':
        ++at_;
        return set_node(not_newline());
      case 'O':
        ++at_;
        return set_node(CharSet({{0, CharSet::kLast}}));
      case 'R':
        return parse_line_end();
      case 'k':
        if (peek(1) == '<' || peek(1) == '\'') return parse_named_reference(flags);
        break;
      case 'g':
        if (peek(1) == '<' || peek(1) == '\'') return refuse("a call of a group");
        break;
      case 'K':
      case 'X':
      case 'y':
      case 'Y':
        return refuse(std::string("\\") + static_cast<char>(letter));
      default:
        break;
    }
    VKF_ASSIGN(const char32_t c, parse_escaped_char(false));
    return char_node(c, flags);
  }

  // \b and \B are written with looks at both sides, once the sets have their names.
  Result<RegexNode> parse_word_boundary() {
    VKF_ASSIGN(const RegexNode word, set_node(*letter_class('w', false)));
    tree_.word_set = word.set;
    return node_of(Kind::kAnchor, {'\\', static_cast<char>(in_[at_++])});
  }

  // (?>\r\n|[\n-\r...])
  Result<RegexNode> parse_line_end() {
    ++at_;
    RegexNode pair = node_of(Kind::kSequence);
    for (const char32_t c : {U'\r', U'\n'}) {
      VKF_ASSIGN(auto part, set_node(CharSet({{c, c}})));
      pair.parts.push_back(std::move(part));
    }
    VKF_ASSIGN(auto one, set_node(CharSet({{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}})));
    RegexNode choice = node_of(Kind::kChoice);
    choice.parts.push_back(std::move(pair));
    choice.parts.push_back(std::move(one));
    return node_of(Kind::kGroup, "(?>", std::move(choice));
  }

  RegexNode reference(const std::string& text, const Flags& flags) {
    tree_.has_back_references = true;
    return node_of(Kind::kBackReference, flags.ignores_case ? "(?i:" + text + ")" : text);
  }

  // The number after a backslash if it is one of a group: beyond 9, only of one that has begun.
  // Else it is octal, and nothing is taken.
  std::optional<uint32_t> take_reference() {
    const size_t begin = at_;
    const auto number = take_number(10, 4);
    if (*number <= 9 || *number <= groups_) return number;
    at_ = begin;
    return std::nullopt;
  }

  // \k<name> or \k'name' or with a number.
  Result<RegexNode> parse_named_reference(const Flags& flags) {
    const char32_t close = peek(1) == '<' ? U'>' : U'\'';
    at_ += 2;
    const size_t end = in_.find(close, at_);
    if (end == in_.npos) return wrong("has a \\k without an end");
    const std::string name = encode_utf8(in_.substr(at_, end - at_));
    const bool is_number =
        name.find_first_not_of("0123456789", name.starts_with('-') ? 1 : 0) == name.npos &&
        name.find_first_of("0123456789") != name.npos;
    if (!is_number && name.find_first_of("+-") != name.npos) {
      return refuse("a reference with a level");
    }
    at_ = end + 1;
    return reference(is_number ? "\\g{" + name + "}" : "\\k{" + name + "}", flags);
  }

  // --- Repeats.

  // "{n,m}" and the like at `at_`; false, and nothing taken, where the brace is a character.
  Result<bool> parse_interval(RegexNode& repeat) {
    const size_t begin = at_;
    ++at_;
    const auto least = take_number(10, 6);
    const bool has_comma = take(U",");
    const auto most = has_comma ? take_number(10, 6) : least;
    if ((!least && !most) || !take(U"}")) {
      at_ = begin;
      return false;
    }
    repeat.least = least.value_or(0);
    repeat.most = has_comma && !most ? RegexNode::kNoLimit : *most;
    if (repeat.least > repeat.most) {  // how Oniguruma writes a possessive one
      std::swap(repeat.least, repeat.most);
      repeat.mode = Mode::kPossessive;
    }
    if (repeat.least > kMaxRepeat ||
        (repeat.most > kMaxRepeat && repeat.most != RegexNode::kNoLimit)) {
      return refuse("more than " + std::to_string(kMaxRepeat) + " repeats");
    }
    return true;
  }

  // Wraps `atom` into the repeats that follow it.
  Status parse_repeats(RegexNode& atom, const Flags& flags) {
    for (int repeats = 0; !is_end();) {
      if (flags.extended && skip_extended()) continue;
      RegexNode repeat = node_of(Kind::kRepeat);
      const char32_t sign = peek();
      if (sign == '{') {
        VKF_ASSIGN(const bool is_interval, parse_interval(repeat));
        if (!is_interval) return {};
        const bool is_fixed = repeat.least == repeat.most;
        if (!is_fixed && repeat.mode == Mode::kGreedy && take(U"?")) repeat.mode = Mode::kLazy;
      } else if (sign == '*' || sign == '+' || sign == '?') {
        ++at_;
        repeat.least = sign == '+' ? 1 : 0;
        repeat.most = sign == '?' ? 1 : RegexNode::kNoLimit;
        if (take(U"?")) {
          repeat.mode = Mode::kLazy;
        } else if (take(U"+")) {
          repeat.mode = Mode::kPossessive;
        }
      } else {
        return {};
      }
      if (atom.kind == Kind::kAnchor || atom.kind == Kind::kLookBehind ||
          atom.kind == Kind::kEmpty || is_look_ahead(atom)) {
        return wrong("repeats what takes no character");
      }
      if (++repeats > kMaxRepeats) return refuse("too many repeats of one thing");
      repeat.parts.push_back(std::move(atom));
      atom = std::move(repeat);
    }
    return {};
  }

  static bool is_look_ahead(const RegexNode& node) {
    return node.kind == Kind::kGroup && (node.text == "(?=" || node.text == "(?!");
  }

  // --- Groups.

  Result<RegexNode> parse_group(const Flags& flags, int depth) {
    if (starts(U"(*")) return refuse("a callout \"(*\"");
    if (!take(U"(?")) {
      ++at_;
      return close_group(has_names_ ? Kind::kGroup : Kind::kCapture, has_names_ ? "(?:" : "(",
                         flags, depth);
    }
    if (take(U"#")) return skip_comment();
    if (take(U":")) return close_group(Kind::kGroup, "(?:", flags, depth);
    if (take(U"=")) return close_group(Kind::kGroup, "(?=", flags, depth);
    if (take(U"!")) return close_group(Kind::kGroup, "(?!", flags, depth);
    if (take(U">")) return close_group(Kind::kGroup, "(?>", flags, depth);
    if (take(U"<=")) return close_group(Kind::kLookBehind, "(?<=", flags, depth);
    if (take(U"<!")) return close_group(Kind::kLookBehind, "(?<!", flags, depth);
    if (peek() == '<' || peek() == '\'') return parse_named_group(flags, depth);
    return parse_flags(flags, depth);
  }

  Result<RegexNode> close_group(Kind kind, std::string opening, const Flags& flags, int depth) {
    if (kind == Kind::kCapture) ++groups_;
    VKF_ASSIGN(auto body, parse_choice(flags, depth + 1));
    if (!take(U")")) return wrong("has a group without an end");
    return node_of(kind, std::move(opening), std::move(body));
  }

  Result<RegexNode> skip_comment() {
    for (; !is_end() && peek() != ')'; ++at_) {
      if (peek() == '\\') ++at_;
    }
    if (!take(U")")) return wrong("has a comment without an end");
    return RegexNode();
  }

  Result<RegexNode> parse_named_group(const Flags& flags, int depth) {
    const char32_t close = peek() == '<' ? U'>' : U'\'';
    ++at_;
    const size_t end = in_.find(close, at_);
    if (end == in_.npos || end == at_) return wrong("has a group with half a name");
    const std::string name = encode_utf8(in_.substr(at_, end - at_));
    at_ = end + 1;
    return close_group(Kind::kCapture, "(?<" + name + ">", flags, depth);
  }

  // "imx-imx" and ":" or ")". Alone in parentheses, flags reach to the end of the group around
  // them, over its other branches too.
  Result<RegexNode> parse_flags(Flags flags, int depth) {
    bool value = true;
    for (; !is_end() && peek() != ':' && peek() != ')'; ++at_) {
      switch (peek()) {
        case '-':
          value = false;
          break;
        case 'i':
          flags.ignores_case = value;
          break;
        case 'm':
          flags.dot_takes_newline = value;
          break;
        case 'x':
          flags.extended = value;
          break;
        default:
          return refuse("a group \"(?" + encode_utf8(in_.substr(at_, 1)) + "\"");
      }
    }
    if (take(U":")) return close_group(Kind::kGroup, "(?:", flags, depth);
    if (!take(U")")) return wrong("has a group without an end");
    VKF_ASSIGN(auto rest, parse_choice(flags, depth + 1));
    return node_of(Kind::kGroup, "(?:", std::move(rest));
  }

  std::u32string_view in_;
  const std::string& source_;
  const std::string& where_;
  size_t at_ = 0;
  bool has_names_ = false;
  uint32_t groups_ = 0;  // begun so far
  size_t large_sets_ = 0;
  RegexTree tree_;
  std::map<CharSet, uint32_t> set_numbers_;
  std::map<std::string, std::optional<CharSet>> properties_;
};

}  // namespace

Result<RegexTree> parse_regex(const std::string& pattern, const std::string& where) {
  if (pattern.size() > kMaxPatternBytes) {
    return unsupported(message({"[", where, "] The regular expression has ", pattern.size(),
                                " bytes; the limit is ", kMaxPatternBytes, "."}));
  }
  const auto chars = decode_utf8(pattern, "regular expression");
  if (!chars) return chars.error().with_context("[" + where + "]");
  return Parser(*chars, pattern, where).run();
}

}  // namespace vkformer
