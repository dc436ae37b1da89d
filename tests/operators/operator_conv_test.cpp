// The operators conv1d, conv2d, batch_norm and group_norm by name.
#include "operators/operator_runner.h"
#include "reference/conv.h"
#include "reference/group_norm.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

OperatorCall call_of(const std::string& name, const std::string& attributes, TensorMap inputs) {
  return {name, attributes, std::move(inputs)};
}

Tensor conv_floats(const Shape& shape, uint32_t seed = 1) {
  return reference::to_tensor(random_array(shape, seed));
}

Result<OperatorResult> run(const OperatorCall& call, const OperatorOptions& options = {}) {
  return run_operator_call(tier_devices().front().device, call, options);
}

void check_conv_refused(const OperatorCall& call, const std::string& part) {
  check_error(run(call), call.name, part);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("conv1d and conv2d give the reference's convolution, dense and in groups") {
    if (tier_devices().empty()) return;
    for (int64_t groups : {1, 2, 6}) {
      CAPTURE(groups);
      const Array x = random_array({2, 6, 9, 7}, 3);
      const Array weight = random_array({12, 6 / groups, 3, 2}, 4, 0.2);
      const Array bias = random_array({12}, 5);
      const reference::WindowOptions window{
          .stride_height = 2, .stride_width = 1, .pad_top = 1, .pad_left = 2};
      const Array expected = reference::conv(x, weight, {window, groups, &bias}).value();
      const std::string attributes =
          R"({"stride": [2, 1], "padding": [1, 2], "groups": )" + std::to_string(groups) + "}";
      const auto y = run(call_of("conv2d", attributes,
                                 {{"X", reference::to_tensor(x)},
                                  {"W", reference::to_tensor(weight)},
                                  {"bias", reference::to_tensor(bias)}}));
      REQUIRE_MESSAGE(y.ok(), y.error().message);
      check_close(y->outputs.at("Y"), expected, tolerance_for(DType::kF32, 37));
    }
    const Array line = random_array({1, 4, 1, 11}, 6);
    const Array taps = random_array({3, 4, 1, 3}, 7, 0.3);
    Array expected = reference::conv(line, taps, {{.stride_width = 2, .pad_left = 1}}).value();
    expected.shape = {1, 3, 6};
    Tensor x = reference::to_tensor(line);
    Tensor w = reference::to_tensor(taps);
    x.shape = {1, 4, 11};
    w.shape = {3, 4, 3};
    const auto y = run(call_of("conv1d", R"({"stride": 2, "padding": 1})", {{"X", x}, {"W", w}}));
    REQUIRE_MESSAGE(y.ok(), y.error().message);
    check_close(y->outputs.at("Y"), expected, tolerance_for(DType::kF32, 13));
  }

  TEST_CASE("batch_norm uses the running statistics of the second axis") {
    if (tier_devices().empty()) return;
    const Array x = random_array({3, 5, 4}, 1);
    const Array mean = random_array({5}, 2);
    const Array variance = {{5}, {1, 0.5, 2, 4, 0.25}};
    const auto y = run(call_of("batch_norm", R"({"eps": 0.5})",
                               {{"X", reference::to_tensor(x)},
                                {"running_mean", reference::to_tensor(mean)},
                                {"running_var", reference::to_tensor(variance)}}));
    REQUIRE_MESSAGE(y.ok(), y.error().message);
    Array expected = x;
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t c = i / 4 % 5;
      expected[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + 0.5);
    }
    check_close(y->outputs.at("Y"), expected, tolerance_for(DType::kF32, 2));
  }

  TEST_CASE("group_norm by name takes any number of dimensions") {
    if (tier_devices().empty()) return;
    const Array x = random_array({2, 6, 3, 5}, 1);
    const Array gain = random_array({6}, 2);
    const Array bias = reference::filled({6}, 0.0);
    const auto y =
        run(call_of("group_norm", R"({"groups": 2, "eps": 0.5})",
                    {{"X", reference::to_tensor(x)}, {"weight", reference::to_tensor(gain)}}));
    REQUIRE_MESSAGE(y.ok(), y.error().message);
    Array expected = reference::group_norm({{2, 6, 15}, x.data}, gain, bias, {2, 0.5}).value();
    expected.shape = x.shape;
    check_close(y->outputs.at("Y"), expected, tolerance_for(DType::kF32, 45));
    check_conv_refused(call_of("group_norm", R"({"groups": 4})", {{"X", reference::to_tensor(x)}}),
                       "4 groups");
  }

  TEST_CASE("convolutions of an empty batch are empty") {
    if (tier_devices().empty()) return;
    for (const char* attributes : {"{}", R"({"groups": 2})"}) {
      const Tensor w = conv_floats({4, std::string(attributes) == "{}" ? 4 : 2, 3, 3});
      const auto y =
          run(call_of("conv2d", attributes, {{"X", conv_floats({0, 4, 5, 6})}, {"W", w}}));
      REQUIRE_MESSAGE(y.ok(), y.error().message);
      CHECK(y->outputs.at("Y").shape == Shape{0, 4, 3, 4});
    }
  }

  TEST_CASE("conv1d, conv2d and batch_norm refuse what does not fit") {
    if (tier_devices().empty()) return;
    const Tensor x = conv_floats({1, 4, 5, 6});
    const Tensor w = conv_floats({4, 4, 3, 3});
    check_conv_refused(call_of("conv1d", "{}", {{"X", x}, {"W", w}}), "3 dimensions");
    check_conv_refused(call_of("conv2d", "{}", {{"X", x}}), "W");
    check_conv_refused(call_of("conv2d", R"({"groups": 2})", {{"X", x}, {"W", w}}), "2 groups");
    check_conv_refused(call_of("conv2d", R"({"groups": 0})", {{"X", x}, {"W", w}}), "groups");
    check_conv_refused(call_of("conv2d", R"({"dilation": 2})", {{"X", x}, {"W", w}}), "dilation");
    check_conv_refused(call_of("conv2d", R"({"padding": -1})", {{"X", x}, {"W", w}}), "padding");
    check_conv_refused(call_of("conv2d", R"({"stride": [1, 1, 1]})", {{"X", x}, {"W", w}}),
                       "stride");
    check_conv_refused(call_of("conv2d", "{}", {{"X", x}, {"W", w}, {"bias", conv_floats({3})}}),
                       "(3)");
    check_conv_refused(call_of("conv2d", "{}", {{"X", x}, {"W", conv_floats({4, 4, 0, 3})}}),
                       "kernel");
    const auto strided = run(call_of("conv2d", R"({"stride": 0})", {{"X", x}, {"W", w}}));
    check_error(strided, "unfold", "stride");
    const Tensor c = conv_floats({4});
    check_conv_refused(call_of("batch_norm", "{}", {{"X", x}, {"running_mean", c}}), "running_var");
    check_conv_refused(call_of("batch_norm", "{}",
                               {{"X", x}, {"running_mean", c}, {"running_var", conv_floats({5})}}),
                       "(5)");
    check_conv_refused(
        call_of("batch_norm", "{}", {{"X", c}, {"running_mean", c}, {"running_var", c}}),
        "two dimensions");
  }
}

}  // namespace vkformer::testing
