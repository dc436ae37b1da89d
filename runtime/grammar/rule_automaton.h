// RuleAutomaton: one rule as a nondeterministic automaton over bytes and calls of rules, and its
// determinised form. Needs: GrammarTree, Result.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "grammar/grammar_tree.h"
#include "grammar/tree_facts.h"
#include "vkformer/result.h"

namespace vkformer {

struct AutomatonEdge {
  static constexpr uint32_t kBytes = UINT32_MAX;
  uint32_t rule = kBytes;  // the rule to call, or kBytes
  uint8_t first = 0;       // the bytes, if so
  uint8_t last = 0;
  uint32_t to = 0;
};

// State 0 is the first one.
struct Automaton {
  struct State {
    std::vector<AutomatonEdge> edges;
    std::vector<uint32_t> empty_edges;  // steps over nothing
    bool may_end = false;
  };
  std::vector<State> states;
};

// Bodies of repetitions as separate rules, so that many copies stay small: rules after those of the
// tree, by node.
class ExtraRules {
 public:
  explicit ExtraRules(size_t first) : first_(static_cast<uint32_t>(first)) {}
  uint32_t index_of(uint32_t node);
  // The bodies in the order of their rules.
  const std::vector<uint32_t>& bodies() const { return bodies_; }

 private:
  uint32_t first_;
  std::vector<uint32_t> bodies_;
  std::map<uint32_t, uint32_t> indices_;
};

class RuleBuilder {
 public:
  // At most `room` states are made.
  RuleBuilder(const GrammarTree& tree, const TreeFacts& facts, ExtraRules& extra, size_t room)
      : tree_(tree), facts_(facts), extra_(extra), room_(room) {}

  // The automaton of a node. Precondition: it matches something.
  Result<Automaton> build(uint32_t node);

 private:
  // The state after `node`, which begins in `from`. No edge leads back to `from`.
  uint32_t add(uint32_t node, uint32_t from);
  uint32_t add_chars(const GrammarNode& node, uint32_t from);
  uint32_t add_choice(const GrammarNode& node, uint32_t from);
  uint32_t add_repeat(const GrammarNode& node, uint32_t from);
  uint32_t add_state();
  void add_call(uint32_t rule, bool may_be_empty, uint32_t from, uint32_t to);
  void add_bytes(uint32_t from, uint8_t first, uint8_t last, uint32_t to);
  bool is_full() const { return automaton_.states.size() >= room_; }

  const GrammarTree& tree_;
  const TreeFacts& facts_;
  ExtraRules& extra_;
  size_t room_;
  Automaton automaton_;
};

// The same without steps over nothing, and deterministic where that does not make it much larger.
// Takes the edges that it follows from `budget`, which all rules of a grammar share.
Result<Automaton> determinise(const Automaton& automaton, size_t& budget);

}  // namespace vkformer
