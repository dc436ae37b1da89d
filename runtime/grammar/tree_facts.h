// What can be said of a grammar's nodes before it is compiled. Needs: GrammarTree.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/grammar_tree.h"

namespace vkformer {

// All by node.
struct TreeFacts {
  std::vector<bool> matches_something;  // some text of finite length
  std::vector<bool> matches_nothing;    // the empty text
  // About how many automaton states the node takes; kCalls and more if it uses rules.
  std::vector<uint32_t> weight;
  static constexpr uint32_t kCalls = 1u << 30;
};

TreeFacts facts_of(const GrammarTree& tree);

// The rules that the root uses, directly or through others, itself included.
std::vector<bool> used_rules(const GrammarTree& tree);

}  // namespace vkformer
