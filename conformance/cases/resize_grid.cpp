// The cases of resize_grid: its checks, and what the benchmark times.
#include "ops/resize_grid.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "reference/resize_grid.h"

namespace vkformer::conformance {
namespace {

using reference::GridOptions;

struct Resize {
  const char* name;
  int64_t batch, channels;
  GridOptions grid;
};

const Resize kResizes[] = {{"one", 1, 1, {1, 1, 1, 1}},     {"from-one", 2, 33, {1, 1, 5, 3}},
                           {"larger", 2, 7, {3, 4, 8, 11}}, {"smaller", 1, 65, {11, 9, 4, 5}},
                           {"twice", 1, 8, {6, 5, 12, 10}}, {"mixed", 3, 31, {2, 13, 7, 6}}};

// Means of 2 x 2, of sides that are even, odd and 1.
const Resize kHalved[] = {{"one", 1, 1, {1, 1, 1, 1, false, true}},
                          {"even", 2, 33, {6, 4, 3, 2, false, true}},
                          {"odd", 3, 7, {7, 5, 4, 3, false, true}},
                          {"line", 1, 65, {1, 9, 1, 5, false, true}}};

Result<CheckCase> resize_case(const Resize& resize, bool aligned, Content content) {
  GridOptions grid = resize.grid;
  grid.aligned = aligned;
  const Array x =
      random_array({resize.batch, grid.height * grid.width, resize.channels}, 1, content);
  VKF_ASSIGN(Array y, reference::resize_grid(x, grid));
  CheckCase made;
  const TensorId from = made.op.bind("x", floats(x));
  ResizeGridAttrs attrs{u32(grid.height), u32(grid.width), u32(grid.out_height),
                        u32(grid.out_width)};
  if (aligned) attrs.corners = ResizeGridAttrs::Corners::kAligned;
  if (grid.halves) attrs.corners = ResizeGridAttrs::Corners::kHalves;
  VKF_ASSIGN(const TensorId to, add_resize_grid(made.op.graph, from, attrs));
  made.op.name_output(to, "y");
  // Places are f32: 16 terms bound their rounding as well.
  made.expected.emplace("y", Expected{std::move(y), terms(16), magnitude_of(x)});
  return made;
}

Status resize_graph(StepGraph& in) {
  const uint32_t side = u32(in.number("side"));
  const uint32_t to = u32(in.number("to"));
  const TensorId x = in.floats("x", {1, int64_t{side} * side, in.number("channels")});
  VKF_ASSIGN(
      const TensorId y,
      add_resize_grid(in.graph(), x, {side, side, to, to, ResizeGridAttrs::Corners::kAligned}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void resize_grid_cases(OperatorCases& cases) {
  for (const Resize& resize : kResizes) {
    const bool quick = std::string(resize.name) == "larger";
    for (const bool aligned : {false, true}) {
      cases.check(std::string(aligned ? "aligned/" : "centers/") + resize.name, quick,
                  [=] { return resize_case(resize, aligned, Content::kNormal); });
    }
  }
  for (const Resize& resize : kHalved) {
    const bool quick = std::string(resize.name) == "odd";
    cases.check(std::string("halves/") + resize.name, quick,
                [=] { return resize_case(resize, false, Content::kNormal); });
  }
  for (const Content content : {Content::kWide, Content::kTiny}) {
    cases.check(content_name(content), true,
                [=] { return resize_case(kResizes[2], true, content); });
  }
  cases.time_graph("depth-anything-small 518", "side=296 to=518 channels=32", resize_graph);
  cases.limited_by("four tokens are read for each that is written");
}

}  // namespace vkformer::conformance
