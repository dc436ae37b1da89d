// Decoding steps of rows that carry recurrent states, one after the other in one graph. Callers say
// which slots each takes, and which tokens a slot's token follows.
#pragma once

#include "conformance/content.h"

namespace vkformer::conformance {

// One step: of each live slot its row, its position, and the row whose tokens it goes on from.
struct StateStep {
  std::vector<uint32_t> rows, positions, parents;
};

class StateSteps {
 public:
  // `beams`: rows of an item; `lines`: L of a row's states; `slots`: of every step, live or not.
  StateSteps(int64_t rows, uint32_t beams, uint32_t lines, int64_t slots,
             std::vector<StateStep> steps);

  int64_t rows() const { return rows_; }
  uint32_t lines() const { return lines_; }
  int64_t slots() const { return slots_; }
  size_t count() const { return steps_.size(); }
  // A case whose graph is such a step.
  CheckCase start() const;
  struct Bound {
    TensorId state, parents;
  };
  // The decode state and the parents of step `step`, in the graph.
  Result<Bound> bind(CheckCase& made, size_t step) const;
  // Rows (1, T, W) of x[step] (slots, W) that slot `slot` of the last step has seen, its own last.
  Array seen(const std::vector<Array>& x, size_t slot) const;
  // Slots that are live in the last step; in others there may be more.
  size_t live() const { return steps_.back().rows.size(); }

 private:
  struct Token {
    size_t step, slot;
  };

  int64_t rows_;
  uint32_t beams_, lines_;
  int64_t slots_;
  std::vector<StateStep> steps_;
  std::vector<std::vector<std::vector<Token>>> before_;  // by step and row: its tokens
  std::vector<std::vector<Token>> last_;                 // by slot of the last step
};

// The decode state before the first step of prompts of which each has one token less than the one
// before it, and their tokens.
int64_t prompt_end(int64_t item, int64_t tokens);
Tensor prompt_state(int64_t items, int64_t tokens, int64_t beams);

// Beams that change places, and rows that take several tokens a step and go back.
std::vector<std::pair<std::string, StateSteps>> state_steps();

}  // namespace vkformer::conformance
