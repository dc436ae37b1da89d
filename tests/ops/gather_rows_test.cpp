#include "ops/gather_rows.h"

#include "reference/gather_rows.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct GatherRowsCase {
  Array x;       // (..., D)
  Array addend;  // (P, D), or empty
  Shape shape;   // of the indices
  std::vector<uint32_t> indices;
};

// About one index in eight has no row.
GatherRowsCase make_gather_rows_case(const Shape& x, const Shape& shape, uint32_t seed) {
  GatherRowsCase c{random_array(x, seed), {}, shape, {}};
  std::mt19937 engine(seed);
  const auto rows = static_cast<uint32_t>(row_count(x));
  std::uniform_int_distribution<uint32_t> index(0, rows - 1 + rows / 7 + 1);
  c.indices.resize(static_cast<size_t>(element_count(shape)));
  for (uint32_t& value : c.indices) value = index(engine);
  c.indices.back() = 0xffffffffu;
  return c;
}

PreparedOperator prepare_gather_rows(const GatherRowsCase& c) {
  PreparedOperator op;
  GatherRowsInputs inputs;
  inputs.x = op.bind("x", reference::to_tensor(c.x));
  inputs.indices = op.bind("indices", word_tensor(c.indices, c.shape));
  if (!c.addend.data.empty()) inputs.addend = op.bind("addend", reference::to_tensor(c.addend));
  const auto y = add_gather_rows(op.graph, inputs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_gather_rows_case(const GatherRowsCase& c) {
  const Array indices{c.shape, {c.indices.begin(), c.indices.end()}};
  const Array* addend = c.addend.data.empty() ? nullptr : &c.addend;
  const Array expected = reference::gather_rows(c.x, indices, addend).value();
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const Tensor y = run_poisoned(device, prepare_gather_rows(c)).at("y");
    check_close(y, expected, addend ? tolerance_for(DType::kF32, 1) : Tolerance{});
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("gather_rows folds x's dimensions, keeps those of the indices, and many rows") {
    check_gather_rows_case(make_gather_rows_case({2, 3, 4, 7}, {5, 3}, 1));
    check_gather_rows_case(make_gather_rows_case({1, 9}, {2, 1, 2}, 2));
    check_gather_rows_case(make_gather_rows_case({50, 3}, {40000}, 3));
    check_gather_rows_case(make_gather_rows_case({3, 5000}, {2}, 4));
  }

  TEST_CASE("gather_rows passes NaN and infinity on, and adds to rows that do not exist") {
    GatherRowsCase c = make_gather_rows_case({3, 9}, {4}, 1);
    c.indices = {2, 0, 3, 1};
    c.x[1] = kNan;
    c.x[2 * 9 + 3] = kInfinity;
    check_gather_rows_case(c);
    c.addend = random_array({2, 9}, 2);
    c.addend[4] = kNan;
    check_gather_rows_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("gather_rows refuses inputs that do not fit") {
    const TensorDesc indices{"indices", DType::kU32, {4}};
    CHECK(check_gather_rows(floats_desc({3, 8}), indices)->shape == Shape{4, 8});
    check_error(check_gather_rows(floats_desc({}), indices), "gather_rows", "()");
    check_error(check_gather_rows({"x", DType::kF16, {3, 8}}, indices), "gather_rows", "F16");
    check_error(check_gather_rows(floats_desc({3, 8}), floats_desc({4})), "gather_rows", "U32");
    check_error(check_gather_rows_addend(floats_desc({3, 7}), floats_desc({3, 8})), "gather_rows",
                "(3, 7)");
    check_error(check_gather_rows_addend(floats_desc({0, 8}), floats_desc({3, 8})), "gather_rows",
                "(0, 8)");
    check_error(check_gather_rows_addend(floats_desc({8}), floats_desc({3, 8})), "gather_rows",
                "(8)");
  }

  TEST_CASE("gather_rows plans one dispatch, without aliasing") {
    PreparedOperator op;
    GatherRowsInputs inputs;
    inputs.x = op.graph.add_external("x", DType::kF32, {5, 64});
    inputs.indices = op.graph.add_external("indices", DType::kU32, {5});
    for (int i = 0; i < 3; ++i) inputs.x = add_gather_rows(op.graph, inputs).value();
    op.name_output(inputs.x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "gather_rows_run__f32_none_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
