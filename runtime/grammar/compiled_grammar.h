// CompiledGrammar: a grammar as finite automata over bytes, one a rule, that call each other.
// Needs: GrammarTree, Result.
//
// Threading: immutable; any number of threads may share it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/grammar_tree.h"
#include "vkformer/result.h"

namespace vkformer {

class CompiledGrammar {
 public:
  // A step over one byte; the bytes are given by class.
  struct ByteEdge {
    uint8_t first_class = 0;
    uint8_t last_class = 0;  // included
    uint32_t to = 0;
  };
  // A step over what a rule matches. In a tail call nothing is left to match after it.
  struct CallEdge {
    uint32_t rule = 0;
    uint32_t to = 0;
    bool is_tail = false;
  };
  struct State {
    uint32_t bytes_begin = 0;  // into byte_edges
    uint32_t bytes_end = 0;
    uint32_t calls_begin = 0;  // into call_edges
    uint32_t calls_end = 0;
    uint32_t rule = 0;
    bool may_end = false;  // the rule may end here

    bool has_edges() const { return bytes_begin < bytes_end || calls_begin < calls_end; }
  };

  // An error for rules that no text of finite length matches, and for grammars that grow beyond
  // the limit of states.
  static Result<CompiledGrammar> compile(const GrammarTree& tree);

  std::vector<State> states;
  std::vector<ByteEdge> byte_edges;
  std::vector<CallEdge> call_edges;
  std::vector<uint32_t> rule_starts;  // the state that a rule begins in
  uint32_t root = 0;                  // a rule
  // Bytes of one class are alike to every edge.
  std::array<uint8_t, 256> class_of_byte{};
  uint32_t classes = 0;
};

}  // namespace vkformer
