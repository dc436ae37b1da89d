#include "grammar/grammar_tree.h"

#include <algorithm>

namespace vkformer {
namespace {

constexpr char32_t kLastBelowSurrogates = 0xD7FF;
constexpr char32_t kFirstAboveSurrogates = 0xE000;

uint32_t add(GrammarTree& tree, GrammarNode node) {
  tree.nodes.push_back(std::move(node));
  return static_cast<uint32_t>(tree.nodes.size() - 1);
}

uint32_t add_group(GrammarTree& tree, GrammarNode::Kind kind, std::vector<uint32_t> parts) {
  if (parts.size() == 1) return parts.front();
  GrammarNode node;
  node.kind = kind;
  node.parts = std::move(parts);
  return add(tree, std::move(node));
}

}  // namespace

std::vector<CharRange> normal_ranges(std::vector<CharRange> ranges) {
  std::vector<CharRange> cut;
  for (const CharRange& range : ranges) {
    const CharRange below = {range.first, std::min(range.last, kLastBelowSurrogates)};
    const CharRange above = {std::max(range.first, kFirstAboveSurrogates), range.last};
    for (const CharRange& part : {below, above}) {
      if (part.first <= part.last) cut.push_back(part);
    }
  }
  std::sort(cut.begin(), cut.end(),
            [](const CharRange& a, const CharRange& b) { return a.first < b.first; });
  std::vector<CharRange> out;
  for (const CharRange& range : cut) {
    if (!out.empty() && range.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

std::vector<CharRange> inverse_ranges(std::span<const CharRange> ranges) {
  std::vector<CharRange> out;
  char32_t next = 0;
  for (const CharRange& range : ranges) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= GrammarTree::kLastChar) out.push_back({next, GrammarTree::kLastChar});
  return normal_ranges(std::move(out));
}

uint32_t GrammarTree::literal(std::string_view bytes) {
  GrammarNode node;
  node.kind = GrammarNode::Kind::kLiteral;
  node.bytes = bytes;
  return add(*this, std::move(node));
}

uint32_t GrammarTree::chars(std::vector<CharRange> ranges) {
  GrammarNode node;
  node.kind = GrammarNode::Kind::kChars;
  node.chars = normal_ranges(std::move(ranges));
  return add(*this, std::move(node));
}

uint32_t GrammarTree::rule(uint32_t index) {
  GrammarNode node;
  node.kind = GrammarNode::Kind::kRule;
  node.index = index;
  return add(*this, std::move(node));
}

uint32_t GrammarTree::sequence(std::vector<uint32_t> parts) {
  return add_group(*this, GrammarNode::Kind::kSequence, std::move(parts));
}

uint32_t GrammarTree::choice(std::vector<uint32_t> parts) {
  return add_group(*this, GrammarNode::Kind::kChoice, std::move(parts));
}

uint32_t GrammarTree::repeat(uint32_t part, uint32_t least, uint32_t most) {
  GrammarNode node;
  node.kind = GrammarNode::Kind::kRepeat;
  node.parts = {part};
  node.least = least;
  node.most = most;
  return add(*this, std::move(node));
}

uint32_t GrammarTree::add_rule(std::string name, std::string place, uint32_t body) {
  rules.push_back({std::move(name), std::move(place), body});
  return static_cast<uint32_t>(rules.size() - 1);
}

}  // namespace vkformer
