// The adaptors of positions, biases by position, and row moves; the goldens hold whole examples.
#include <cmath>

#include "operators/operator_runner.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

// Runs without a device: what is refused, empty or computed on the host never needs one.
Result<OperatorResult> run_positions(const OperatorCall& call) {
  return run_operator_call(nullptr, call, {});
}

Tensor position_floats(Shape shape) {
  return Tensor::zeros(DType::kF32, std::move(shape));
}

Tensor ints(const Shape& shape, const std::vector<int64_t>& values) {
  return Tensor::from_ints(shape, values);
}

struct RotaryCase {
  Shape shape;  // (..., T, D)
  int64_t turned;
  double theta;
  double factor;
  bool interleaved;
  Shape positions_shape;
  std::vector<int64_t> positions;
};

// The definition of docs/operators.md, element by element. x (..., T, D) -> (..., T, D).
Array turned_by_definition(const RotaryCase& c, const Array& x) {
  Array y = x;
  const int64_t width = c.shape.back();
  const int64_t tokens = c.shape[c.shape.size() - 2];
  const int64_t rows_of_item = x.size() / width / c.shape[0];
  const bool by_item = c.positions_shape.size() == 2 && c.positions_shape[0] > 1;
  for (int64_t row = 0; row < x.size() / width; ++row) {
    const int64_t item = by_item ? row / rows_of_item : 0;
    const int64_t at = item * tokens + row % tokens;
    const int64_t p = c.positions.empty() ? row % tokens : c.positions[static_cast<size_t>(at)];
    for (int64_t i = 0; i < c.turned / 2; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(c.turned);
      const double angle = static_cast<double>(p) * std::pow(c.theta, exponent) / c.factor;
      const int64_t u = row * width + (c.interleaved ? 2 * i : i);
      const int64_t v = row * width + (c.interleaved ? 2 * i + 1 : i + c.turned / 2);
      y[u] = x[u] * std::cos(angle) - x[v] * std::sin(angle);
      y[v] = x[v] * std::cos(angle) + x[u] * std::sin(angle);
    }
  }
  return y;
}

void check_rotary(const RotaryCase& c) {
  const Array x = random_array(c.shape, 3);
  OperatorCall call{"rotary", "", {{"X", reference::to_tensor(x)}}};
  call.attributes_json = "{\"rotary_dim\": " + std::to_string(c.turned) +
                         ", \"theta\": " + std::to_string(c.theta) +
                         ", \"factor\": " + std::to_string(c.factor) + ", \"layout\": \"" +
                         (c.interleaved ? "interleaved" : "half") + "\"}";
  if (!c.positions.empty()) call.inputs["position_ids"] = ints(c.positions_shape, c.positions);
  for (const TierDevice& device : tier_devices()) {
    const auto result = run_operator_call(device.device, call, {});
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    check_close(result->outputs.at("Y"), turned_by_definition(c, x), tolerance_for(DType::kF32, 2));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("run_operator turns by counted, shared and own positions, also far and negative ones") {
    check_rotary({{2, 3, 5, 12}, 12, 10000, 1, false, {}, {}});
    check_rotary({{5, 12}, 6, 500000, 2, true, {}, {}});
    check_rotary({{2, 3, 4, 10}, 8, 100, 1, false, {4}, {7, 3, 3, 1000000000}});
    check_rotary({{2, 3, 4, 10}, 8, 100, 1, true, {1, 4}, {-7, 3, 3, 0}});
    check_rotary({{2, 3, 4, 10}, 2, 100, 0.5, false, {2, 4}, {0, 1, 2, 3, 90, 80, 70, 60}});
  }

  TEST_CASE("run_operator gathers rows, with indices of any shape and without a row") {
    const Array x = random_array({2, 3, 4}, 1);
    const Array addend = random_array({2, 4}, 2);
    const OperatorCall call{"gather_rows",
                            "{}",
                            {{"X", reference::to_tensor(x)},
                             {"indices", ints({2, 2}, {5, -1, int64_t{1} << 40, 0})},
                             {"addend", reference::to_tensor(addend)}}};
    for (const TierDevice& device : tier_devices()) {
      const auto result = run_operator_call(device.device, call, {});
      REQUIRE_MESSAGE(result.ok(), result.error().message);
      const Tensor& y = result->outputs.at("Y");
      REQUIRE(y.shape == Shape{2, 2, 4});
      Array wanted{{2, 2, 4}, {}};
      for (int64_t i = 0; i < 4; ++i) wanted.data.push_back(x[20 + i] + addend[i]);
      for (int64_t i = 0; i < 4; ++i) wanted.data.push_back(addend[4 + i]);
      for (int64_t i = 0; i < 4; ++i) wanted.data.push_back(addend[i]);
      for (int64_t i = 0; i < 4; ++i) wanted.data.push_back(x[i] + addend[4 + i]);
      check_close(y, wanted, tolerance_for(DType::kF32, 1));
    }
  }

  TEST_CASE("run_operator joins columns and combines") {
    const Tensor a = Tensor::from_floats({2, 2}, std::vector<float>{1, 2, 3, 4});
    const Tensor b = Tensor::from_floats({2, 2}, std::vector<float>{5, 6, 7, 8});
    for (const TierDevice& device : tier_devices()) {
      const OperatorCall joined{"concat_columns", "{}", {{"A", a}, {"B", b}}};
      const auto row = run_operator_call(device.device, joined, {});
      REQUIRE_MESSAGE(row.ok(), row.error().message);
      CHECK(row->outputs.at("Y").shape == Shape{2, 4});
      CHECK(row->outputs.at("Y").to_floats().value() == std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8});
      const OperatorCall mixed{"combine", "{\"alpha\": 2, \"beta\": -1}", {{"A", a}, {"B", b}}};
      const auto sum = run_operator_call(device.device, mixed, {});
      REQUIRE_MESSAGE(sum.ok(), sum.error().message);
      CHECK(sum->outputs.at("Y").to_floats().value() == std::vector<float>{-3, -2, -1, 0});
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("run_operator refuses rotary inputs that do not fit") {
    check_error(run_positions({"rotary", "{}", {{"X", position_floats({4})}}}), "rotary",
                "(..., T, D)");
    check_error(run_positions({"rotary", "{\"rotary_dim\": 3}", {{"X", position_floats({2, 4})}}}),
                "rotary_table", "3");
    check_error(run_positions({"rotary", "{\"rotary_dim\": 6}", {{"X", position_floats({2, 4})}}}),
                "rotary", "6");
    check_error(run_positions({"rotary", "{\"theta\": 0}", {{"X", position_floats({2, 4})}}}),
                "rotary_table", "theta");
    check_error(run_positions({"rotary", "{\"factor\": -1}", {{"X", position_floats({2, 4})}}}),
                "rotary_table", "factor");
    check_error(
        run_positions({"rotary", "{\"layout\": \"neox\"}", {{"X", position_floats({2, 4})}}}),
        "rotary", "'neox'");
    check_error(run_positions({"rotary",
                               "{}",
                               {{"X", position_floats({2, 3, 4})},
                                {"position_ids", ints({3, 1}, {1, 2, 3})}}}),
                "rotary", "(2, 3)");
    const auto empty = run_positions({"rotary", "{}", {{"X", position_floats({2, 0, 4})}}});
    REQUIRE_MESSAGE(empty.ok(), empty.error().message);
    CHECK(empty->outputs.at("Y").shape == Shape{2, 0, 4});
  }

  TEST_CASE("run_operator gives biases by position, also empty ones") {
    const auto alibi = run_positions(
        {"alibi_bias", "{\"num_heads\": 2, \"query_length\": 1, \"key_length\": 3}", {}});
    REQUIRE_MESSAGE(alibi.ok(), alibi.error().message);
    CHECK(alibi->outputs.at("slopes").to_floats().value() ==
          std::vector<float>{1 / 16.0f, 1 / 256.0f});
    CHECK(alibi->outputs.at("bias").to_floats().value() ==
          std::vector<float>{-2 / 16.0f, -1 / 16.0f, 0, -2 / 256.0f, -1 / 256.0f, 0});
    const auto t5 = run_positions({"t5_relative_position",
                                   "{\"query_length\": 0, \"key_length\": 3}",
                                   {{"table", position_floats({32, 2})}}});
    REQUIRE_MESSAGE(t5.ok(), t5.error().message);
    CHECK(t5->outputs.at("bias").shape == Shape{2, 0, 3});
    CHECK(t5->outputs.at("buckets").shape == Shape{0, 3});
    const auto swin = run_positions(
        {"swin_relative_position",
         "{\"window\": 2}",
         {{"table", Tensor::from_floats({9, 1}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8})}}});
    REQUIRE_MESSAGE(swin.ok(), swin.error().message);
    CHECK(swin->outputs.at("index").to_ints().value() ==
          std::vector<int64_t>{4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4});
    CHECK(swin->outputs.at("bias").shape == Shape{1, 4, 4});
    CHECK(swin->outputs.at("bias").to_floats().value()[12] == 8.0f);
  }

  TEST_CASE("run_operator refuses biases that cannot be") {
    check_error(run_positions({"alibi_bias", "{\"query_length\": 1, \"key_length\": 3}", {}}),
                "alibi_bias", "num_heads");
    check_error(run_positions({"alibi_bias",
                               "{\"num_heads\": 9, \"query_length\": 16384, \"key_length\": 16384}",
                               {}}),
                "alibi_bias", "268435456");
    check_error(
        run_positions({"alibi_bias",
                       "{\"num_heads\": 1, \"query_length\": 9007199254740993, \"key_length\": 2}",
                       {}}),
        "alibi_bias", "268435456");
    check_error(run_positions({"t5_relative_position",
                               "{\"query_length\": -1, \"key_length\": 3}",
                               {{"table", position_floats({32, 2})}}}),
                "t5_relative_position", "-1");
    check_error(run_positions({"t5_relative_position",
                               "{\"query_length\": 1, \"key_length\": 3}",
                               {{"table", position_floats({31, 2})}}}),
                "t5_relative_position", "(32, H)");
    check_error(run_positions({"t5_relative_position",
                               "{\"query_length\": 1, \"key_length\": 3, \"num_buckets\": 2}",
                               {{"table", position_floats({2, 2})}}}),
                "t5_bucket", "2 buckets");
    check_error(
        run_positions(
            {"swin_relative_position", "{\"window\": 3}", {{"table", position_floats({24, 2})}}}),
        "swin_relative_position", "(25, H)");
    check_error(run_positions({"mu_law", "{\"mu\": 0}", {{"X", position_floats({2})}}}), "mu_law",
                "mu is 0");
    check_error(
        run_positions({"gather_rows",
                       "{}",
                       {{"X", position_floats({2, 3})}, {"indices", position_floats({2})}}}),
        "gather_rows", "indices");
  }
}

}  // namespace vkformer::testing
