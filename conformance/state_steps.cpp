#include "conformance/state_steps.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/narrow.h"
#include "ops/parent_lines.h"
#include "params/decode_state.h"

namespace vkformer::conformance {
namespace {

constexpr int64_t kPositions = 8;  // of a row

}  // namespace

StateSteps::StateSteps(int64_t rows, uint32_t beams, uint32_t lines, int64_t slots,
                       std::vector<StateStep> steps)
    : rows_(rows), beams_(beams), lines_(lines), slots_(slots), steps_(std::move(steps)) {
  std::vector<std::vector<Token>> history(static_cast<size_t>(rows_));
  for (size_t s = 0; s < steps_.size(); ++s) {
    const StateStep& step = steps_[s];
    std::vector<std::vector<Token>> base = history, after = history;
    last_.assign(step.rows.size(), {});
    // By position, for slots may have a row's tokens in any order.
    std::vector<size_t> order(step.rows.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return step.positions[a] < step.positions[b]; });
    std::set<uint32_t> begun;
    for (const size_t slot : order) {
      const uint32_t row = step.rows[slot];
      const bool first = begun.insert(row).second;
      std::vector<Token> tokens = first ? history[step.parents[slot]] : after[row];
      tokens.resize(step.positions[slot]);
      if (first) base[row] = tokens;
      tokens.push_back({s, slot});
      after[row] = tokens;
      last_[slot] = std::move(tokens);
    }
    before_.push_back(std::move(base));
    history = std::move(after);
  }
}

CheckCase StateSteps::start() const {
  CheckCase made;
  made.op.graph.set_step(u32(slots_));
  // All steps are dispatched for as many slots; each step's state says which of them are live.
  size_t most = 0;
  for (const StateStep& step : steps_) most = std::max(most, step.rows.size());
  made.live_slots = u32(static_cast<int64_t>(most));
  return made;
}

Result<StateSteps::Bound> StateSteps::bind(CheckCase& made, size_t s) const {
  const StateStep& step = steps_[s];
  const uint32_t position = *std::max_element(step.positions.begin(), step.positions.end());
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[0] = list[1] = u32(static_cast<int64_t>(step.rows.size()));
  list[2] = position;
  for (size_t slot = 0; slot < step.rows.size(); ++slot) {
    list[VKF_STATE_WORDS + slot] = step.rows[slot] | (position - step.positions[slot])
                                                         << VKF_SLOT_ROW_BITS;
  }
  std::vector<uint32_t> owners(static_cast<size_t>(rows_ * kPositions), 0u);
  for (size_t row = 0; row < before_[s].size(); ++row) {
    for (size_t at = 0; at < before_[s][row].size(); ++at) {
      const Token& token = before_[s][row][at];
      owners[row * kPositions + at] = steps_[token.step].rows[token.slot];
    }
  }
  const std::string number = std::to_string(s);
  const TensorId state = made.op.bind("state" + number, words(list));
  const TensorId ancestry = made.op.bind("ancestry" + number, words(owners));
  VKF_ASSIGN(const TensorId parents, add_parent_lines(made.op.graph, ancestry, state,
                                                      {.positions = kPositions,
                                                       .lines = lines_,
                                                       .beams = beams_,
                                                       .runs = ParentLinesAttrs::Runs::kYes}));
  return Bound{state, parents};
}

Array StateSteps::seen(const std::vector<Array>& x, size_t slot) const {
  const std::vector<Token>& tokens = last_[slot];
  const int64_t width = x[0].dim(1);
  Array all = reference::filled({1, static_cast<int64_t>(tokens.size()), width}, 0.0);
  for (size_t t = 0; t < tokens.size(); ++t) {
    std::copy_n(x[tokens[t].step].data.begin() + static_cast<int64_t>(tokens[t].slot) * width,
                width, all.data.begin() + static_cast<int64_t>(t) * width);
  }
  return all;
}

int64_t prompt_end(int64_t item, int64_t tokens) {
  return std::max<int64_t>(0, tokens - item);
}

Tensor prompt_state(int64_t items, int64_t tokens, int64_t beams) {
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[2] = u32(tokens);
  for (int64_t row = 0; row < items * beams; ++row) {
    const int64_t start = tokens - prompt_end(row / beams, tokens);
    list[VKF_STATE_WORDS + static_cast<size_t>(row)] = u32(row) | u32(start) << VKF_SLOT_ROW_BITS;
  }
  return words(list);
}

std::vector<std::pair<std::string, StateSteps>> state_steps() {
  const std::vector<uint32_t> beams = {3, 0, 2};
  return {{"beams", StateSteps(4, 4, 2, 5,
                               {{beams, {0, 0, 0}, beams},
                                {beams, {1, 1, 1}, {3, 2, 0}},
                                {beams, {2, 2, 2}, {2, 2, 3}}})},
          {"runs", StateSteps(3, 1, 3, 5,
                              {{{1, 1, 1, 0}, {0, 1, 2, 0}, {1, 1, 1, 0}},
                               {{0, 1, 1, 1, 1}, {1, 3, 4, 5, 6}, {0, 1, 1, 1, 1}},
                               {{1, 2, 2, 1}, {7, 1, 0, 6}, {1, 2, 2, 1}}})}};
}

}  // namespace vkformer::conformance
