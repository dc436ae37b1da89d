// The cases of lsh_sort: its checks, and what the benchmark times.
#include "ops/lsh_sort.h"
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/head_cases.h"
#include "conformance/step_graph.h"
#include "measure/benchmark_inputs.h"
#include "reference/lsh_sort.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> sort_case(const Shape& shape, int64_t buckets) {
  Array x = random_ids(shape, 3, buckets);
  for (int64_t i = 0; i < x.size(); ++i) {
    x[i] += static_cast<double>(i / shape[3] % shape[2] * buckets);
  }
  VKF_ASSIGN(Array order, reference::lsh_sort(x));
  CheckCase made;
  Tensor words = Tensor::zeros(DType::kU32, shape);
  auto* at = reinterpret_cast<uint32_t*>(words.bytes.data());
  for (const double value : x.data) *at++ = static_cast<uint32_t>(value);
  const TensorId id = made.op.bind("buckets", std::move(words));
  VKF_ASSIGN(const TensorId y, add_lsh_sort(made.op.graph, id, {.buckets = u32(buckets)}));
  made.op.name_output(y, "order");
  made.expected.emplace("order", Expected{std::move(order)});
  return made;
}

Status lsh_sort_graph(StepGraph& in) {
  const int64_t heads = in.number("heads"), tokens = in.number("tokens");
  const int64_t rounds = in.number("rounds"), buckets = in.number("buckets");
  UniformNoise noise(1);
  std::vector<uint32_t> values(static_cast<size_t>(heads * rounds * tokens));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t round = static_cast<int64_t>(i) / tokens % rounds;
    const float unit = 0.5f + 0.5f * noise.next();
    values[i] = u32(round * buckets + static_cast<int64_t>(unit * static_cast<float>(buckets)));
  }
  const TensorId x = in.words("buckets", {1, heads, rounds, tokens}, values);
  VKF_ASSIGN(const TensorId y, add_lsh_sort(in.graph(), x, {.buckets = u32(buckets)}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void lsh_sort_cases(OperatorCases& cases) {
  for (const Shape& shape : kTokenShapes) {
    const bool quick = shape[2] == 33;
    const Shape units{shape[0], shape[1], 2, shape[2]};
    cases.check("few/" + size_text(units), quick, [=] { return sort_case(units, 5); });
    cases.check("many/" + size_text(units), quick, [=] { return sort_case(units, 300); });
  }
  cases.time_graph("reformer 4096", "heads=2 tokens=4096 rounds=2 buckets=64", lsh_sort_graph);
  cases.limited_by("radix passes that wait for each other");
}

}  // namespace vkformer::conformance
