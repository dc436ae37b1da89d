// The cases of parent_lines: its checks, and what the benchmark times.
#include "ops/parent_lines.h"

#include "base/check.h"
#include "conformance/cases.h"
#include "conformance/step_cases.h"
#include "conformance/step_graph.h"
#include "params/decode_state.h"
#include "params/state_scan.h"

namespace vkformer::conformance {
namespace {

struct Lines {
  const char* name;
  uint32_t beams, lines, position;
  std::vector<uint32_t> entries;  // a row, and how much shorter its prompt is
  std::vector<uint32_t> expected;
};

constexpr uint32_t entry(uint32_t row, uint32_t start) {
  return row | start << VKF_SLOT_ROW_BITS;
}

// A slot's word: the line that it goes on from, and the slot with the next token of its row.
constexpr uint32_t before(uint32_t line, uint32_t next) {
  return line << 12 | next;
}
constexpr uint32_t alone(uint32_t line) {
  return before(line, VKF_NO_SLOT);
}

Result<CheckCase> lines_case(const Lines& c) {
  constexpr int64_t kRows = 6, kPositions = 9;
  std::vector<uint32_t> owners(kRows * kPositions);
  // Position t of row r is row (r + t) mod R's.
  for (uint32_t i = 0; i < owners.size(); ++i) {
    owners[i] = (i / kPositions + i % kPositions) % kRows;
  }
  CheckCase made;
  made.op.graph.set_step(kSlots);
  made.live_slots = static_cast<uint32_t>(c.entries.size());
  const TensorId ancestry = made.op.bind("ancestry", words(owners));
  const TensorId state = made.op.bind("state", state_of(c.position, c.entries));
  VKF_ASSIGN(const TensorId y, add_parent_lines(made.op.graph, ancestry, state,
                                                {.positions = kPositions,
                                                 .lines = c.lines,
                                                 .beams = c.beams,
                                                 .runs = ParentLinesAttrs::Runs::kYes}));
  made.op.name_output(y, "parents");
  // What the other slots hold is the poison of words.
  Array expected = reference::filled({VKF_MAX_SLOTS}, 0x7fc0dead);
  for (size_t slot = 0; slot < c.expected.size(); ++slot) {
    expected[static_cast<int64_t>(slot)] = c.expected[slot];
  }
  made.expected.emplace("parents", Expected{std::move(expected)});
  return made;
}

Status lines_graph(StepGraph& in) {
  const int64_t slots = in.number("slots");
  const TensorId state = in.state(slots, slots, 100);
  const TensorId ancestry = in.words("ancestry", {slots, 128},
                                     std::vector<uint32_t>(static_cast<size_t>(slots) * 128, 0u));
  VKF_ASSIGN(const TensorId y, add_parent_lines(in.graph(), ancestry, state,
                                                {.positions = 128, .lines = 2, .beams = 4}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void parent_lines_cases(OperatorCases& cases) {
  const Lines all[] = {
      {"beams", 3, 2, 5, {4, 0, entry(3, 2)}, {alone(2 * 2 + 0), alone(2 * 4), alone(2 * 5)}},
      {"fresh", 3, 2, 2, {entry(5, 2), 1}, {alone(VKF_LINE_FRESH), alone(2 * 2 + 1)}},
      {"runs",
       1,
       5,
       8,
       {entry(2, 6), entry(2, 7), 5, entry(4, 1), entry(2, 8)},
       {alone(VKF_LINE_CONTINUED), before(VKF_LINE_CONTINUED, 0), alone(5 * 5 + 2),
        alone(5 * 4 + 1), before(VKF_LINE_FRESH, 1)}}};
  for (const Lines& c : all) {
    cases.check(c.name, true, [=] { return lines_case(c); });
  }
  cases.time_graph("mamba2 decode 16", "slots=16", lines_graph);
  cases.limited_by("a word for every slot");
}

}  // namespace vkformer::conformance
