// The cases of expert_route: its checks, and what the benchmark times.
#include "ops/expert_route.h"

#include <cstring>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "reference/expert_route.h"

namespace vkformer::conformance {
namespace {

struct Route {
  const char* name;
  int64_t rows, experts, choices;
  bool sigmoid = false, normalize = true, bias = false;
  int64_t groups = 1, kept = 1, always = 0;
  float scale = 1;
};

// Mixtral, Qwen3, OLMoE, GPT-OSS, DeepSeek-V3, Qwen3-Next, and odd ones.
constexpr Route kRoutes[] = {
    {"one", 1, 1, 1},
    {"all", 3, 5, 5},
    {"mixtral", 5, 8, 2},
    {"qwen3", 4, 128, 8, false, false},
    {"odd", 7, 33, 7},
    {"many", 2, 1000, 22},
    {"most", 3, 64, 64, true, false},
    {"bias", 6, 31, 4, false, true, true},
    {"deepseek", 5, 256, 8, true, true, true, 8, 4, 0, 2.5f},
    {"groups", 9, 12, 3, false, true, false, 4, 2},
    {"pairs", 9, 12, 2, true, false, true, 6, 1},
    {"always", 5, 16, 3, false, true, false, 1, 1, 2},
};

ExpertRouteAttrs attrs_of(const Route& r) {
  return {
      .experts = u32(r.experts),
      .choices = u32(r.choices),
      .scores = r.sigmoid ? ExpertRouteAttrs::Scores::kSigmoid : ExpertRouteAttrs::Scores::kSoftmax,
      .normalize = r.normalize,
      .scale = r.scale,
      .least_sum = r.sigmoid ? 1e-20f : 0.0f,
      .groups = u32(r.groups),
      .kept_groups = u32(r.kept)};
}

// (R, K + A, 2) words -> experts and weights (R, K + A).
Result<TensorMap> split_routes(TensorMap outputs) {
  const Tensor& routes = outputs["routes"];
  const std::vector<uint32_t> words = tensor_words(routes);
  const Shape shape(routes.shape.begin(), routes.shape.end() - 1);
  std::vector<uint32_t> experts(words.size() / 2);
  Tensor weights = Tensor::zeros(DType::kF32, shape);
  for (size_t i = 0; i < experts.size(); ++i) {
    experts[i] = words[2 * i];
    std::memcpy(weights.bytes.data() + 4 * i, &words[2 * i + 1], 4);
  }
  TensorMap split;
  split.emplace("experts", index_tensor(experts, shape));
  split.emplace("weights", std::move(weights));
  return split;
}

Result<CheckCase> route_case(const Route& r, Content content, bool ties) {
  Array logits = random_array({r.rows, r.experts + r.always}, 3, content);
  if (ties) logits = with_ties(std::move(logits));
  // Far enough apart that a sigmoid in f32 keeps the order.
  const Array bias = scaled(random_array({r.experts}, 4), 0.5);
  const ExpertRouteAttrs attrs = attrs_of(r);
  CheckCase made;
  const TensorId x = made.op.bind("logits", floats(logits));
  const TensorId b = r.bias ? made.op.bind("bias", floats(bias)) : kNoTensor;
  VKF_ASSIGN(const TensorId y, add_expert_route(made.op.graph, x, b, attrs));
  made.op.name_output(y, "routes");
  made.op.finish = split_routes;
  reference::ExpertRouteOptions options{.experts = r.experts,
                                        .choices = r.choices,
                                        .sigmoid = r.sigmoid,
                                        .normalize = r.normalize,
                                        .scale = r.scale,
                                        .least_sum = r.sigmoid ? 1e-20 : 0.0,
                                        .groups = r.groups,
                                        .kept_groups = r.kept};
  if (r.bias) options.bias = &bias;
  VKF_ASSIGN(reference::ExpertRoutes routes, reference::expert_route(logits, options));
  made.expected.emplace("experts", Expected{std::move(routes.experts)});
  made.expected.emplace("weights", Expected{std::move(routes.weights), terms(r.experts)});
  return made;
}

Status route_graph(StepGraph& in) {
  const int64_t rows = in.number("rows"), experts = in.number("experts");
  const TensorId logits = in.floats("logits", {rows, experts});
  VKF_ASSIGN(const TensorId y,
             add_expert_route(in.graph(), logits, kNoTensor,
                              {.experts = u32(experts), .choices = u32(in.number("choices"))}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void expert_route_cases(OperatorCases& cases) {
  for (const Route& r : kRoutes) {
    cases.check(std::string("normal/") + r.name, r.experts < 40,
                [=] { return route_case(r, Content::kNormal, false); });
    // Sums with a bias of f32 and of f64 round apart where there are ties.
    if (r.bias || r.sigmoid || r.groups > 1) continue;
    cases.check(std::string("ties/") + r.name, r.experts == 33,
                [=] { return route_case(r, Content::kNormal, true); });
    cases.check(std::string("special/") + r.name, r.experts == 8,
                [=] { return route_case(r, Content::kSpecial, false); });
    cases.check(std::string("wide/") + r.name, r.experts == 16,
                [=] { return route_case(r, Content::kWide, false); });
  }
  cases.time_graph("qwen3-30b 512", "rows=512 experts=128 choices=8", route_graph);
  cases.limited_by("the best of a row are kept in order while it is read");
}

}  // namespace vkformer::conformance
