#include "grammar/json_pieces.h"

#include <algorithm>

#include "unicode/utf8.h"

namespace vkformer {
namespace {

constexpr uint32_t kNoLimit = GrammarTree::kNoLimit;

// The characters that strings hold as they are.
const std::vector<CharRange>& plain_ranges() {
  static const std::vector<CharRange> ranges =
      normal_ranges({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, GrammarTree::kLastChar}});
  return ranges;
}

std::vector<CharRange> common_ranges(const std::vector<CharRange>& a,
                                     const std::vector<CharRange>& b) {
  std::vector<CharRange> out;
  for (const CharRange& x : a) {
    for (const CharRange& y : b) {
      const CharRange both = {std::max(x.first, y.first), std::min(x.last, y.last)};
      if (both.first <= both.last) out.push_back(both);
    }
  }
  return normal_ranges(std::move(out));
}

}  // namespace

template <class Make>
uint32_t JsonPieces::named(std::optional<uint32_t>& rule, const char* name, const Make& make) {
  if (!rule) {
    rule = tree_.add_rule(name, "any JSON", 0);
    const uint32_t body = make();
    tree_.rules[*rule].body = body;
  }
  return tree_.rule(*rule);
}

uint32_t JsonPieces::space() {
  return named(space_, "space", [&] {
    const uint32_t indent = tree_.repeat(tree_.chars({{U' ', U' '}, {U'\t', U'\t'}}), 0, 20);
    const uint32_t line = tree_.sequence({tree_.literal("\n"), indent});
    return tree_.optional(tree_.choice({tree_.literal(" "), line}));
  });
}

uint32_t JsonPieces::character() {
  return named(character_, "character", [&] {
    const uint32_t hex = tree_.chars({{U'0', U'9'}, {U'a', U'f'}, {U'A', U'F'}});
    const auto unit = [&](std::vector<CharRange> first, std::vector<CharRange> second) {
      return tree_.sequence({tree_.literal("\\u"), tree_.chars(std::move(first)),
                             tree_.chars(std::move(second)), hex, hex});
    };
    const std::vector<CharRange> d = {{U'd', U'd'}, {U'D', U'D'}};
    const std::vector<CharRange> any = {{U'0', U'9'}, {U'a', U'f'}, {U'A', U'F'}};
    const uint32_t below =
        unit({{U'0', U'9'}, {U'a', U'c'}, {U'A', U'C'}, {U'e', U'f'}, {U'E', U'F'}}, any);
    const uint32_t near = unit(d, {{U'0', U'7'}});
    const uint32_t pair = tree_.sequence({unit(d, {{U'8', U'9'}, {U'a', U'b'}, {U'A', U'B'}}),
                                          unit(d, {{U'c', U'f'}, {U'C', U'F'}})});
    std::vector<CharRange> names;
    for (const char32_t c : U"\"\\/bfnrt") {
      if (c != U'\0') names.push_back({c, c});
    }
    const uint32_t brief = tree_.sequence({tree_.literal("\\"), tree_.chars(std::move(names))});
    return tree_.choice({tree_.chars(plain_ranges()), brief, below, near, pair});
  });
}

uint32_t JsonPieces::character_of(const std::vector<CharRange>& ranges) {
  std::vector<uint32_t> parts;
  std::vector<CharRange> plain = common_ranges(ranges, plain_ranges());
  if (!plain.empty()) parts.push_back(tree_.chars(std::move(plain)));
  for (const CharRange& range : common_ranges(ranges, inverse_ranges(plain_ranges()))) {
    for (char32_t c = range.first; c <= range.last; ++c) {
      std::string text;
      append_json_string(std::string(1, static_cast<char>(c)), text);
      parts.push_back(tree_.literal(text.substr(1, text.size() - 2)));
    }
  }
  return tree_.choice(std::move(parts));
}

uint32_t JsonPieces::quoted(uint32_t content) {
  const uint32_t quote = tree_.literal("\"");
  return tree_.sequence({quote, content, quote});
}

uint32_t JsonPieces::string() {
  return named(string_, "string", [&] { return quoted(tree_.repeat(character(), 0, kNoLimit)); });
}

uint32_t JsonPieces::integer() {
  return named(integer_, "integer", [&] {
    const uint32_t more = tree_.repeat(digit(), 0, 14);
    const uint32_t natural = tree_.sequence({tree_.chars({{U'1', U'9'}}), more});
    return tree_.choice(
        {tree_.literal("0"), tree_.sequence({tree_.optional(tree_.literal("-")), natural})});
  });
}

uint32_t JsonPieces::number() {
  return named(number_, "number", [&] {
    const uint32_t more = tree_.repeat(digit(), 0, 14);
    const uint32_t natural = tree_.sequence({tree_.chars({{U'1', U'9'}}), more});
    const uint32_t decimals = tree_.sequence({tree_.literal("."), tree_.repeat(digit(), 1, 15)});
    const uint32_t sign = tree_.optional(tree_.chars({{U'+', U'+'}, {U'-', U'-'}}));
    const uint32_t exponent = tree_.sequence(
        {tree_.chars({{U'e', U'e'}, {U'E', U'E'}}), sign, tree_.repeat(digit(), 1, 2)});
    return tree_.sequence({tree_.optional(tree_.literal("-")),
                           tree_.choice({tree_.literal("0"), natural}), tree_.optional(decimals),
                           tree_.optional(exponent)});
  });
}

uint32_t JsonPieces::value() {
  return named(value_, "value", [&] {
    return tree_.choice({object(), array(), string(), number(), tree_.literal("true"),
                         tree_.literal("false"), tree_.literal("null")});
  });
}

uint32_t JsonPieces::object() {
  return named(object_, "object", [&] {
    const uint32_t member = tree_.sequence({string(), tree_.literal(":"), space(), value()});
    return list("{}", member, member);
  });
}

uint32_t JsonPieces::array() {
  return named(array_, "array", [&] {
    const uint32_t item = value();
    return list("[]", item, item);
  });
}

uint32_t JsonPieces::after_comma(uint32_t part) {
  return tree_.sequence({tree_.literal(","), space(), part});
}

uint32_t JsonPieces::bracketed(const char* brackets, uint32_t content) {
  return tree_.sequence(
      {tree_.literal({brackets, 1}), space(), content, tree_.literal({brackets + 1, 1})});
}

uint32_t JsonPieces::list(const char* brackets, uint32_t first, uint32_t more) {
  const uint32_t rest = tree_.repeat(after_comma(more), 0, kNoLimit);
  return bracketed(brackets, tree_.optional(tree_.sequence({first, rest, space()})));
}

uint32_t JsonPieces::exactly(const JsonTree& value) {
  return tree_.literal(compact_json(value));
}

uint32_t JsonPieces::name_except(const std::vector<std::u32string>& names) {
  return quoted(except_from(names, 0));
}

// What may follow the first `at` characters, which all of `names` share.
uint32_t JsonPieces::except_from(const std::vector<std::u32string>& names, size_t at) {
  std::vector<char32_t> next;
  bool is_name = false;
  for (const std::u32string& name : names) {
    if (name.size() > at) next.push_back(name[at]);
    is_name = is_name || name.size() == at;
  }
  std::sort(next.begin(), next.end());
  next.erase(std::unique(next.begin(), next.end()), next.end());
  std::vector<uint32_t> parts;
  if (!is_name) parts.push_back(tree_.sequence({}));
  std::vector<CharRange> taken;
  for (const char32_t c : next) {
    taken.push_back({c, c});
    std::vector<std::u32string> same;
    for (const std::u32string& name : names) {
      if (name.size() > at && name[at] == c) same.push_back(name);
    }
    const std::vector<CharRange> plain = common_ranges({{c, c}}, plain_ranges());
    if (plain.empty()) continue;  // would be escaped, which these names never are
    parts.push_back(tree_.sequence({tree_.chars(plain), except_from(same, at + 1)}));
  }
  const auto others = common_ranges(plain_ranges(), inverse_ranges(normal_ranges(taken)));
  const uint32_t rest = tree_.repeat(tree_.chars(plain_ranges()), 0, kNoLimit);
  parts.push_back(tree_.sequence({tree_.chars(others), rest}));
  return tree_.choice(std::move(parts));
}

}  // namespace vkformer
