// The cases of max_pool: its checks, and what the benchmark times.
#include "ops/max_pool.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "reference/max_pool.h"

namespace vkformer::conformance {
namespace {

using reference::WindowOptions;

struct PoolSizes {
  const char* name;
  Shape x;  // (B, C, H, W)
  WindowOptions window;
};

// ResNet's.
const WindowOptions kStem = {.kernel_height = 3,
                             .kernel_width = 3,
                             .stride_height = 2,
                             .stride_width = 2,
                             .pad_top = 1,
                             .pad_left = 1};

const PoolSizes kPools[] = {
    {"one", {1, 1, 1, 1}, {}},
    {"resnet-odd", {2, 5, 11, 13}, kStem},
    {"resnet", {1, 65, 16, 16}, kStem},
    {"halves",
     {3, 7, 6, 10},
     {.kernel_height = 2, .kernel_width = 2, .stride_height = 2, .stride_width = 2}},
    {"row", {1, 33, 1, 40}, {.kernel_width = 4, .stride_width = 3}},
    {"all", {2, 31, 5, 4}, {.kernel_height = 5, .kernel_width = 4}}};

ConvWindow window_of(const WindowOptions& o) {
  return {u32(o.kernel_height), u32(o.kernel_width), u32(o.stride_height), u32(o.stride_width),
          u32(o.pad_top),       u32(o.pad_left),     u32(o.out_height),    u32(o.out_width)};
}

Result<CheckCase> pool_case(const PoolSizes& pool, ChannelOrder order, Content content) {
  const Array x = random_array(pool.x, 1, content);
  VKF_ASSIGN(Array y, reference::max_pool(x, pool.window));
  CheckCase made;
  const Array given = order == ChannelOrder::kLast ? reference::channels_last(x) : x;
  const TensorId from = made.op.bind("x", floats(given));
  VKF_ASSIGN(const TensorId to,
             add_max_pool(made.op.graph, from,
                          {.source = {.order = order}, .window = window_of(pool.window)}));
  made.op.name_output(to, "y");
  // Values are chosen and not computed with.
  made.expected.emplace("y", Expected{std::move(y), Tolerance{}, magnitude_of(x)});
  return made;
}

Status pool_graph(StepGraph& in) {
  const int64_t side = in.number("side");
  const TensorId x = in.floats("x", {1, side * side, in.number("channels")});
  const MaxPoolAttrs attrs{
      .source = {.order = ChannelOrder::kLast, .height = u32(side), .width = u32(side)},
      .window = {3, 3, 2, 2, 1, 1}};
  VKF_ASSIGN(const TensorId y, add_max_pool(in.graph(), x, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void max_pool_cases(OperatorCases& cases) {
  for (const PoolSizes& pool : kPools) {
    const bool quick = std::string(pool.name) == "resnet-odd";
    cases.check(std::string("first/") + pool.name, quick,
                [=] { return pool_case(pool, ChannelOrder::kFirst, Content::kNormal); });
    cases.check(std::string("last/") + pool.name, quick,
                [=] { return pool_case(pool, ChannelOrder::kLast, Content::kNormal); });
  }
  for (const Content content : {Content::kWide, Content::kTiny, Content::kSpecial}) {
    cases.check(content_name(content), true,
                [=] { return pool_case(kPools[1], ChannelOrder::kLast, content); });
  }
  cases.time_graph("resnet-50 stem 800", "side=400 channels=64", pool_graph);
  cases.limited_by("every pixel is read by each window that covers it");
}

}  // namespace vkformer::conformance
