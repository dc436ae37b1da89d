#include "grammar/shortest_ends.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace vkformer {
namespace {

// Rules that call rules can make texts longer than any number; that many bytes stand for them.
constexpr uint32_t kEndless = 1u << 30;

uint32_t sum(uint32_t a, uint32_t b) {
  return std::min(a + b, kEndless);
}

template <class Key>
using NearestFirst = std::priority_queue<std::pair<uint64_t, Key>,
                                         std::vector<std::pair<uint64_t, Key>>, std::greater<>>;

// Edges by the state that they lead to, or by the rule that they call.
struct IncomingEdges {
  struct Edge {
    uint32_t from = 0;
    uint32_t call = UINT32_MAX;  // into call_edges; a byte's otherwise
  };
  std::vector<std::vector<Edge>> to;       // by state
  std::vector<std::vector<Edge>> calling;  // by rule
};

IncomingEdges incoming(const CompiledGrammar& g) {
  IncomingEdges edges{std::vector<std::vector<IncomingEdges::Edge>>(g.states.size()),
                      std::vector<std::vector<IncomingEdges::Edge>>(g.rule_starts.size())};
  for (uint32_t s = 0; s < g.states.size(); ++s) {
    const CompiledGrammar::State& state = g.states[s];
    for (uint32_t b = state.bytes_begin; b < state.bytes_end; ++b)
      edges.to[g.byte_edges[b].to].push_back({s});
    for (uint32_t c = state.calls_begin; c < state.calls_end; ++c) {
      const CompiledGrammar::CallEdge& call = g.call_edges[c];
      if (!call.is_tail) edges.to[call.to].push_back({s, c});
      edges.calling[call.rule].push_back({s, c});
    }
  }
  return edges;
}

}  // namespace

void ShortestEnds::make_table() {
  const CompiledGrammar& g = grammar_;
  const IncomingEdges edges = incoming(g);
  table_.assign(g.states.size(), kEndless);
  std::vector<bool> done(g.states.size());
  NearestFirst<uint32_t> waiting;
  const auto reach = [&](uint32_t state, uint32_t bytes) {
    if (done[state] || bytes >= table_[state]) return;
    table_[state] = bytes;
    waiting.push({bytes, state});
  };
  // Over a call: what the rule takes, then the rest. Both must be known.
  const auto reach_over = [&](const IncomingEdges::Edge& edge) {
    const CompiledGrammar::CallEdge& call = g.call_edges[edge.call];
    const uint32_t start = g.rule_starts[call.rule];
    if (!done[start] || !(call.is_tail || done[call.to])) return;
    reach(edge.from, sum(table_[start], call.is_tail ? 0 : table_[call.to]));
  };
  for (uint32_t s = 0; s < g.states.size(); ++s) {
    if (g.states[s].may_end) reach(s, 0);
  }
  while (!waiting.empty()) {
    const uint32_t state = waiting.top().second;
    waiting.pop();
    if (done[state]) continue;
    done[state] = true;
    longest_ = std::max(longest_, table_[state]);
    for (const IncomingEdges::Edge& edge : edges.to[state]) {
      if (edge.call == UINT32_MAX) {
        reach(edge.from, sum(table_[state], 1));
      } else {
        reach_over(edge);
      }
    }
    const uint32_t rule = g.states[state].rule;
    if (g.rule_starts[rule] != state) continue;
    for (const IncomingEdges::Edge& edge : edges.calling[rule]) reach_over(edge);
  }
}

uint64_t ShortestEnds::longest() {
  if (table_.empty()) make_table();
  return longest_;
}

uint64_t ShortestEnds::of(ParseColumn& column) {
  if (table_.empty()) make_table();
  if (column.shortest_end == ParseColumn::kUnknown)
    column.shortest_end = column.may_end() ? 0 : compute(column);
  return column.shortest_end;
}

uint64_t ShortestEnds::compute(const ParseColumn& column) const {
  // Rules that wait for their end, by the column where they began.
  using Waiting = std::pair<const ParseColumn*, uint32_t>;
  NearestFirst<Waiting> open;
  std::map<Waiting, uint64_t> known;
  const auto reach = [&](const ParseItem& item, uint64_t bytes) {
    bytes += table_[item.state];
    const Waiting next{item.origin, item.rule};
    const auto [found, is_new] = known.emplace(next, bytes);
    if (!is_new && found->second <= bytes) return;
    found->second = bytes;
    open.push({bytes, next});
  };
  for (const ParseItem& item : column.items()) reach(item, 0);
  while (!open.empty()) {
    const auto [bytes, at] = open.top();
    open.pop();
    if (at.first == nullptr) return bytes;
    if (known[at] < bytes) continue;
    // A copy, since clang 14 lets no lambda capture what a binding names.
    const uint64_t spent = bytes;
    at.first->for_callers(at.second, [&](const ParseItem& next) { reach(next, spent); });
  }
  return kEndless;
}

}  // namespace vkformer
