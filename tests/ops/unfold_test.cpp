#include "ops/unfold.h"

#include "ops/matmul.h"
#include "reference/unfold.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using reference::WindowOptions;

ConvWindow window_of(const WindowOptions& o) {
  const auto u = [](int64_t size) { return static_cast<uint32_t>(size); };
  return {u(o.kernel_height), u(o.kernel_width), u(o.stride_height), u(o.stride_width),
          u(o.pad_top),       u(o.pad_left),     u(o.out_height),    u(o.out_width)};
}

PreparedOperator prepare_unfold(const Tensor& x, const UnfoldAttrs& attrs) {
  PreparedOperator op;
  const auto y = add_unfold(op.graph, op.bind("x", x), attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

// The same pictures in all four forms that x may have. x (B, C, H, W)
struct Form {
  const char* name;
  Tensor x;
  ConvSource source;
};

std::vector<Form> forms_of(const Array& x) {
  const auto height = static_cast<uint32_t>(x.dim(2));
  const auto width = static_cast<uint32_t>(x.dim(3));
  std::vector<Form> forms(4);
  forms[0] = {"(B, C, H, W)", reference::to_tensor(x), {ChannelOrder::kFirst}};
  forms[1] = {"(B, H, W, C)", reference::to_tensor(channels_last(x)), {ChannelOrder::kLast}};
  forms[2] = {"(B, C, T)", forms[0].x, {ChannelOrder::kFirst, height, width}};
  forms[2].x.shape = {x.dim(0), x.dim(1), x.dim(2) * x.dim(3)};
  forms[3] = {"(B, T, C)", forms[1].x, {ChannelOrder::kLast, height, width}};
  forms[3].x.shape = {x.dim(0), x.dim(2) * x.dim(3), x.dim(1)};
  return forms;
}

void check_unfold_case(const Array& x, const WindowOptions& options) {
  const auto expected = reference::unfold(x, options);
  REQUIRE_MESSAGE(expected.ok(), expected.error().message);
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    for (const Form& form : forms_of(x)) {
      CAPTURE(form.name);
      const PreparedOperator op =
          prepare_unfold(form.x, {.source = form.source,
                                  .window = window_of(options),
                                  .dilation = static_cast<uint32_t>(options.dilation),
                                  .first_column = static_cast<uint32_t>(options.first_column),
                                  .slope = static_cast<float>(options.slope)});
      // Values are moved and not computed with: they must be the same.
      check_close(run_poisoned(device, op).at("y"), *expected, {});
    }
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("unfold agrees with the reference for every width of rows") {
    for (int64_t channels : {1, 3, 7, 32, 43, 129}) {
      const Array x = random_array({2, channels, 5, 6}, static_cast<uint32_t>(channels));
      check_unfold_case(x, {.kernel_height = 3, .kernel_width = 3, .pad_top = 1, .pad_left = 1});
      check_unfold_case(x, {.kernel_width = 3, .stride_width = 2, .pad_left = 1});
      check_unfold_case(
          x, {.kernel_height = 2, .kernel_width = 3, .stride_height = 2, .stride_width = 3});
      check_unfold_case(x, {});
    }
  }

  TEST_CASE("unfold agrees with the reference for odd windows") {
    const Array x = random_array({2, 3, 13, 11}, 5);
    check_unfold_case(x, {.kernel_height = 7, .kernel_width = 5, .stride_height = 4, .pad_top = 2});
    check_unfold_case(x, {.kernel_height = 13, .kernel_width = 11});
    check_unfold_case(x, {.kernel_height = 1, .kernel_width = 9, .pad_left = 20});
    check_unfold_case(x, {.kernel_height = 29, .kernel_width = 2, .pad_top = 9});
  }

  TEST_CASE("unfold fills positions beyond the picture with zeros") {
    const Array x = random_array({1, 3, 7, 9}, 6);
    check_unfold_case(x, {.kernel_height = 4,
                          .kernel_width = 4,
                          .stride_height = 4,
                          .stride_width = 4,
                          .out_height = 2,
                          .out_width = 5});
    check_unfold_case(x, {.kernel_height = 2, .kernel_width = 2, .pad_top = 1, .out_width = 1});
  }

  TEST_CASE("unfold agrees with the reference for dilated kernels and slopes") {
    const Array x = random_array({2, 5, 1, 37}, 10);
    check_unfold_case(x, {.kernel_width = 3, .pad_left = 5, .out_width = 37, .dilation = 5});
    check_unfold_case(x, {.kernel_width = 7, .pad_left = 9, .dilation = 3, .slope = 0.5});
    check_unfold_case(x, {.kernel_width = 2, .stride_width = 3, .dilation = 30, .slope = -2.0});
    check_unfold_case(random_array({1, 65, 3, 29}, 11),
                      {.kernel_height = 2, .kernel_width = 4, .dilation = 2, .slope = 0.25});
    // A part of the positions: those before it are left of the first window.
    check_unfold_case(
        x, {.kernel_width = 3, .pad_left = 1, .out_width = 9, .first_column = 30, .slope = 0.5});
    check_unfold_case(x, {.kernel_width = 5,
                          .stride_width = 2,
                          .pad_left = 4,
                          .out_width = 6,
                          .dilation = 2,
                          .first_column = 13});
  }

  TEST_CASE("unfold agrees with the reference at a real model's sizes") {
    check_unfold_case(
        random_array({1, 3, 224, 224}, 7),
        {.kernel_height = 32, .kernel_width = 32, .stride_height = 32, .stride_width = 32});
    check_unfold_case(random_array({1, 80, 1, 300}, 8), {.kernel_width = 3, .pad_left = 1});
    check_unfold_case(random_array({1, 3, 56, 56}, 9), {.kernel_height = 7,
                                                        .kernel_width = 7,
                                                        .stride_height = 4,
                                                        .stride_width = 4,
                                                        .pad_top = 2,
                                                        .pad_left = 2});
  }

  TEST_CASE("unfold moves NaN and infinity to their places only") {
    Array x = random_array({1, 2, 4, 4}, 9);
    x[5] = kNan;
    x[21] = -kInfinity;
    check_unfold_case(x, {.kernel_height = 3, .kernel_width = 3, .pad_top = 1, .pad_left = 1});
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("unfold refuses inputs that do not fit") {
    const auto check = [](const Shape& shape, const UnfoldAttrs& attrs, const std::string& part) {
      check_error(check_unfold(floats_desc(shape), attrs), "unfold", part);
    };
    check({2, 8}, {}, "(2, 8)");
    check({1, 8, 2}, {.dilation = 0}, "dilation 0");
    check({1, 8, 2}, {.dilation = 1u << 20}, "1048575");
    check({1, 8, 2}, {.window = {.kernel_width = 1u << 20}, .dilation = 1u << 19}, "cover");
    check({1, 8, 2}, {.first_column = 1u << 30}, "first column");
    check({1, 8, 2}, {.slope = kNan}, "slope");
    check({1, 2, 3, 4, 5}, {}, "(1, 2, 3, 4, 5)");
    check({1, 0, 3, 4}, {}, "number of channels is 0");
    check({1, 3, 3, 0}, {}, "picture's width is 0");
    check({1, 3, 4, 4}, {.window = {.kernel_height = 0}}, "kernel's height is 0");
    check({1, 3, 4, 4}, {.window = {.stride_width = 0}}, "stride along the width is 0");
    check({1, 3, 4, 4}, {.window = {.kernel_width = 7, .pad_left = 1}}, "only 6");
    check({1, 3, 4, 4}, {.window = {.pad_top = ~0u}}, "padding at the top");
    check({1, 3, 4, 4}, {.window = {.stride_width = 1u << 20, .out_width = 1u << 20}}, "far");
    check({1, 3, 12}, {.source = {ChannelOrder::kFirst, 3, 5}}, "15");
    check({1, 12, 3}, {.source = {ChannelOrder::kLast, ~0u, ~0u}}, "12 pixels");
    check({1, 3, 4, 4}, {.source = {ChannelOrder::kFirst, 3, 5}}, "3 x 5");
    check({1, 3, 4, 4}, {.source = {ChannelOrder::kFirst, 4, 0}}, "4 x 0");
    check({int64_t{1} << 40, 3, 4, 4}, {}, "batch");
    check({1 << 20, 1 << 10, 4, 4}, {}, "2^32");
    check({16, 1024, 64, 64},
          {.window = {.kernel_height = 9, .kernel_width = 9, .pad_top = 4, .pad_left = 4}}, "2^32");
    check_error(check_unfold({"x", DType::kU32, {1, 3, 4, 4}}, {}), "unfold", "U32");
  }

  TEST_CASE("unfold before a packed linear layer plans without aliasing") {
    PreparedOperator op;
    const TensorId x = op.graph.add_external("x", DType::kF32, {2, 10, 33});
    const UnfoldAttrs attrs{.window = {.kernel_width = 3, .pad_left = 1}};
    const TensorId patches = add_unfold(op.graph, x, attrs).value();
    CHECK(op.graph.tensor(patches).shape == Shape{2, 33, 30});
    const TensorId weight = op.graph.add_external("weight", DType::kF32, {30 * 64 + 64});
    const TensorId y =
        add_linear(op.graph, patches, {weight, 64, 30, 30 * 64, MatrixFormat::kF32}, {}).value();
    op.name_output(y, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "unfold_row__f32_none_f32");
    CHECK(plan.dispatches.size() == 2);
    check_no_aliasing(plan);
  }

  TEST_CASE("unfold has no kernel for a decoding step, and says so") {
    PreparedOperator op = prepare_unfold(Tensor::zeros(DType::kF32, {1, 3, 4, 4}), {});
    op.graph.set_step(4);
    const auto plan = make_plan(op.graph, caps_of_tier(Tier::kBaseline), Precision::kF32);
    check_error(plan, "unfold", "decoding step");
  }
}

}  // namespace vkformer::testing
