#include "ops/recurrence.h"

#include "reference/recurrence.h"
#include "support/matrix_rounding.h"
#include "support/operator_check.h"
#include "weights/pack_matrix.h"

namespace vkformer::testing {
namespace {

struct RecurrenceCase {
  CellKind cell = CellKind::kGru;
  int64_t batch = 2;   // B
  int64_t tokens = 5;  // T
  int64_t width = 7;   // Hd
  bool bias = true;
  bool initial = true;
  MatrixFormat format = MatrixFormat::kF32;
};

struct RecurrenceProblem {
  Array gates;               // (B, T, G Hd)
  std::vector<float> given;  // (G Hd, Hd)
  Array weight;              // what it rounds to
  Array bias;
  Array initial;  // (B, St)
};

RecurrenceProblem make_recurrence_problem(const RecurrenceCase& c, uint32_t seed) {
  const int64_t line = gates_of(c.cell) * c.width;
  RecurrenceProblem p;
  p.gates = random_array({c.batch, c.tokens, line}, seed);
  p.weight = random_array({line, c.width}, seed + 1, 1 / std::sqrt(static_cast<double>(c.width)));
  p.given.assign(p.weight.data.begin(), p.weight.data.end());
  p.weight = round_to_format(p.weight, c.format, MatrixOrder::kOutIn);
  p.bias = random_array({line}, seed + 2, 0.3);
  p.initial = random_array({c.batch, c.width * states_of(c.cell)}, seed + 3, 0.5);
  return p;
}

PreparedOperator prepare_recurrence(const RecurrenceCase& c, const RecurrenceProblem& p) {
  std::vector<float> bias(p.bias.data.begin(), p.bias.data.end());
  if (!c.bias) bias.clear();
  const int64_t line = gates_of(c.cell) * c.width;
  const auto packed = pack_matrix(p.given, {line, c.width, MatrixOrder::kOutIn}, bias, c.format);
  REQUIRE(packed.ok());
  PreparedOperator op;
  const auto words = static_cast<int64_t>(packed->words.size());
  RecurrenceInputs inputs;
  inputs.weight = {.tensor = op.bind("weight", word_tensor(packed->words, {words})),
                   .n = static_cast<uint32_t>(line),
                   .k = static_cast<uint32_t>(c.width),
                   .bias_offset = packed->bias_offset,
                   .format = c.format};
  inputs.gates = op.bind("gates", reference::to_tensor(p.gates));
  if (c.initial) inputs.initial = op.bind("initial", reference::to_tensor(p.initial));
  const auto y = add_recurrence(op.graph, inputs, {.cell = c.cell});
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

Array expected_recurrence(const RecurrenceCase& c, const RecurrenceProblem& p) {
  const reference::RecurrenceInputs inputs{.weight = p.weight,
                                           .bias = c.bias ? &p.bias : nullptr,
                                           .initial = c.initial ? &p.initial : nullptr};
  const auto cell =
      c.cell == CellKind::kLstm ? reference::CellKind::kLstm : reference::CellKind::kGru;
  return reference::recurrence(p.gates, inputs, cell).value();
}

void check_recurrence_case(const RecurrenceCase& c, uint32_t seed = 1) {
  CAPTURE(c.width);
  CAPTURE(c.tokens);
  const RecurrenceProblem p = make_recurrence_problem(c, seed);
  const Array expected = expected_recurrence(c, p);
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    // Errors of a step go into the next one.
    check_close(run_poisoned(device, prepare_recurrence(c, p)).at("y"), expected,
                tolerance_for(DType::kF32, 64 * c.width));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("recurrence agrees with the reference for every width of a fused layer") {
    for (int64_t width : {1, 7, 31, 32, 33, 127, 128, 129, 256}) {
      check_recurrence_case({.width = width}, static_cast<uint32_t>(width));
      check_recurrence_case({.cell = CellKind::kLstm, .tokens = 3, .width = width}, 7);
    }
  }

  TEST_CASE("recurrence goes on from dispatch to dispatch and without bias or initial state") {
    for (CellKind cell : {CellKind::kGru, CellKind::kLstm}) {
      check_recurrence_case({.cell = cell, .batch = 1, .tokens = 1, .width = 5, .initial = false});
      check_recurrence_case({.cell = cell, .tokens = 40, .width = 130, .bias = false});
      check_recurrence_case(
          {.cell = cell, .batch = 3, .tokens = 333, .width = 3, .initial = false});
    }
  }

  TEST_CASE("recurrence takes wide layers a token at a time, and halves") {
    for (CellKind cell : {CellKind::kGru, CellKind::kLstm}) {
      check_recurrence_case({.cell = cell, .tokens = 3, .width = 257});
      check_recurrence_case({.cell = cell, .tokens = 2, .width = 263, .initial = false});
      check_recurrence_case({.cell = cell, .width = 37, .format = MatrixFormat::kF16});
      check_recurrence_case(
          {.cell = cell, .tokens = 2, .width = 259, .format = MatrixFormat::kF16});
      for (MatrixFormat format : {MatrixFormat::kBF16, MatrixFormat::kQ8, MatrixFormat::kQ4M}) {
        check_recurrence_case({.cell = cell, .tokens = 2, .width = 67, .format = format});
      }
    }
  }

  TEST_CASE("recurrence passes NaN on to the row's later tokens and to no other row") {
    for (CellKind cell : {CellKind::kGru, CellKind::kLstm}) {
      const RecurrenceCase c{.cell = cell, .batch = 3, .tokens = 4, .width = 6};
      RecurrenceProblem p = make_recurrence_problem(c, 5);
      const int64_t line = gates_of(cell) * c.width;
      p.gates[(1 * 4 + 2) * line + 3] = kNan;
      p.gates[(2 * 4 + 1) * line + 2 * c.width] = kInfinity;
      for (const TierDevice& device : tier_devices()) {
        check_close(run_poisoned(device, prepare_recurrence(c, p)).at("y"),
                    expected_recurrence(c, p), tolerance_for(DType::kF32, 64));
      }
    }
  }

  TEST_CASE("recurrence gives a row the same bits whatever else is in the batch") {
    for (int64_t width : {24, 300}) {
      const RecurrenceCase c{.batch = 5, .tokens = 4, .width = width};
      const RecurrenceProblem p = make_recurrence_problem(c, 9);
      RecurrenceCase alone = c;
      alone.batch = 1;
      RecurrenceProblem first = p;
      first.gates.shape[0] = 1;
      first.gates.data.resize(static_cast<size_t>(4 * 3 * width));
      first.initial.shape[0] = 1;
      first.initial.data.resize(static_cast<size_t>(width));
      if (width > int64_t{kMostFusedRecurrence}) continue;  // the product's own tests
      for (const TierDevice& device : tier_devices()) {
        const Tensor all = run_poisoned(device, prepare_recurrence(c, p)).at("y");
        const Tensor one = run_poisoned(device, prepare_recurrence(alone, first)).at("y");
        CHECK(std::equal(one.bytes.begin(), one.bytes.end(), all.bytes.begin()));
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("recurrence refuses inputs that do not fit") {
    const LinearWeight weight{.n = 12, .k = 4};
    const RecurrenceAttrs gru;
    const TensorDesc gates = floats_desc({2, 3, 12});
    CHECK(check_recurrence(gates, weight, nullptr, gru).ok());
    check_error(check_recurrence(gates, weight, nullptr, {CellKind::kLstm}), "recurrence",
                "(4 Hd, Hd)");
    check_error(check_recurrence(floats_desc({2, 3, 13}), weight, nullptr, gru), "recurrence",
                "(2, 3, 13)");
    check_error(check_recurrence(floats_desc({2, 0, 12}), weight, nullptr, gru), "recurrence",
                "at least one");
    const TensorDesc initial = floats_desc({2, 5});
    check_error(check_recurrence(gates, weight, &initial, gru), "recurrence", "(2, 4)");
    const TensorDesc ids{"ids", DType::kU32, {2, 3, 12}};
    check_error(check_recurrence(ids, weight, nullptr, gru), "recurrence", "U32");
  }

  TEST_CASE(
      "recurrence plans many tokens to a dispatch, or a product and a cell, without aliasing") {
    const RecurrenceCase narrow{.batch = 3, .tokens = 20, .width = 16};
    const PreparedOperator op = prepare_recurrence(narrow, make_recurrence_problem(narrow, 1));
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "recurrence_run__f32_f32_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
    const RecurrenceCase wide{.cell = CellKind::kLstm, .batch = 1, .tokens = 2, .width = 300};
    const PreparedOperator steps = prepare_recurrence(wide, make_recurrence_problem(wide, 1));
    const Plan walked =
        plan_with_kernel(steps.graph, Tier::kSubgroup, "recurrent_cell_run__f32_none_f32");
    CHECK(walked.dispatches.size() == 2 + 2 * 4);
    check_no_aliasing(walked);
  }
}

}  // namespace vkformer::testing
