#include "grammar/rule_automaton.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/check.h"
#include "base/message.h"
#include "grammar/byte_paths.h"

namespace vkformer {
namespace {

using Kind = GrammarNode::Kind;
using StateSet = std::vector<uint32_t>;  // sorted

// A rule without calls of at most this number of states is copied to where it is used.
constexpr uint32_t kInlineWeight = 48;
// A repetition of more copies calls its body.
constexpr uint32_t kManyCopies = 6;

void make_set(StateSet& states) {
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
}

// The subset construction (Rabin and Scott, 1959), with calls as further symbols.
class Determiniser {
 public:
  enum class Mode : uint8_t { kSubsets, kSingleStates };

  Determiniser(const Automaton& from, Mode mode)
      : from_(from), mode_(mode), seen_(from.states.size()) {}

  // False where it grows beyond `most` states, or follows more edges than `most_work`.
  bool run(size_t most, size_t most_work) {
    id_of({0});
    for (size_t i = 0; i < sets_.size(); ++i) {
      if (sets_.size() > most || work_ > most_work) return false;
      const StateSet members = closure(*sets_[i]);
      for (const uint32_t member : members) {
        if (from_.states[member].may_end) out_.states[i].may_end = true;
      }
      if (mode_ == Mode::kSubsets) {
        add_bytes(members, i);
        add_calls(members, i);
      } else {
        add_each(members, i);
      }
    }
    return true;
  }
  Automaton result() { return std::move(out_); }
  size_t work() const { return work_; }

 private:
  // Sorted.
  StateSet closure(StateSet states) {
    ++round_;
    for (const uint32_t state : states) seen_[state] = round_;
    for (size_t i = 0; i < states.size(); ++i) {
      work_ += from_.states[states[i]].empty_edges.size();
      for (const uint32_t next : from_.states[states[i]].empty_edges) {
        if (seen_[next] == round_) continue;
        seen_[next] = round_;
        states.push_back(next);
      }
    }
    work_ += states.size();
    make_set(states);
    return states;
  }

  uint32_t id_of(StateSet states) {
    if (mode_ == Mode::kSubsets) states = closure(std::move(states));
    const auto [found, is_new] =
        ids_.emplace(std::move(states), static_cast<uint32_t>(sets_.size()));
    if (is_new) {
      sets_.push_back(&found->first);
      out_.states.emplace_back();
    }
    return found->second;
  }

  void add_bytes(const StateSet& members, size_t id) {
    std::array<StateSet, 256> targets;
    for (const uint32_t member : members) {
      for (const AutomatonEdge& edge : from_.states[member].edges) {
        if (edge.rule != AutomatonEdge::kBytes) continue;
        work_ += 1u + edge.last - edge.first;
        for (size_t byte = edge.first; byte <= edge.last; ++byte) targets[byte].push_back(edge.to);
      }
    }
    for (size_t begin = 0; begin < 256;) {
      make_set(targets[begin]);
      size_t end = begin + 1;
      for (; end < 256; ++end) {
        make_set(targets[end]);
        if (targets[end] != targets[begin]) break;
      }
      if (!targets[begin].empty()) {
        const uint32_t to = id_of(targets[begin]);
        out_.states[id].edges.push_back({AutomatonEdge::kBytes, static_cast<uint8_t>(begin),
                                         static_cast<uint8_t>(end - 1), to});
      }
      begin = end;
    }
  }

  void add_calls(const StateSet& members, size_t id) {
    std::map<uint32_t, StateSet> targets;
    for (const uint32_t member : members) {
      for (const AutomatonEdge& edge : from_.states[member].edges) {
        if (edge.rule != AutomatonEdge::kBytes) targets[edge.rule].push_back(edge.to);
      }
    }
    for (auto& [rule, states] : targets) {
      make_set(states);
      const uint32_t to = id_of(std::move(states));
      out_.states[id].edges.push_back({rule, 0, 0, to});
    }
  }

  void add_each(const StateSet& members, size_t id) {
    for (const uint32_t member : members) {
      for (AutomatonEdge edge : from_.states[member].edges) {
        edge.to = id_of({edge.to});
        out_.states[id].edges.push_back(edge);
      }
    }
  }

  const Automaton& from_;
  Mode mode_;
  std::vector<uint32_t> seen_;  // by state, the last round of closure() that met it
  uint32_t round_ = 0;
  size_t work_ = 0;
  std::map<StateSet, uint32_t> ids_;
  std::vector<const StateSet*> sets_;
  Automaton out_;
};

}  // namespace

uint32_t ExtraRules::index_of(uint32_t node) {
  const auto [found, is_new] =
      indices_.emplace(node, first_ + static_cast<uint32_t>(bodies_.size()));
  if (is_new) bodies_.push_back(node);
  return found->second;
}

Result<Automaton> RuleBuilder::build(uint32_t node) {
  add_state();
  const uint32_t end = add(node, 0);
  if (is_full()) {
    return invalid_argument(
        message({"[grammar] needs more than the limit of ", room_,
                 " automaton states; use smaller repetitions and fewer alternatives."}));
  }
  automaton_.states[end].may_end = true;
  return std::move(automaton_);
}

uint32_t RuleBuilder::add_state() {
  if (!is_full()) automaton_.states.emplace_back();
  return static_cast<uint32_t>(automaton_.states.size() - 1);
}

void RuleBuilder::add_bytes(uint32_t from, uint8_t first, uint8_t last, uint32_t to) {
  automaton_.states[from].edges.push_back({AutomatonEdge::kBytes, first, last, to});
}

void RuleBuilder::add_call(uint32_t rule, bool may_be_empty, uint32_t from, uint32_t to) {
  automaton_.states[from].edges.push_back({rule, 0, 0, to});
  // Rules that may match nothing are stepped over here, so that running the automata need not care
  // (Aycock and Horspool, 2002).
  if (may_be_empty) automaton_.states[from].empty_edges.push_back(to);
}

uint32_t RuleBuilder::add(uint32_t index, uint32_t from) {
  const GrammarNode& node = tree_.nodes[index];
  switch (node.kind) {
    case Kind::kLiteral:
      for (const char byte : node.bytes) {
        const uint32_t to = add_state();
        add_bytes(from, static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), to);
        from = to;
      }
      return from;
    case Kind::kChars:
      return add_chars(node, from);
    case Kind::kSequence:
      for (const uint32_t part : node.parts) {
        if (is_full()) break;
        from = add(part, from);
      }
      return from;
    case Kind::kChoice:
      return add_choice(node, from);
    case Kind::kRepeat:
      return add_repeat(node, from);
    case Kind::kRule:
      break;
  }
  const uint32_t body = tree_.rules[node.index].body;
  if (facts_.weight[body] <= kInlineWeight) return add(body, from);
  const uint32_t to = add_state();
  add_call(node.index, facts_.matches_nothing[body], from, to);
  return to;
}

uint32_t RuleBuilder::add_chars(const GrammarNode& node, uint32_t from) {
  // tails[n] is followed by n bytes of any character; paths that end so share these states.
  std::array<uint32_t, 4> tails{};
  tails[0] = add_state();
  uint32_t known = 0;
  const auto tail = [&](uint32_t bytes) {
    for (; known < bytes; ++known) {
      tails[known + 1] = add_state();
      add_bytes(tails[known + 1], 0x80, 0xBF, tails[known]);
    }
    return tails[bytes];
  };
  for (const BytePath& path : byte_paths(node.chars)) {
    uint32_t free = path.length;  // ranges from here on are those of any character
    while (free > 1 && path.ranges[free - 1].first == 0x80 && path.ranges[free - 1].last == 0xBF) {
      --free;
    }
    uint32_t at = from;
    for (uint32_t i = 0; i < free; ++i) {
      const uint32_t to = i + 1 == free ? tail(path.length - free) : add_state();
      add_bytes(at, path.ranges[i].first, path.ranges[i].last, to);
      at = to;
    }
  }
  return tails[0];
}

uint32_t RuleBuilder::add_choice(const GrammarNode& node, uint32_t from) {
  const uint32_t end = add_state();
  for (const uint32_t part : node.parts) {
    if (!facts_.matches_something[part]) continue;
    if (is_full()) break;
    const uint32_t to = add(part, from);
    automaton_.states[to].empty_edges.push_back(end);
  }
  return end;
}

uint32_t RuleBuilder::add_repeat(const GrammarNode& node, uint32_t from) {
  const uint32_t part = node.parts.front();
  if (!facts_.matches_something[part]) return from;
  const bool is_loop = node.most == GrammarTree::kNoLimit;
  const uint32_t copies = is_loop ? node.least + 1 : node.most;
  const bool is_call = copies > kManyCopies && facts_.weight[part] > 2;
  const auto add_copy = [&](uint32_t begin) {
    if (!is_call) return add(part, begin);
    const uint32_t to = add_state();
    add_call(extra_.index_of(part), facts_.matches_nothing[part], begin, to);
    return to;
  };
  for (uint32_t i = 0; i < node.least && !is_full(); ++i) from = add_copy(from);
  if (is_loop) {
    const uint32_t loop = add_state();
    automaton_.states[from].empty_edges.push_back(loop);
    const uint32_t end = add_copy(loop);
    automaton_.states[end].empty_edges.push_back(loop);
    return loop;
  }
  const uint32_t end = add_state();
  for (uint32_t i = node.least; i < node.most && !is_full(); ++i) {
    automaton_.states[from].empty_edges.push_back(end);
    from = add_copy(from);
  }
  automaton_.states[from].empty_edges.push_back(end);
  return end;
}

Result<Automaton> determinise(const Automaton& automaton, size_t& budget) {
  const size_t states = automaton.states.size();
  Determiniser subsets(automaton, Determiniser::Mode::kSubsets);
  const bool is_small = subsets.run(3 * states + 64, budget / 8);
  budget -= std::min(budget, subsets.work());
  if (is_small) return subsets.result();
  Determiniser single(automaton, Determiniser::Mode::kSingleStates);
  const bool is_done = single.run(states, budget);
  budget -= std::min(budget, single.work());
  if (is_done) return single.result();
  return invalid_argument(
      "[grammar] takes too much work to compile, as repetitions of parts that may be empty do "
      "where "
      "they nest; repeat parts that match at least one character.");
}

}  // namespace vkformer
