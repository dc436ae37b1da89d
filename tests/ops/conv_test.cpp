#include "ops/conv.h"

#include "reference/activation.h"
#include "reference/conv.h"
#include "support/operator_check.h"
#include "weights/fold_batch_norm.h"

namespace vkformer::testing {
namespace {

using reference::WindowOptions;

// Pictures, a kernel and its window, as the reference takes them.
struct ConvCase {
  Array x;       // (B, C, H, W)
  Array weight;  // (out, C/groups, kh, kw)
  Array bias;    // (out)
  int64_t groups = 1;
  WindowOptions window = {};

  ConvCase(const Shape& picture, const Shape& kernel, int64_t group_count)
      : x(random_array(picture, 1)),
        // Scaled so that sums are of the order of 1, whatever the kernel.
        weight(random_array(kernel, 2,
                            1 / std::sqrt(static_cast<double>(kernel[1] * kernel[2] * kernel[3])))),
        bias(random_array({kernel[0]}, 3)),
        groups(group_count) {}
};

Tensor conv_table(const ConvCase& c) {
  const Tensor weight = reference::to_tensor(c.weight);
  const Tensor bias = reference::to_tensor(c.bias);
  const std::vector<float> weights = weight.to_floats().value();
  const std::vector<float> biases = bias.to_floats().value();
  const auto table = pack_conv({"test", c.weight.dim(0), weights, biases});
  REQUIRE_MESSAGE(table.ok(), table.error().message);
  return Tensor::from_floats({c.weight.dim(0), c.weight.size() / c.weight.dim(0) + 1}, *table);
}

ConvAttrs attrs_for(const ConvCase& c, ChannelOrder order) {
  const auto u = [](int64_t size) { return static_cast<uint32_t>(size); };
  const WindowOptions& o = c.window;
  ConvAttrs attrs;
  attrs.window = {u(c.weight.dim(2)), u(c.weight.dim(3)), u(o.stride_height), u(o.stride_width),
                  u(o.pad_top),       u(o.pad_left),      u(o.out_height),    u(o.out_width)};
  attrs.groups = u(c.groups);
  attrs.source.order = order;
  attrs.out_order = order;
  return attrs;
}

PreparedOperator prepare_conv(const Tensor& x, const ConvCase& c, const ConvAttrs& attrs) {
  PreparedOperator op;
  const TensorId x_id = op.bind("x", x);
  const auto y = add_conv(op.graph, x_id, op.bind("table", conv_table(c)), attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

Array expected_conv(const ConvCase& c) {
  const auto y = reference::conv(c.x, c.weight, {c.window, c.groups, &c.bias});
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  return *y;
}

Tolerance tolerance_of(const ConvCase& c) {
  return tolerance_for(DType::kF32, c.weight.size() / c.weight.dim(0) + 1);
}

void check_conv_case(const ConvCase& c) {
  const Array first = expected_conv(c);
  const Array last = channels_last(first);
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    ConvAttrs attrs = attrs_for(c, ChannelOrder::kLast);
    const Tensor x = reference::to_tensor(channels_last(c.x));
    check_close(run_poisoned(device, prepare_conv(x, c, attrs)).at("y"), last, tolerance_of(c));
    attrs.out_order = ChannelOrder::kFirst;
    check_close(run_poisoned(device, prepare_conv(x, c, attrs)).at("y"), first, tolerance_of(c));
    attrs.source.order = ChannelOrder::kFirst;
    check_close(run_poisoned(device, prepare_conv(reference::to_tensor(c.x), c, attrs)).at("y"),
                first, tolerance_of(c));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("conv copies leading tokens and convolves the picture after them") {
    ConvCase c({2, 35, 3, 5}, {35, 1, 3, 3}, 35);
    c.window = {.pad_top = 1, .pad_left = 1};
    const Array pixels = channels_last(c.x);
    const Array convolved = channels_last(expected_conv(c));
    const Array classes = random_array({2, 2, 35}, 5);
    Array x = reference::filled({2, 2 + 15, 35}, 0.0);
    Array expected = x;
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t batch = i / (17 * 35);
      const int64_t at = i % (17 * 35) - 2 * 35;
      x[i] = at < 0 ? classes[batch * 70 + at + 70] : pixels[batch * 525 + at];
      expected[i] = at < 0 ? x[i] : convolved[batch * 525 + at];
    }
    ConvAttrs attrs = attrs_for(c, ChannelOrder::kLast);
    attrs.leading_tokens = 2;
    attrs.source.height = 3;
    attrs.source.width = 5;
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      check_close(run_poisoned(device, prepare_conv(reference::to_tensor(x), c, attrs)).at("y"),
                  expected, tolerance_of(c));
    }
  }

  TEST_CASE("conv applies its activation after the bias") {
    ConvCase c({1, 9, 4, 6}, {9, 1, 3, 3}, 9);
    c.window = {.pad_top = 1, .pad_left = 1};
    const ConvAttrs attrs = attrs_for(c, ChannelOrder::kLast);
    const Array expected =
        reference::activation(channels_last(expected_conv(c)), reference::ActivationKind::kSilu)
            .value();
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      PreparedOperator op = prepare_conv(reference::to_tensor(channels_last(c.x)), c, attrs);
      const TensorId y = op.graph.find_external("y");
      op.graph.tensor(y).kind = TensorKind::kTemporary;
      op.name_output(add_activation(op.graph, y, {ActivationKind::kSilu}).value(), "z");
      check_close(run_poisoned(device, op).at("z"), expected, tolerance_of(c));
    }
  }

  TEST_CASE("conv passes NaN and infinity on to the positions that see them") {
    ConvCase c({1, 3, 5, 9}, {3, 1, 3, 3}, 3);
    c.window = {.pad_top = 1, .pad_left = 1};
    c.x[20] = kNan;
    c.x[45 + 7] = kInfinity;
    check_conv_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("conv refuses inputs that do not fit") {
    const auto check = [](const Shape& table, const ConvAttrs& attrs, const std::string& part) {
      check_error(check_conv(floats_desc({1, 4, 5, 6}), floats_desc(table), attrs), "conv", part);
    };
    ConvAttrs attrs;
    attrs.window.kernel_height = 3;
    attrs.groups = 6;
    CHECK(check_conv(floats_desc({1, 4, 5, 6}), floats_desc({6, 4}), attrs).ok());
    check({6, 5}, attrs, "(6, 5)");
    check({4}, attrs, "(4)");
    check({7, 4}, attrs, "7 rows");
    check({0, 4}, attrs, "0 rows");
    attrs.groups = 0;
    check({6, 4}, attrs, "0 groups");
    attrs.groups = 4;
    check({4, 4}, attrs, "4 groups");
    attrs.groups = 6;
    attrs.window.kernel_height = 6;
    check({6, 7}, attrs, "only 4");
    attrs.window.kernel_height = 3;
    attrs.leading_tokens = 1;
    check({6, 4}, attrs, "leading");
    check_error(check_conv({"x", DType::kU32, {1, 4, 5, 6}}, floats_desc({6, 4}), {}), "conv",
                "U32");
    ConvAttrs tokens;
    tokens.leading_tokens = 3;
    tokens.groups = 6;
    check_error(check_conv(floats_desc({1, 7, 6}), floats_desc({12, 2}), tokens), "conv",
                "12 channels");
    tokens.leading_tokens = 8;
    check_error(check_conv(floats_desc({1, 7, 6}), floats_desc({6, 2}), tokens), "conv", "width");
  }

  TEST_CASE("conv plans one dispatch, without aliasing, and none for a decoding step") {
    ConvCase c({2, 8, 6, 6}, {8, 1, 3, 3}, 8);
    c.window = {.pad_top = 1, .pad_left = 1};
    PreparedOperator op;
    const ConvAttrs attrs = attrs_for(c, ChannelOrder::kLast);
    const TensorId table = op.bind("table", conv_table(c));
    TensorId x = op.bind("x", reference::to_tensor(channels_last(c.x)));
    for (int i = 0; i < 3; ++i) x = add_conv(op.graph, x, table, attrs).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "conv_span__f32_f32_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
    op.graph.set_step(4);
    check_error(make_plan(op.graph, caps_of_tier(Tier::kBaseline), Precision::kF32), "conv",
                "decoding step");
  }
}

}  // namespace vkformer::testing
