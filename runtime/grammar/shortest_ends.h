// ShortestEnds: how many bytes a text of a grammar takes at least to be complete.
// Needs: CompiledGrammar, ParseColumn.
//
// Within a rule it is a table by state, made once (Knuth 1977, "A generalization of Dijkstra's
// algorithm"). Over the rules that wait for one another it is a shortest path from column to
// column.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/parse_columns.h"

namespace vkformer {

class ShortestEnds {
 public:
  explicit ShortestEnds(const CompiledGrammar& grammar) : grammar_(grammar) {}

  // Of a text in this column, which keeps it.
  uint64_t of(ParseColumn& column);
  // The most bytes that any state takes to the end of its rule.
  uint64_t longest();

 private:
  void make_table();
  uint64_t compute(const ParseColumn& column) const;

  const CompiledGrammar& grammar_;
  std::vector<uint32_t> table_;  // by state; empty until it is needed
  uint32_t longest_ = 0;
};

}  // namespace vkformer
