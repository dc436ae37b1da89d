#include "ops/recurrent_cell.h"

#include "reference/recurrence.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct RecurrentCellCase {
  CellKind cell = CellKind::kGru;
  int64_t rows = 3;
  int64_t width = 7;
  int64_t offset = 0;  // columns before the gates of a row
};

// The carry is written in place, so a test runs once.
PreparedOperator prepare_recurrent_cell(const RecurrentCellCase& c, const Array& gates,
                                        const Array& states, const Array& carry) {
  PreparedOperator op;
  RecurrentCellInputs inputs;
  inputs.gates = op.bind("gates", reference::to_tensor(gates));
  inputs.states = op.bind("states", reference::to_tensor(states));
  inputs.carry = op.bind("carry", reference::to_tensor(carry));
  const auto stride = static_cast<uint32_t>(gates.dim(1));
  const auto h = add_recurrent_cell(
      op.graph, inputs,
      {.cell = c.cell, .offset = static_cast<uint32_t>(c.offset), .stride = stride});
  REQUIRE_MESSAGE(h.ok(), h.error().message);
  op.name_output(*h, "h");
  return op;
}

Array without_offset(const Array& gates, int64_t offset) {
  const int64_t width = gates.dim(1) - offset;
  Array cut = reference::filled({gates.dim(0), width}, 0.0);
  for (int64_t i = 0; i < cut.size(); ++i) {
    cut[i] = gates[i / width * gates.dim(1) + offset + i % width];
  }
  return cut;
}

void check_recurrent_cell_case(const RecurrentCellCase& c, double special) {
  const int64_t line = gates_of(c.cell) * c.width;
  Array gates = random_array({c.rows, c.offset + line}, 1, 2.0);
  const Array states = random_array({c.rows, line}, 2, 2.0);
  const Array carry = random_array({c.rows, c.width}, 3);
  if (special != 0) gates[c.offset + line / 2] = special;
  const auto kind =
      c.cell == CellKind::kLstm ? reference::CellKind::kLstm : reference::CellKind::kGru;
  const Array both =
      reference::recurrent_cell(without_offset(gates, c.offset), states, carry, kind).value();
  Array expected = reference::filled({c.rows, c.width}, 0.0);
  for (int64_t i = 0; i < expected.size(); ++i) {
    expected[i] = both[i / c.width * 2 * c.width + i % c.width];
  }
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const PreparedOperator op = prepare_recurrent_cell(c, gates, states, carry);
    GraphRunOptions options;
    options.poison = GraphRunOptions::Poison::kOn;
    const auto report = run_graph(device.device, op.graph, op.inputs, options);
    REQUIRE_MESSAGE(report.ok(), report.error().message);
    check_close(report->outputs.at("h"), expected, tolerance_for(DType::kF32, 64));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("recurrent_cell agrees with the reference for every width, gates inside longer rows") {
    for (CellKind cell : {CellKind::kGru, CellKind::kLstm}) {
      for (int64_t width : conformance::kRowWidths)
        check_recurrent_cell_case({.cell = cell, .width = width}, 0);
      check_recurrent_cell_case({.cell = cell, .rows = 5, .width = 9, .offset = 11}, 0);
      check_recurrent_cell_case({.cell = cell, .rows = 1, .width = 5000}, 0);
    }
  }

  TEST_CASE("recurrent_cell passes NaN on and takes infinities") {
    for (CellKind cell : {CellKind::kGru, CellKind::kLstm}) {
      for (double special : {double{kNan}, double{kInfinity}, double{-kInfinity}}) {
        check_recurrent_cell_case({.cell = cell}, special);
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("recurrent_cell refuses inputs that do not fit") {
    const TensorDesc gates = floats_desc({2, 12});
    const TensorDesc states = floats_desc({2, 12});
    const TensorDesc carry = floats_desc({2, 4});
    CHECK(check_recurrent_cell(gates, states, carry, {}).ok());
    check_error(check_recurrent_cell(gates, states, carry, {.cell = CellKind::kLstm}),
                "recurrent_cell", "(2, 16)");
    check_error(check_recurrent_cell(gates, states, floats_desc({3, 4}), {}), "recurrent_cell",
                "(3, 12)");
    check_error(check_recurrent_cell(gates, states, carry, {.offset = 1}), "recurrent_cell",
                "element 25");
    check_error(check_recurrent_cell(gates, states, carry, {.stride = 100}), "recurrent_cell",
                "element 112");
    check_error(check_recurrent_cell(gates, states, floats_desc({2, 4, 1}), {}), "recurrent_cell",
                "(R, Hd)");
  }

  TEST_CASE("recurrent_cell plans one dispatch, without aliasing") {
    const PreparedOperator op = prepare_recurrent_cell(
        {}, random_array({3, 21}, 1), random_array({3, 21}, 2), random_array({3, 7}, 3));
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "recurrent_cell_run__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
