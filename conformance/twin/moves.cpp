// Operators that copy, as parts of graphs with others.
#include <algorithm>

#include "conformance/twin/twin_run.h"
#include "ops/node_attrs.h"
#include "ops/parent_lines.h"
#include "params/state_scan.h"

namespace vkformer::conformance {
namespace {

// Loads and stores of states have none.
bool twin_move_columns(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<MoveColumnsAttrs>(node);
  if (a.kind != MoveColumnsAttrs::Kind::kPlain) return false;
  Memory& y = run.out(node);
  for (size_t row = 0; row < a.params.rows; ++row) {
    for (size_t i = 0; i < a.params.width; ++i) {
      const size_t from = a.params.x_offset + row * a.params.x_stride + i;
      const size_t to = a.params.y_offset + row * a.params.y_stride + i;
      y.words[to] = TwinRun::has(node, 0) ? run.in(node, 0).words[from] : 0;
    }
  }
  return true;
}

bool twin_concat_columns(TwinRun& run, const Node& node) {
  const Memory &a = run.in(node, 0), &b = run.in(node, 1);
  Memory& y = run.out(node);
  const size_t width = y.width(), first = a.width();
  for (size_t i = 0; i < y.words.size(); ++i) {
    const size_t row = i / width, column = i % width;
    y.words[i] =
        column < first ? a.words[row * first + column] : b.words[row * b.width() + column - first];
  }
  return true;
}

bool twin_parent_lines(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<ParentLinesAttrs>(node);
  const Memory& ancestry = run.in(node, 0);
  const TwinSlots slots{run.in(node, 1)};
  Memory& y = run.out(node);
  for (size_t slot = 0; slot < slots.live(); ++slot) {
    const uint32_t row = slots.row(slot), position = slots.position(slot);
    uint32_t next = VKF_NO_SLOT, line = VKF_LINE_FRESH;
    bool continued = false;
    for (size_t other = 0; a.runs == ParentLinesAttrs::Runs::kYes && other < slots.live();
         ++other) {
      if (slots.row(other) != row) continue;
      if (slots.position(other) == position + 1) next = static_cast<uint32_t>(other);
      continued = continued || slots.position(other) + 1 == position;
    }
    if (position > 0) {
      const size_t at = size_t{row} * a.positions + position - 1;
      const uint32_t owner = a.beams == 1 ? row : ancestry.words[at];
      line = owner * a.lines + (position - 1) % a.lines;
    }
    y.words[slot] = (continued ? VKF_LINE_CONTINUED : line) << 12 | next;
  }
  return true;
}

constexpr TwinOp kMoveTwins[] = {{"concat_columns", twin_concat_columns},
                                 {"move_columns", twin_move_columns},
                                 {"parent_lines", twin_parent_lines}};

}  // namespace

std::span<const TwinOp> move_twins() {
  return kMoveTwins;
}

}  // namespace vkformer::conformance
