#include "model/blocks/adapted_linear.h"

#include "base/check.h"
#include "base/narrow.h"
#include "model/blocks/stack.h"
#include "ops/combine.h"
#include "ops/matmul_strategy.h"
#include "ops/scale_ranks.h"

namespace vkformer {
namespace {

// Rows of ranks, each by the scale that its sequence has of the rank's adapter.
Result<TensorId> add_scaled_ranks(Graph& graph, TensorId low, const LinearAdapters& adapters) {
  ScaleRanksInputs inputs{.x = low, .scales = adapters.scales, .ranks = adapters.ranks};
  if (graph.is_step()) inputs.state = add_decode_state(graph);
  return add_scale_ranks(graph, inputs,
                         {.items = u32(adapters.items), .beams = u32(adapters.beams)});
}

}  // namespace

ExpertWeight weight_by_head(LinearWeight all, uint32_t n) {
  const uint32_t filled = ceil_div(n, kPanelColumns) * kPanelColumns;
  const uint32_t matrices = all.n / filled;
  return {std::move(all), matrices, n};
}

Result<TensorId> add_adapted_linear(Graph& graph, TensorId x, const LinearWeight& weight,
                                    const LinearAdapters& adapters, const LinearAttrs& attrs) {
  VKF_ASSIGN(const TensorId base, add_linear(graph, x, weight, {.alpha = attrs.alpha}));
  VKF_ASSIGN(TensorId low, add_linear(graph, x, adapters.down, {}));
  VKF_ASSIGN(low, add_scaled_ranks(graph, low, adapters));
  VKF_ASSIGN(const TensorId y,
             add_linear(graph, low, adapters.up, {.alpha = attrs.alpha, .residual = base}));
  return finish_linear(graph, y, attrs);
}

Result<TensorId> add_adapted_heads(Graph& graph, TensorId x, const ExpertWeight& weight,
                                   const LinearAdapters& adapters, const HeadLinearAttrs& attrs) {
  const auto ranks = u32(element_count(graph.tensor(adapters.ranks).shape)) / weight.experts;
  const ExpertWeight down = weight_by_head(adapters.down, ranks);
  const ExpertWeight up = weight_by_head(adapters.up, weight.n);
  // A matrix that all heads share is one.
  const auto sharing = [&](const ExpertWeight& matrices) {
    return matrices.experts == weight.experts ? 0 : weight.experts;
  };
  VKF_ASSIGN(const TensorId base, add_head_linear(graph, x, weight, attrs));
  VKF_ASSIGN(TensorId low,
             add_head_linear(graph, x, down, {attrs.first, attrs.stride, sharing(down)}));
  VKF_ASSIGN(low, add_scaled_ranks(graph, low, adapters));
  VKF_ASSIGN(const TensorId more, add_head_linear(graph, low, up, {0, ranks, sharing(up)}));
  return add_combine(graph, base, more, {});
}

}  // namespace vkformer
