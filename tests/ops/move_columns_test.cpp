#include "ops/move_columns.h"

#include "ops/step_run.h"

namespace vkformer::testing {
namespace {

// Columns [first, first + width) of rows, as plain loops.
Array cut(const Array& x, int64_t first, int64_t width) {
  const int64_t line = x.dim(-1);
  Shape shape = x.shape;
  shape.back() = width;
  Array y = reference::filled(shape, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i / width * line + first + i % width];
  return y;
}

void check_columns(const Array& x, int64_t first, int64_t width) {
  const Array expected = cut(x, first, width);
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    PreparedOperator op;
    const TensorId from = op.bind("x", reference::to_tensor(x));
    const RowPlace place{static_cast<uint32_t>(first), static_cast<uint32_t>(x.dim(-1))};
    const auto y = add_columns(op.graph, from, place, expected.shape);
    REQUIRE_MESSAGE(y.ok(), y.error().message);
    op.name_output(*y, "y");
    check_close(run_poisoned(device, op).at("y"), expected, {});
  }
}

// A generation of 2 items with 2 rows each, at `position`; slots hold rows 3 and 0.
struct StepRun {
  Graph graph;
  TensorMap given;
  StateCache cache;

  StepRun(uint32_t position, const Array& states, const std::vector<uint32_t>& ancestry) {
    graph.set_step(4);
    cache.cache = graph.add_external("cache", DType::kF32, {4, 2, states.dim(2)});
    cache.ancestry = graph.add_external("ancestry", DType::kU32, {4, 3});
    cache.state = graph.add_external("decode_state", DType::kU32, {kStateWords});
    cache.capacity = 3;
    cache.beams = 2;
    given["cache"] = reference::to_tensor(states);
    given["ancestry"] = word_tensor(ancestry, {4, 3});
    given["decode_state"] = make_state({3, 0}, position);
  }
};

std::vector<float> floats_of(const TensorMap& outputs, const std::string& name) {
  return outputs.at(name).to_floats().value();
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("move_columns takes columns of rows of every width") {
    for (int64_t width : conformance::kRowWidths) {
      check_columns(random_array({2, 3, width}, 1), 0, width);
      check_columns(random_array({5, width + 4}, 2), 3, width);
    }
    Array special = random_array({3, 9}, 1);
    special[10] = kNan;
    special[11] = -kInfinity;
    check_columns(special, 1, 4);
  }

  TEST_CASE("move_columns fills a sequence token by token, and with zeros") {
    const Array x = random_array({2, 5}, 1);
    for (const TierDevice& device : tier_devices()) {
      PreparedOperator op;
      const TensorId from = op.bind("x", reference::to_tensor(x));
      const TensorId y = op.graph.add_temporary("y", DType::kF32, {2, 3, 5});
      const auto zeros = add_columns(op.graph, kNoTensor, {}, {2, 5});
      REQUIRE(zeros.ok());
      REQUIRE(add_place_columns(op.graph, from, y, {0, 15}).ok());
      REQUIRE(add_place_columns(op.graph, *zeros, y, {5, 15}).ok());
      REQUIRE(add_place_columns(op.graph, from, y, {10, 15}).ok());
      op.name_output(y, "y");
      Array expected = reference::filled({2, 3, 5}, 0.0);
      for (int64_t i = 0; i < 10; ++i) {
        expected[i / 5 * 15 + i % 5] = expected[i / 5 * 15 + 10 + i % 5] = x[i];
      }
      check_close(run_poisoned(device, op).at("y"), expected, {});
    }
  }

  TEST_CASE(
      "move_columns loads the state that the parent beam left, and stores into the own line") {
    const Array states = random_array({4, 2, 5}, 3);
    const std::vector<uint32_t> ancestry = {0, 1, 9, 0, 0, 9, 2, 3, 9, 2, 2, 9};
    for (const TierDevice& device : tier_devices()) {
      for (uint32_t position : {0u, 1u, 2u}) {
        CAPTURE(position);
        StepRun run(position, states, ancestry);
        const auto y = add_load_state(run.graph, run.cache, 1, 3);
        REQUIRE_MESSAGE(y.ok(), y.error().message);
        run.graph.tensor(*y).kind = TensorKind::kExternal;
        run.graph.tensor(*y).name = "y";
        REQUIRE(add_store_state(run.graph, *y, run.cache, 2).ok());
        const TensorMap outputs = run_step(device, run.graph, run.given, 2);
        const std::vector<float> loaded = floats_of(outputs, "y");
        const std::vector<float> cache = floats_of(outputs, "cache");
        for (size_t slot = 0; slot < 2; ++slot) {
          const uint32_t row = slot == 0 ? 3 : 0;
          const uint32_t owner = position == 0 ? row / 2 * 2 : ancestry[row * 3 + position - 1];
          const size_t line = (2 * owner + (position + 1) % 2) * 5;
          const size_t own = (2 * row + position % 2) * 5;
          for (size_t i = 0; i < 3; ++i) {
            const auto value = static_cast<float>(states.data[line + 1 + i]);
            CHECK(loaded[slot * 3 + i] == value);
            CHECK(cache[own + 2 + i] == value);
            CHECK(cache[own + (i == 2 ? 1 : i)] ==
                  static_cast<float>(states.data[own + (i == 2 ? 1 : i)]));
          }
        }
        CHECK(std::isnan(loaded[6]));  // a slot that is not live
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("move_columns refuses parts that lie outside, caches that are none, and wrong graphs") {
    const TensorDesc x = floats_desc({3, 8});
    CHECK(check_row_place(x, "x", {5, 8}, 3, 3).ok());
    check_error(check_row_place(x, "x", {6, 8}, 3, 3), "move_columns", "(3, 8)");
    check_error(check_row_place(x, "x", {0, UINT32_MAX}, 3, 3), "move_columns", "4294967295");
    check_error(check_row_place(x, "x", {0, 8}, 0, 3), "move_columns", "0 rows");
    const TensorDesc ancestry{"ancestry", DType::kU32, {12}};
    CHECK(check_state_cache(floats_desc({4, 2, 5}), ancestry, 2, 3).ok());
    check_error(check_state_cache(floats_desc({4, 2, 5}), ancestry, 3, 3), "move_columns", "6");
    check_error(check_state_cache(floats_desc({4, 3, 5}), ancestry, 0, 3), "move_columns",
                "(4, 3, 5)");
    check_error(check_state_cache(floats_desc({4, 2, 5}), x, 0, 3), "move_columns", "ancestry");
    Graph graph;
    const TensorId y = graph.add_external("y", DType::kF32, {4, 2, 5});
    check_error(add_load_state(graph, {y, y, y}, 0, 2), "move_columns", "decoding steps");
    check_error(add_store_state(graph, y, {y, y, y}, 0), "move_columns", "decoding steps");
  }

  TEST_CASE("move_columns plans one dispatch, without aliasing") {
    PreparedOperator op;
    const TensorId x = op.bind("x", reference::to_tensor(random_array({3, 8}, 1)));
    const auto y = add_columns(op.graph, x, {2, 8}, {3, 4});
    REQUIRE(y.ok());
    op.name_output(*y, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "move_columns_run__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
