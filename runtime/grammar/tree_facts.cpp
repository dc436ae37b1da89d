#include "grammar/tree_facts.h"

#include <algorithm>

namespace vkformer {
namespace {

using Kind = GrammarNode::Kind;

// The nodes of which a property holds that goes from the parts up. It is all of a sequence, any of
// a choice (Dowling and Gallier, 1984: linear in the grammar).
std::vector<bool> solve(const GrammarTree& tree, bool chars_hold, bool full_literals_hold) {
  const size_t count = tree.nodes.size();
  std::vector<std::vector<uint32_t>> users(count);
  std::vector<size_t> missing(count, 1);
  std::vector<uint32_t> ready;
  for (uint32_t i = 0; i < count; ++i) {
    const GrammarNode& node = tree.nodes[i];
    for (const uint32_t part : node.parts) users[part].push_back(i);
    switch (node.kind) {
      case Kind::kLiteral:
        missing[i] = full_literals_hold || node.bytes.empty() ? 0 : 1;
        break;
      case Kind::kChars:
        missing[i] = chars_hold && !node.chars.empty() ? 0 : 1;
        break;
      case Kind::kRule:
        users[tree.rules[node.index].body].push_back(i);
        break;
      case Kind::kSequence:
        missing[i] = node.parts.size();
        break;
      case Kind::kChoice:
        break;
      case Kind::kRepeat:
        missing[i] = node.least == 0 ? 0 : 1;
        break;
    }
    if (missing[i] == 0) ready.push_back(i);
  }
  std::vector<bool> holds(count);
  while (!ready.empty()) {
    const uint32_t node = ready.back();
    ready.pop_back();
    if (holds[node]) continue;
    holds[node] = true;
    for (const uint32_t user : users[node]) {
      if (missing[user] > 0 && --missing[user] == 0) ready.push_back(user);
    }
  }
  return holds;
}

uint32_t weight_of(const GrammarNode& node, const std::vector<uint32_t>& weights) {
  uint64_t sum = 0;
  switch (node.kind) {
    case Kind::kLiteral:
      return static_cast<uint32_t>(node.bytes.size());
    case Kind::kChars:
      return node.chars.empty() || node.chars.back().last < 0x80 ? 1 : 12;
    case Kind::kRule:
      return TreeFacts::kCalls;
    case Kind::kSequence:
    case Kind::kChoice:
      for (const uint32_t part : node.parts) sum += weights[part];
      break;
    case Kind::kRepeat:
      sum = weights[node.parts.front()];
      sum *= node.most == GrammarTree::kNoLimit ? std::max(node.least, 1u) : node.most;
      break;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(sum, TreeFacts::kCalls));
}

}  // namespace

TreeFacts facts_of(const GrammarTree& tree) {
  TreeFacts facts;
  facts.matches_something = solve(tree, true, true);
  facts.matches_nothing = solve(tree, false, false);
  facts.weight.resize(tree.nodes.size());
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    facts.weight[i] = weight_of(tree.nodes[i], facts.weight);
  }
  return facts;
}

std::vector<bool> used_rules(const GrammarTree& tree) {
  std::vector<bool> used(tree.rules.size());
  std::vector<bool> seen(tree.nodes.size());
  std::vector<uint32_t> nodes = {tree.rules[tree.root].body};
  used[tree.root] = true;
  while (!nodes.empty()) {
    const uint32_t at = nodes.back();
    nodes.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const GrammarNode& node = tree.nodes[at];
    nodes.insert(nodes.end(), node.parts.begin(), node.parts.end());
    if (node.kind != Kind::kRule) continue;
    used[node.index] = true;
    nodes.push_back(tree.rules[node.index].body);
  }
  return used;
}

}  // namespace vkformer
