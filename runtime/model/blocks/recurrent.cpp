#include "model/blocks/recurrent.h"

#include "model/blocks/stack.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/move_columns.h"
#include "ops/recurrence.h"

namespace vkformer {
namespace {

constexpr uint32_t kZeroRow = ~0u;  // gather_rows gives zeros for it

TensorId fed_rows(ModelBuilder& b, const std::string& name, Shape shape) {
  const TensorId known = b.graph().find_external(name);
  if (known != kNoTensor) return known;
  const TensorId rows = b.graph().add_external(name, DType::kU32, std::move(shape));
  b.feed(name, rows);
  return rows;
}

struct Direction {
  TensorId states = kNoTensor;  // (B, S, He), in the order of the tokens
  TensorId final = kNoTensor;   // (B, He)
};

// One direction of one layer: x (B, S, in).
Result<Direction> add_side(ModelBuilder& b, const RecurrentEncoder& c, const std::string& layer,
                           const std::string& direction, TensorId x) {
  Graph& g = b.graph();
  const std::string name = layer + "." + direction;
  const Shape shape = g.tensor(x).shape;
  const Shape tokens = {shape[0], shape[1]};
  g.set_scope(name);
  VKF_ASSIGN(x, add_gather_rows(g, {.x = x, .indices = fed_rows(b, "order_" + direction, tokens)}));
  VKF_ASSIGN(TensorId gates, add_named_linear(b, name + ".input", x));
  VKF_ASSIGN(LinearWeight weight, b.linear(name + ".state"));
  g.set_scope(name);
  VKF_ASSIGN(TensorId states,
             add_recurrence(g, {.gates = gates, .weight = weight}, {.cell = c.cell}));
  if (c.cell == CellKind::kLstm) {
    const auto width = static_cast<uint32_t>(2 * c.width);
    VKF_ASSIGN(states, add_columns(g, states, {0, width}, {shape[0], shape[1], c.width}));
  }
  Direction side;
  VKF_ASSIGN(side.final,
             add_gather_rows(g, {.x = states, .indices = fed_rows(b, "order_last", {shape[0]})}));
  VKF_ASSIGN(
      side.states,
      add_gather_rows(g, {.x = states, .indices = fed_rows(b, "place_" + direction, tokens)}));
  return side;
}

}  // namespace

void add_cell_rows(WeightTable& table, CellKind cell, const CellRows& rows) {
  const auto add = [&](const char* name, const char* kind, int64_t k) {
    table.rows.push_back({.name = rows.to + name,
                          .sources = {rows.from + ".weight_" + kind + rows.suffix},
                          .biases = {rows.from + ".bias_" + kind + rows.suffix},
                          .rows = gates_of(cell) * rows.width,
                          .width = k});
  };
  add(".input", "ih", rows.input);
  add(".state", "hh", rows.width);
}

void add_encoder_cells(WeightTable& table, const RecurrentEncoder& c, const std::string& from,
                       int64_t input) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = "encoder." + std::to_string(i);
    CellRows rows{layer + ".forward", from, "_l" + std::to_string(i), i == 0 ? input : c.output(),
                  c.width};
    add_cell_rows(table, c.cell, rows);
    if (c.directions == RecurrentEncoder::Directions::kForward) continue;
    rows.to = layer + ".backward";
    rows.suffix += "_reverse";
    add_cell_rows(table, c.cell, rows);
  }
}

void add_token_order(ForwardInputs& inputs) {
  const auto batch = static_cast<uint32_t>(inputs.shape.batch);
  const auto tokens = static_cast<uint32_t>(inputs.shape.source);
  const std::vector<uint32_t> mask = inputs.words["key_mask"];
  const uint32_t line = (tokens + 31) / 32;
  const size_t count = size_t{batch} * tokens;
  const auto fill = [&](const char* name, size_t size) -> std::vector<uint32_t>& {
    std::vector<uint32_t>& words = inputs.words[name];
    words.assign(size, kZeroRow);
    return words;
  };
  std::vector<uint32_t>& forward = fill("order_forward", count);
  std::vector<uint32_t>& backward = fill("order_backward", count);
  std::vector<uint32_t>& from_forward = fill("place_forward", count);
  std::vector<uint32_t>& from_backward = fill("place_backward", count);
  std::vector<uint32_t>& last = fill("order_last", batch);
  for (uint32_t i = 0; i < batch; ++i) {
    std::vector<uint32_t> real;
    for (uint32_t j = 0; j < tokens; ++j) {
      if ((mask[i * line + j / 32] >> (j % 32) & 1u) != 0) real.push_back(i * tokens + j);
    }
    const auto kept = static_cast<uint32_t>(real.size());
    for (uint32_t n = 0; n < kept; ++n) {
      forward[i * tokens + n] = real[n];
      from_forward[real[n]] = i * tokens + n;
      backward[i * tokens + n] = real[kept - 1 - n];
      from_backward[real[n]] = i * tokens + kept - 1 - n;
    }
    if (kept > 0) last[i] = i * tokens + kept - 1;
  }
}

Result<RecurrentMemory> add_recurrent_encoder(ModelBuilder& b, const RecurrentEncoder& c,
                                              const ForwardTaps& taps, TensorId x) {
  RecurrentMemory memory;
  for (int64_t i = 0; i < c.layers; ++i) {
    if (taps.hidden_states == ForwardTaps::Tap::kOn) {
      b.mark_output(x, "encoder_hidden_states." + std::to_string(i));
    }
    const std::string layer = "encoder." + std::to_string(i);
    VKF_ASSIGN(const Direction forward, add_side(b, c, layer, "forward", x));
    memory = {.states = forward.states, .forward = forward.final};
    if (c.directions == RecurrentEncoder::Directions::kBoth) {
      VKF_ASSIGN(const Direction backward, add_side(b, c, layer, "backward", x));
      b.graph().set_scope(layer);
      VKF_ASSIGN(memory.states, add_concat_columns(b.graph(), forward.states, backward.states));
      memory.backward = backward.final;
    }
    x = memory.states;
  }
  return memory;
}

}  // namespace vkformer
