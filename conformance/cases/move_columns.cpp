// The cases of move_columns: its checks, and what the benchmark times.
#include "ops/move_columns.h"
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/step_cases.h"
#include "ops/additive_attention.h"

namespace vkformer::conformance {
namespace {

// Columns [first, first + width) of every row, and zeros beside them.
Result<CheckCase> columns_case(const Shape& shape, int64_t first, int64_t width) {
  const Array x = random_array(shape, 1, Content::kSpecial);
  Array y = reference::filled({shape[0], width}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i / width * shape[1] + first + i % width];
  CheckCase made;
  const TensorId from = made.op.bind("x", floats(x));
  VKF_ASSIGN(const TensorId to,
             add_columns(made.op.graph, from, {u32(first), u32(shape[1])}, {shape[0], width}));
  made.op.name_output(to, "Y");
  made.expected.emplace("Y", Expected{std::move(y)});
  return made;
}

// The columns that the position before left, and the own ones where they go.
Result<CheckCase> state_case(int64_t width, uint32_t position) {
  Array states = random_array({kSlots, 2, width + 3}, 3);
  CheckCase made = step_case();
  StateCache cache;
  cache.cache = made.op.bind("cache", floats(states));
  std::vector<uint32_t> ancestry;
  for (uint32_t row = 0; row < kSlots; ++row) {
    for (uint32_t t = 0; t < 4; ++t) ancestry.push_back((row + t) % u32(kSlots));
  }
  Tensor aux = words(ancestry);
  aux.shape = {kSlots, 4};
  cache.ancestry = made.op.bind("ancestry", std::move(aux));
  cache.state = made.op.bind("state", state_of(position));
  cache.capacity = 4;
  cache.beams = u32(kSlots);
  VKF_ASSIGN(const TensorId y, add_load_state(made.op.graph, cache, 1, width));
  made.op.name_output(y, "y");
  VKF_CHECK(add_store_state(made.op.graph, y, cache, 2));
  Array loaded = reference::filled({kSlots, width}, kUntouched);
  Array after = states;
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const uint32_t row = kLiveRows[slot];
    const uint32_t owner = position == 0 ? 0 : ancestry[row * 4 + position - 1];
    const int64_t from = (2 * owner + (position + 1) % 2) * (width + 3);
    const int64_t to = (2 * row + position % 2) * (width + 3);
    for (int64_t i = 0; i < width; ++i) {
      loaded[static_cast<int64_t>(slot) * width + i] = states[from + 1 + i];
      after[to + 2 + i] = states[from + 1 + i];
    }
  }
  made.expected.emplace("y", Expected{std::move(loaded)});
  made.expected.emplace("cache", Expected{std::move(after)});
  return made;
}

}  // namespace

void move_columns_cases(OperatorCases& cases) {
  for (const RowSize& size : move_sizes()) {
    cases.check("plain/" + size.name, size.quick, [=] {
      return columns_case({size.shape[0], size.shape[1] + 5}, 3, size.shape[1]);
    });
  }
  for (const int64_t width : {int64_t{1}, int64_t{31}, int64_t{33}, int64_t{768}}) {
    for (const uint32_t position : {0u, 1u, 2u}) {
      cases.check("step/" + size_text({width, position}), width == 33,
                  [=] { return state_case(width, position); });
    }
  }
  cases.time("gru 256 8x50", {"gru", "{}"},
             "X=8,50,256 weight_ih=768,256 weight_hh=768,256 h0=8,256");
  cases.limited_by("a small copy: the dispatch itself is the cost");
}

}  // namespace vkformer::conformance
