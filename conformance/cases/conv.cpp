// The cases of conv: its checks, and what the benchmark times.
#include "ops/conv.h"
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/conv_cases.h"
#include "reference/unfold.h"
#include "weights/fold_batch_norm.h"

namespace vkformer::conformance {
namespace {

// The orders of axes of x and y.
struct Orders {
  const char* name;
  ChannelOrder x, y;
};
constexpr Orders kOrders[] = {{"last-last/", ChannelOrder::kLast, ChannelOrder::kLast},
                              {"last-first/", ChannelOrder::kLast, ChannelOrder::kFirst},
                              {"first-first/", ChannelOrder::kFirst, ChannelOrder::kFirst}};

Result<CheckCase> ordered_case(const Window& c, const Orders& orders) {
  VKF_ASSIGN(ConvArrays a, make_conv(c, Content::kNormal));
  VKF_ASSIGN(const std::vector<float> weights, floats(a.w).to_floats());
  VKF_ASSIGN(const std::vector<float> biases, floats(a.bias).to_floats());
  VKF_ASSIGN(const std::vector<float> table, pack_conv({"w", c.w[0], weights, biases}));
  const reference::WindowOptions& o = c.window;
  ConvAttrs attrs;
  attrs.window = {u32(c.w[2]),    u32(c.w[3]),     u32(o.stride_height), u32(o.stride_width),
                  u32(o.pad_top), u32(o.pad_left), u32(o.out_height),    u32(o.out_width)};
  attrs.groups = u32(c.groups);
  attrs.source.order = orders.x;
  attrs.out_order = orders.y;
  const auto in_order = [](const Array& array, ChannelOrder order) {
    return order == ChannelOrder::kLast ? reference::channels_last(array) : array;
  };
  CheckCase made;
  const TensorId x = made.op.bind("x", floats(in_order(a.x, orders.x)));
  const TensorId w =
      made.op.bind("table", Tensor::from_floats({c.w[0], element_count(c.w) / c.w[0] + 1}, table));
  VKF_ASSIGN(const TensorId y, add_conv(made.op.graph, x, w, attrs));
  made.op.name_output(y, "y");
  made.expected.emplace("y", Expected{in_order(a.y, orders.y), a.tolerance, a.magnitude});
  return made;
}

// Every order of axes: channels, the width of a span of outputs, groups, real models' sizes.
std::vector<Window> ordered_windows() {
  std::vector<Window> list;
  for (const int64_t channels : {1, 7, 31, 32, 33, 129, 257}) {
    for (const int64_t stride : {1, 2}) {
      list.push_back(
          {{2, channels, 6, 9}, {channels, 1, 3, 3}, channels, square_window(stride, 1)});
    }
  }
  for (const int64_t width : {1, 2, 3, 4, 5, 7, 8, 9, 17}) {
    list.push_back({{1, 5, 2, width}, {5, 1, 1, 3}, 5, {.pad_left = 1}});
    list.push_back(
        {{1, 5, 2, width}, {5, 1, 1, 3}, 5, {.stride_width = 4, .pad_left = 1, .out_width = 3}});
  }
  list.push_back({{2, 12, 5, 7}, {8, 3, 3, 2}, 4, {.pad_top = 1}});
  list.push_back({{1, 6, 4, 5}, {18, 1, 2, 3}, 6, {.stride_width = 3, .pad_left = 2}});
  list.push_back({{1, 10, 1, 33}, {16, 10, 1, 3}, 1, {.stride_width = 2, .pad_left = 1}});
  list.push_back({{1, 144, 1, 100}, {144, 1, 1, 31}, 144, {.pad_left = 15}});
  list.push_back({{1, 96, 1, 49}, {96, 6, 1, 128}, 16, {.pad_left = 64, .out_width = 49}});
  // wav2vec 2.0's positions.
  list.push_back({{1, 768, 1, 17}, {768, 48, 1, 128}, 16, {.pad_left = 64, .out_width = 17}});
  list.push_back({{1, 64, 28, 28}, {64, 1, 3, 3}, 64, square_window(2, 1)});
  return list;
}

}  // namespace

void conv_cases(OperatorCases& cases) {
  const Window windows[] = {{{1, 1, 1, 1}, {1, 1, 1, 1}, 1, square_window(1, 0)},
                            {{2, 6, 9, 7}, {6, 1, 3, 3}, 6, square_window(1, 1)},
                            {{1, 8, 5, 33}, {12, 4, 3, 2}, 2, square_window(2, 1)},
                            {{1, 64, 14, 14}, {64, 1, 3, 3}, 64, square_window(2, 1)},
                            {{1, 3, 31, 17}, {6, 1, 5, 5}, 3, square_window(3, 2)},
                            {{1, 4, 1, 1500}, {4, 2, 1, 31}, 2, square_window(1, 15)}};
  for (const Window& c : windows) {
    for (const Content content : {Content::kNormal, Content::kWide, Content::kSpecial}) {
      cases.check(content_name(content) + ("/" + window_text(c)), c.x[3] == 7 || c.x[3] == 33,
                  [=] { return conv_case(c, content); });
    }
  }
  for (const Window& c : ordered_windows()) {
    const reference::WindowOptions& o = c.window;
    const std::string at = window_text(c) + "-by-" + size_text({o.stride_height, o.stride_width});
    for (const Orders& orders : kOrders) {
      cases.test(orders.name + at, [=, &orders] { return ordered_case(c, orders); });
    }
  }
  cases.time("conformer depthwise", {"conv1d", R"({"groups": 512, "padding": 15})"},
             "X=1,512,499 W=512,1,31");
  cases.time("cvt-13 stage 1", {"conv2d", R"({"groups": 64, "padding": 1})"},
             "X=1,64,56,56 W=64,1,3,3");
  cases.limited_by("a weight is used for four outputs, and each of them loads its element");
}

}  // namespace vkformer::conformance
