// The cases of grid_distances: its checks, and what the benchmark times.
#include "ops/grid_distances.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "reference/grid_distances.h"

namespace vkformer::conformance {
namespace {

using reference::GridDistanceOptions;

struct GridDistanceSize {
  const char* name;
  int64_t batch, head_width;
  GridDistanceOptions options;
};

const GridDistanceSize kGridDistances[] = {{"one", 1, 1, {1, 1, 1, 1.0}},
                                           {"row", 2, 5, {3, 1, 9, 0.5}},
                                           {"column", 1, 33, {2, 7, 1, 0.25}},
                                           {"prime", 3, 7, {3, 5, 11, 0.375}},
                                           {"sam-window", 1, 64, {2, 14, 14, 0.125}}};

Result<CheckCase> distance_case(const GridDistanceSize& size, Content content) {
  const GridDistanceOptions& o = size.options;
  const Array qkv =
      random_array({size.batch, o.height * o.width, 3 * o.heads * size.head_width}, 1, content);
  const Array table = random_array({2 * o.height + 2 * o.width - 2, size.head_width}, 2);
  VKF_ASSIGN(Array y, reference::grid_distances(qkv, table, o));
  CheckCase made;
  const TensorId qkv_id = made.op.bind("qkv", floats(qkv));
  const TensorId table_id = made.op.bind("table", floats(table));
  VKF_ASSIGN(const TensorId to, add_grid_distances(made.op.graph, qkv_id, table_id,
                                                   {u32(o.heads), u32(o.height), u32(o.width),
                                                    static_cast<float>(o.scale)}));
  made.op.name_output(to, "y");
  made.expected.emplace("y", Expected{std::move(y), terms(size.head_width), magnitude_of(qkv)});
  return made;
}

Status distance_graph(StepGraph& in) {
  const int64_t side = in.number("side"), heads = in.number("heads"), e = in.number("width");
  const TensorId qkv = in.floats("qkv", {in.number("batch"), side * side, 3 * heads * e});
  const TensorId table = in.floats("table", {4 * side - 2, e});
  VKF_ASSIGN(const TensorId y, add_grid_distances(in.graph(), qkv, table,
                                                  {u32(heads), u32(side), u32(side), 0.125f}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void grid_distances_cases(OperatorCases& cases) {
  for (const GridDistanceSize& size : kGridDistances) {
    cases.check(std::string("normal/") + size.name, size.batch == 3,
                [=] { return distance_case(size, Content::kNormal); });
  }
  for (const Content content : {Content::kWide, Content::kTiny, Content::kSpecial}) {
    cases.check(content_name(content), true,
                [=] { return distance_case(kGridDistances[3], content); });
  }
  cases.time_graph("sam-vit-base windows", "batch=25 side=14 heads=12 width=64", distance_graph);
  cases.time_graph("sam-vit-base global", "side=64 heads=12 width=64", distance_graph);
  cases.limited_by("products of single rows with a table, which caches hold");
}

}  // namespace vkformer::conformance
