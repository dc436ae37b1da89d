// The cases of latent_queries: its checks, and what the benchmark times.
#include "ops/latent_queries.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"

namespace vkformer::conformance {
namespace {

struct LatentWidths {
  int64_t rows, heads, turned, rest, rank;
};

constexpr LatentWidths kLatentWidths[] = {{1, 1, 1, 0, 1},    {3, 2, 4, 8, 10},
                                          {5, 3, 8, 6, 7},    {7, 1, 33, 31, 65},
                                          {2, 5, 0, 16, 129}, {33, 16, 64, 128, 512}};

Result<CheckCase> latent_queries_case(const LatentWidths& w, Content content, bool step) {
  const int64_t width = w.turned + w.rest, line_width = w.turned + w.rank;
  const Array q = random_array({w.rows, w.heads * width}, 1, content);
  const Array absorbed = random_array({w.rows, w.heads * w.rank}, 2, content);
  const Array line = random_array({w.rows, line_width}, 3, content);
  Array y = reference::filled({w.rows, (w.heads + 1) * line_width}, 0);
  int64_t to = 0;
  for (int64_t row = 0; row < w.rows; ++row) {
    for (int64_t h = row * w.heads; h < (row + 1) * w.heads; ++h) {
      for (int64_t i = 0; i < w.turned; ++i) y[to++] = q[h * width + i];
      for (int64_t i = 0; i < w.rank; ++i) y[to++] = absorbed[h * w.rank + i];
    }
    for (int64_t i = 0; i < line_width; ++i) y[to++] = line[row * line_width + i];
  }
  CheckCase made;
  if (step) {
    made.op.graph.set_step(u32(w.rows));
    made.live_slots = u32(w.rows);
  }
  const LatentQueriesInputs in{made.op.bind("q", floats(q)),
                               made.op.bind("absorbed", floats(absorbed)),
                               made.op.bind("line", floats(line))};
  VKF_ASSIGN(const TensorId id, add_latent_queries(made.op.graph, in, {u32(w.heads)}));
  made.op.name_output(id, "y");
  made.expected.emplace("y", Expected{std::move(y)});
  return made;
}

Status latent_queries_graph(StepGraph& in) {
  const int64_t rows = in.number("rows"), heads = in.number("heads");
  in.graph().set_step(u32(rows));
  const LatentQueriesInputs inputs{in.floats("q", {rows, heads * 192}),
                                   in.floats("absorbed", {rows, heads * 512}),
                                   in.floats("line", {rows, 576})};
  VKF_ASSIGN(const TensorId y, add_latent_queries(in.graph(), inputs, {u32(heads)}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void latent_queries_cases(OperatorCases& cases) {
  for (const LatentWidths& w : kLatentWidths) {
    const std::string size = size_text({w.rows, w.heads, w.turned, w.rest, w.rank});
    for (const Content content : kAllContents) {
      cases.check(std::string(content_name(content)) + "/" + size, w.rows == 5,
                  [=] { return latent_queries_case(w, content, false); });
    }
    cases.check("step/" + size, w.rows == 3,
                [=] { return latent_queries_case(w, Content::kNormal, true); });
  }
  cases.time_graph("deepseek-v3 1 token", "rows=1 heads=128", latent_queries_graph);
  cases.limited_by("a small copy: the dispatch itself is the cost");
}

}  // namespace vkformer::conformance
