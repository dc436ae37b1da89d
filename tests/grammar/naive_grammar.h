// A second way of matching grammars, slow and simple: all ways of reading a text are tried on the
// tree itself, position by position.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8_step.h"
#include "grammar/grammar_tree.h"

namespace vkformer::test {

// Whether texts match, or begin a text that does. It reads whole texts by sets of end positions, to
// a fixed point, so that left recursion ends as well.
class NaiveGrammar {
 public:
  explicit NaiveGrammar(const GrammarTree& tree) : tree_(tree) {}

  bool matches(std::string_view text) { return run(text).contains(text.size()); }
  // Whether some text that begins with `text` matches. Bytes of a character that is not whole count
  // as a beginning.
  bool begins(std::string_view text) {
    run(text);
    return reaches_end_;
  }

 private:
  using Ends = std::set<size_t>;
  using Key = std::pair<uint32_t, size_t>;  // rule, position

  const Ends& run(std::string_view text) {
    text_ = text;
    known_.clear();
    const Key top = {tree_.root, 0};
    known_[top];
    do {
      changed_ = false;
      reaches_end_ = text.empty();
      const auto keys = known_;
      for (const auto& [key, ends] : keys) {
        Ends found = ends_of(tree_.rules[key.first].body, key.second);
        auto& known = known_[key];
        for (const size_t end : found) changed_ = known.insert(end).second || changed_;
      }
      changed_ = changed_ || known_.size() != keys.size();
    } while (changed_);
    return known_[top];
  }

  // Where a node may end that begins at `at`, by what is known of rules so far.
  Ends ends_of(uint32_t index, size_t at) {
    const GrammarNode& node = tree_.nodes[index];
    switch (node.kind) {
      case GrammarNode::Kind::kLiteral:
        return step(node.bytes, at);
      case GrammarNode::Kind::kChars:
        return char_ends(node, at);
      case GrammarNode::Kind::kRule:
        return known_[{node.index, at}];
      case GrammarNode::Kind::kSequence: {
        Ends ends = {at};
        for (const uint32_t part : node.parts) ends = next(part, ends);
        return ends;
      }
      case GrammarNode::Kind::kChoice: {
        Ends all;
        for (const uint32_t part : node.parts) all.merge(ends_of(part, at));
        return all;
      }
      case GrammarNode::Kind::kRepeat:
        break;
    }
    Ends ends = {at};
    Ends all;
    for (uint32_t count = 0;; ++count) {
      if (count >= node.least) {
        const size_t before = all.size();
        all.insert(ends.begin(), ends.end());
        if (count > node.least && all.size() == before) break;
      }
      if (count == node.most || ends.empty()) break;
      ends = next(node.parts.front(), ends);
    }
    return all;
  }

  Ends next(uint32_t part, const Ends& from) {
    Ends all;
    for (const size_t at : from) all.merge(ends_of(part, at));
    return all;
  }

  Ends step(std::string_view bytes, size_t at) {
    const std::string_view rest = text_.substr(at);
    if (rest.starts_with(bytes)) {
      if (!bytes.empty() && rest.size() == bytes.size()) reaches_end_ = true;
      return {at + bytes.size()};
    }
    if (bytes.starts_with(rest)) reaches_end_ = true;
    return {};
  }

  Ends char_ends(const GrammarNode& node, size_t at) {
    const std::string_view rest = text_.substr(at);
    Ends out;
    for (const CharRange& range : node.chars) {
      // Few characters of a text can be in a range: those that it holds there, whole or begun.
      if (rest.empty()) {
        reaches_end_ = true;
        return {};
      }
      const Utf8Step found = utf8_step(rest);
      if (found.valid) {
        const char32_t c = utf8_value(rest, found.length);
        if (c < range.first || c > range.last) continue;
        if (found.length == rest.size()) reaches_end_ = true;
        out.insert(at + found.length);
      } else if (found.length == rest.size()) {
        // The characters that begin with these bytes are a range of their own.
        const auto [first, last] = begun_range(rest);
        if (first <= last && first <= range.last && range.first <= last) reaches_end_ = true;
      }
    }
    return out;
  }

  static std::pair<char32_t, char32_t> begun_range(std::string_view bytes) {
    const auto lead = static_cast<unsigned char>(bytes[0]);
    if (lead < 0xC2 || lead > 0xF4) return {1, 0};
    const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t first = lead & (0x7Fu >> length);
    char32_t last = first;
    for (size_t i = 1; i < length; ++i) {
      const bool given = i < bytes.size();
      const char32_t bits = given ? static_cast<unsigned char>(bytes[i]) & 0x3Fu : 0;
      first = first << 6 | bits;
      last = last << 6 | (given ? bits : 0x3F);
    }
    // Neither overlong, nor a surrogate, nor beyond Unicode.
    const char32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
    first = std::max(first, least);
    last = std::min(last, GrammarTree::kLastChar);
    if (first >= 0xD800 && first <= 0xDFFF) first = 0xE000;
    if (last >= 0xD800 && last <= 0xDFFF) last = 0xD7FF;
    return {first, last};
  }

  const GrammarTree& tree_;
  std::string_view text_;
  std::map<Key, Ends> known_;
  bool changed_ = false;
  bool reaches_end_ = false;
};

}  // namespace vkformer::test
