#include "operators/operator_runner.h"

#include <algorithm>

#include "operators/operator_adaptors.h"
#include "ops/op.h"
#include "reference/softmax.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

// Runs without a device: what is refused, empty or computed on the host never needs one.
Result<OperatorResult> run_here(const OperatorCall& call, const OperatorOptions& options = {}) {
  return run_operator_call(nullptr, call, options);
}

Tensor floats(Shape shape) {
  return Tensor::zeros(DType::kF32, std::move(shape));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("run_operator lists its operators in name order") {
    const std::vector<std::string> names = known_operators();
    CHECK(std::is_sorted(names.begin(), names.end()));
    CHECK(std::find(names.begin(), names.end(), "layer_norm") != names.end());
  }

  TEST_CASE("run_operator refuses what it does not know, by name") {
    const auto unknown = run_here({"no_such_operator", "{}", {}});
    check_error(unknown, "no_such_operator", "layer_norm");
    CHECK(unknown.error().code == ErrorCode::kUnsupported);
    check_error(run_here({"log_softmax", "{}", {{"Z", floats({2})}}}), "log_softmax", "'Z'");
    check_error(run_here({"log_softmax", "{}", {}}), "log_softmax", "X is missing");
    check_error(run_here({"layer_norm", "{\"epsilon\": 1}", {{"X", floats({2})}}}), "layer_norm",
                "'epsilon'");
    CHECK_FALSE(run_here({"layer_norm", "{", {{"X", floats({2})}}}).ok());
    CHECK_FALSE(run_here({"layer_norm", "{\"eps\": \"a\"}", {{"X", floats({2})}}}).ok());
    check_error(run_here({"layer_norm", "{\"eps\": 1e99}", {{"X", floats({2})}}}), "layer_norm",
                "eps");
    check_error(run_here({"activation", "{\"kind\": \"mish\"}", {{"X", floats({2})}}}),
                "activation", "'mish'");
  }

  TEST_CASE("run_operator refuses tensors whose bytes or values do not fit") {
    Tensor broken = floats({2, 3});
    broken.bytes.resize(5);
    check_error(run_here({"log_softmax", "{}", {{"X", broken}}}), "log_softmax", "5 bytes");
    broken.shape = {-2, 3};
    check_error(run_here({"log_softmax", "{}", {{"X", broken}}}), "log_softmax", "impossible");
    const int64_t ids[] = {0, 7};
    check_error(
        run_here(
            {"embedding", "{}", {{"ids", Tensor::from_ints({2}, ids)}, {"table", floats({7, 2})}}}),
        "embedding", "is 7, but must be from 0 to 6");
    check_error(run_here({"embedding",
                          "{\"position_offset\": 3}",
                          {{"ids", Tensor::from_ints({1, 1}, std::span(ids, 1))},
                           {"table", floats({7, 2})},
                           {"positions", floats({3, 2})}}}),
                "embedding", "need 4");
    check_error(run_here({"softmax", "{}", {{"X", floats({1, 1, 1, 1, 2})}}}), "softmax",
                "(B, H, T, S)");
  }

  TEST_CASE("run_operator refuses options outside their range") {
    const OperatorCall call{"log_softmax", "{}", {{"X", floats({0, 4})}}};
    OperatorOptions options;
    options.repeats = 0;
    check_error(run_here(call, options), "repeats", "0");
  }

  TEST_CASE("run_operator answers empty tensors without a device") {
    const auto empty = run_here({"log_softmax", "{}", {{"X", floats({0, 4})}}});
    REQUIRE(empty.ok());
    CHECK(empty->outputs.at("Y").shape == Shape{0, 4});
    const auto softmax = run_here({"softmax", "{}", {{"X", floats({2, 3, 0})}}});
    REQUIRE(softmax.ok());
    CHECK(softmax->outputs.at("Y").shape == Shape{2, 3, 0});
    const auto best = run_here({"top_k", "{\"k\": 2}", {{"X", floats({0, 4})}}});
    REQUIRE(best.ok());
    CHECK(best->outputs.at("indices").shape == Shape{0, 2});
    CHECK(best->outputs.at("indices").dtype == DType::kI64);
  }

  TEST_CASE("run_operator computes position tables on the host") {
    const auto table = run_here({"sinusoidal_positions",
                                 R"({"length": 3, "dim": 4, "layout": "halves", "offset": 1})",
                                 {}});
    REQUIRE(table.ok());
    const auto values = table->outputs.at("Y").to_floats().value();
    CHECK(values[0] == doctest::Approx(std::sin(1.0)));
    CHECK(values[2] == doctest::Approx(std::cos(1.0)));
    check_error(
        run_here({"sinusoidal_positions", R"({"length": 3, "dim": 4, "layout": "rows"})", {}}),
        "sinusoidal_positions", "'rows'");
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("run_operator folds global tokens into the masks of softmax") {
    const Array x = random_array({2, 2, 9, 9}, 1);
    const Tensor global = random_mask({2, 9}, 2, 0.2);
    const Tensor mask = random_mask({2, 1, 9, 9}, 3, 0.8);
    const Array global_array = reference::from_tensor(global).value();
    const Array mask_array = reference::from_tensor(mask).value();
    reference::SoftmaxOptions options;
    options.masks.window_left = 1;
    options.masks.window_right = 1;
    options.masks.global = &global_array;
    options.masks.mask = &mask_array;
    const OperatorCall call{"softmax",
                            R"({"window_left": 1, "window_right": 1})",
                            {{"X", reference::to_tensor(x)}, {"global", global}, {"mask", mask}}};
    for (const TierDevice& device : tier_devices()) {
      const auto result = run_operator_call(device.device, call, {});
      REQUIRE_MESSAGE(result.ok(), result.error().message);
      check_close(result->outputs.at("Y"), reference::softmax(x, options).value(),
                  tolerance_for(DType::kF32, 9));
    }
  }

  TEST_CASE("run_operator splits top_k, widens indices and stores tables as halves") {
    for (const TierDevice& device : tier_devices()) {
      const float values[] = {1, 3, 2, 3};
      const auto best = run_operator_call(
          device.device, {"top_k", "{\"k\": 3}", {{"X", Tensor::from_floats({4}, values)}}}, {});
      REQUIRE_MESSAGE(best.ok(), best.error().message);
      CHECK(best->outputs.at("indices").to_ints().value() == std::vector<int64_t>{1, 3, 2});
      CHECK(best->outputs.at("values").to_floats().value() == std::vector<float>{3, 3, 2});
      OperatorOptions half;
      half.weights = WeightFormat::kF16;
      const float table[] = {1.0f, 1.0f / 3.0f};
      const int64_t ids[] = {1};
      const auto row = run_operator_call(
          device.device,
          {"embedding",
           "{}",
           {{"ids", Tensor::from_ints({1}, ids)}, {"table", Tensor::from_floats({2, 1}, table)}}},
          half);
      REQUIRE_MESSAGE(row.ok(), row.error().message);
      CHECK(row->outputs.at("Y").to_floats().value()[0] == 0.333251953125f);
    }
  }

  TEST_CASE("run_operator pools no tokens to zeros") {
    for (const TierDevice& device : tier_devices()) {
      const auto pooled =
          run_operator_call(device.device, {"mean_pool", "{}", {{"X", floats({2, 0, 3})}}}, {});
      REQUIRE_MESSAGE(pooled.ok(), pooled.error().message);
      CHECK(pooled->outputs.at("Y").to_floats().value() == std::vector<float>(6, 0.0f));
    }
  }
}

}  // namespace vkformer::testing
