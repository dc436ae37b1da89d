#include "grammar/compiled_grammar.h"

#include "base/check.h"
#include "base/message.h"
#include "grammar/rule_automaton.h"
#include "grammar/tree_facts.h"

namespace vkformer {
namespace {

constexpr size_t kMostStates = 1u << 18;
constexpr size_t kMostEdges = 1u << 26;  // that are followed to make the automata

Status check_rules(const GrammarTree& tree, const TreeFacts& facts, const std::vector<bool>& used) {
  for (size_t i = 0; i < tree.rules.size(); ++i) {
    const GrammarRule& rule = tree.rules[i];
    if (!used[i] || facts.matches_something[rule.body]) continue;
    return invalid_argument(
        message({"[", rule.name, "] (", rule.place,
                 ") can never end: no text of finite length matches it. Give it an alternative "
                 "that needs neither the rule itself nor what is impossible."}));
  }
  return {};
}

// Appends one rule's automaton; edges hold bytes, not yet classes.
void append(const Automaton& automaton, uint32_t rule, CompiledGrammar& out) {
  const auto base = static_cast<uint32_t>(out.states.size());
  for (const Automaton::State& state : automaton.states) {
    CompiledGrammar::State made;
    made.rule = rule;
    made.may_end = state.may_end;
    made.bytes_begin = static_cast<uint32_t>(out.byte_edges.size());
    made.calls_begin = static_cast<uint32_t>(out.call_edges.size());
    for (const AutomatonEdge& edge : state.edges) {
      if (edge.rule == AutomatonEdge::kBytes) {
        out.byte_edges.push_back({edge.first, edge.last, base + edge.to});
      } else {
        out.call_edges.push_back({edge.rule, base + edge.to, false});
      }
    }
    made.bytes_end = static_cast<uint32_t>(out.byte_edges.size());
    made.calls_end = static_cast<uint32_t>(out.call_edges.size());
    out.states.push_back(made);
  }
}

void make_classes(CompiledGrammar& grammar) {
  std::array<bool, 257> begins{};
  for (const auto& edge : grammar.byte_edges) {
    begins[edge.first_class] = true;
    begins[edge.last_class + 1u] = true;
  }
  uint32_t current = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && begins[byte]) ++current;
    grammar.class_of_byte[byte] = static_cast<uint8_t>(current);
  }
  grammar.classes = current + 1;
  for (auto& edge : grammar.byte_edges) {
    edge.first_class = grammar.class_of_byte[edge.first_class];
    edge.last_class = grammar.class_of_byte[edge.last_class];
  }
}

}  // namespace

Result<CompiledGrammar> CompiledGrammar::compile(const GrammarTree& tree) {
  const TreeFacts facts = facts_of(tree);
  const std::vector<bool> used = used_rules(tree);
  VKF_CHECK(check_rules(tree, facts, used));
  CompiledGrammar out;
  size_t budget = kMostEdges;
  out.root = tree.root;
  ExtraRules extra(tree.rules.size());
  const size_t given = tree.rules.size();
  for (size_t rule = 0; rule < given + extra.bodies().size(); ++rule) {
    out.rule_starts.push_back(static_cast<uint32_t>(out.states.size()));
    if (rule < given && !used[rule]) continue;
    const uint32_t body = rule < given ? tree.rules[rule].body : extra.bodies()[rule - given];
    RuleBuilder builder(tree, facts, extra, kMostStates - out.states.size());
    VKF_ASSIGN(const Automaton automaton, builder.build(body));
    VKF_ASSIGN(const Automaton exact, determinise(automaton, budget));
    append(exact, static_cast<uint32_t>(rule), out);
    if (out.states.size() >= kMostStates) {
      return invalid_argument(
          message({"[grammar] needs more than the limit of ", kMostStates,
                   " automaton states; use smaller repetitions and fewer alternatives."}));
    }
  }
  for (CallEdge& edge : out.call_edges) {
    edge.is_tail = out.states[edge.to].may_end && !out.states[edge.to].has_edges();
  }
  make_classes(out);
  return out;
}

}  // namespace vkformer
