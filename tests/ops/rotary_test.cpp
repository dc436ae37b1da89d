#include "ops/rotary.h"

#include <cmath>

#include "reference/rotary.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct RotaryCase {
  Shape shape;  // of x
  RotaryAttrs attrs;
  int64_t table_rows = 64;
  std::vector<uint32_t> positions;  // empty: counted
};

int64_t turned_width(const RotaryCase& c) {
  return c.attrs.rotary_width > 0 ? c.attrs.rotary_width : c.attrs.head_width;
}

int64_t rows_of(const RotaryCase& c) {
  return static_cast<int64_t>(row_count(c.shape));
}

// Any numbers turn a pair as well as cosines and sines do.
Array rotary_table(const RotaryCase& c) {
  return random_array({c.table_rows, turned_width(c)}, 5);
}

PreparedOperator prepare_rotary(const RotaryCase& c, const Array& x) {
  PreparedOperator op;
  RotaryInputs inputs;
  inputs.x = op.bind("x", reference::to_tensor(x));
  inputs.table = op.bind("table", reference::to_tensor(rotary_table(c)));
  if (!c.positions.empty()) {
    const auto count = static_cast<int64_t>(c.positions.size());
    inputs.positions = op.bind("positions", word_tensor(c.positions, {count}));
  }
  const auto y = add_rotary(op.graph, inputs, c.attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

Array expected_at(const RotaryCase& c, const Array& x, const std::vector<double>& positions) {
  reference::RotaryOptions options;
  options.heads = c.attrs.heads;
  options.head_width = c.attrs.head_width;
  if (c.attrs.pairs == RotaryPairs::kInterleaved) {
    options.pairing = reference::RotaryPairing::kInterleaved;
  }
  const Array at{{static_cast<int64_t>(positions.size())}, positions};
  return reference::rotary(x, rotary_table(c), at, options).value();
}

Array expected_rotary(const RotaryCase& c, const Array& x) {
  std::vector<double> positions(static_cast<size_t>(rows_of(c)));
  for (size_t row = 0; row < positions.size(); ++row) {
    const size_t tokens =
        c.attrs.tokens > 0 ? c.attrs.tokens : static_cast<size_t>(c.shape[c.shape.size() - 2]);
    positions[row] = static_cast<double>(row % tokens);
    if (!c.positions.empty()) positions[row] = c.positions[c.attrs.positions_at + row];
    positions[row] += c.attrs.position_offset;
  }
  return expected_at(c, x, positions);
}

void check_rotary_case(const RotaryCase& c) {
  const Array x = random_array(c.shape, static_cast<uint32_t>(c.shape.back()));
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_rotary(c, x)).at("y"), expected_rotary(c, x),
                tolerance_for(DType::kF32, 2));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("rotary agrees with the reference for every head width, pairing and rest") {
    for (const auto pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
      for (uint32_t head_width : {2u, 6u, 31u, 32u, 33u, 64u, 80u, 128u, 256u}) {
        const uint32_t even = head_width / 2 * 2;
        for (uint32_t turned : {2u, even}) {
          for (uint32_t rest : {0u, 1u, head_width + 3}) {
            RotaryCase c{{2, 5, 3 * head_width + rest}, {}, 64, {}};
            c.attrs = {.heads = 3,
                       .head_width = head_width,
                       .rotary_width = turned,
                       .pairs = pairs,
                       .position_offset = rest};
            if (c.attrs.position_offset > 50) c.attrs.position_offset = 50;
            check_rotary_case(c);
          }
        }
      }
    }
  }

  TEST_CASE("rotary turns the queries and keys of a merged row and copies the values") {
    RotaryCase c{{2, 9, 768 + 2 * 256}, {}, 64, {}};
    c.attrs = {.heads = 16, .head_width = 64};
    check_rotary_case(c);
    c.attrs.tokens = 18;  // a batch that is one long sequence
    check_rotary_case(c);
  }

  TEST_CASE("rotary takes positions from a tensor, and from the middle of one") {
    RotaryCase c{{7, 34}, {}, 64, {3, 0, 63, 5, 5, 1, 2, 60, 61, 62}};
    c.attrs = {.heads = 2, .head_width = 16};
    check_rotary_case(c);
    c.attrs.positions_at = 3;
    c.attrs.position_offset = 1;
    check_rotary_case(c);
  }

  TEST_CASE("rotary gives NaN for a position beyond the table and keeps the other columns") {
    RotaryCase c{{5, 20}, {}, 4, {3, 4, 0xffffffffu, 0, 0xfffffffeu}};
    c.attrs = {.heads = 2, .head_width = 8, .rotary_width = 6};
    check_rotary_case(c);
    c.attrs.position_offset = 2;  // the sum with the last ones wraps around to 0 and 1
    check_rotary_case(c);
    c.positions.clear();
    c.attrs.position_offset = 1;
    check_rotary_case(c);
  }

  TEST_CASE("rotary passes NaN and infinity on within their pair only") {
    RotaryCase c{{1, 3, 32}, {}, 4, {}};
    c.attrs = {.heads = 2, .head_width = 16, .rotary_width = 8};
    Array x = random_array(c.shape, 1);
    x[1] = kNan;
    x[32 + 16 + 7] = kInfinity;
    x[64 + 15] = kNan;  // a column that is copied
    for (const TierDevice& device : tier_devices()) {
      check_close(run_poisoned(device, prepare_rotary(c, x)).at("y"), expected_rotary(c, x),
                  tolerance_for(DType::kF32, 2));
    }
  }

  TEST_CASE("rotary folds many rows over two axes") {
    RotaryCase c{{2, 20000, 4}, {}, 20000, {}};
    c.attrs = {.heads = 1, .head_width = 4};
    check_rotary_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("rotary refuses inputs that do not fit") {
    const RotaryAttrs attrs{.heads = 2, .head_width = 8};
    const TensorDesc x = floats_desc({2, 3, 20});
    const TensorDesc table = floats_desc({9, 8});
    CHECK(check_rotary(x, table, attrs).ok());
    check_error(check_rotary({"x", DType::kU32, {2, 20}}, table, attrs), "rotary", "U32");
    check_error(check_rotary(floats_desc({}), table, attrs), "rotary", "()");
    check_error(check_rotary(floats_desc({3, 15}), table, attrs), "rotary", "(3, 15)");
    check_error(check_rotary(x, floats_desc({9, 6}), attrs), "rotary", "(9, 6)");
    check_error(check_rotary(x, floats_desc({9, 8, 1}), attrs), "rotary", "(9, 8, 1)");
    check_error(check_rotary(x, table, {.heads = 0, .head_width = 8}), "rotary", "0 heads");
    check_error(check_rotary(x, table, {.heads = 0x80000000u, .head_width = 8}), "rotary", "heads");
    check_error(check_rotary(x, table, {.heads = 1, .head_width = 7}), "rotary", "7");
    check_error(check_rotary(x, table, {.heads = 1, .head_width = 0}), "rotary", "0");
    check_error(check_rotary(x, table, {.heads = 1, .head_width = 8, .rotary_width = 10}), "rotary",
                "10");
    const TensorDesc positions{"positions", DType::kU32, {6}};
    CHECK(check_rotary_positions(positions, x, attrs).ok());
    RotaryAttrs later = attrs;
    later.positions_at = 1;
    check_error(check_rotary_positions(positions, x, later), "rotary", "7 elements");
    check_error(check_rotary_positions(floats_desc({6}), x, attrs), "rotary", "F32");
  }

  TEST_CASE("rotary plans one dispatch of its kernel, without aliasing") {
    PreparedOperator op;
    RotaryInputs inputs;
    inputs.table = op.graph.add_external("table", DType::kF32, {5, 8});
    inputs.x = op.graph.add_external("x", DType::kF32, {5, 64});
    const RotaryAttrs attrs{.heads = 2, .head_width = 8};
    for (int i = 0; i < 3; ++i) inputs.x = add_rotary(op.graph, inputs, attrs).value();
    op.name_output(inputs.x, "x3");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "rotary_row__f32_f32_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
