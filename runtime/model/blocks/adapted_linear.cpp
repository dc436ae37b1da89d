#include "model/blocks/adapted_linear.h"

#include "base/check.h"
#include "base/narrow.h"
#include "model/blocks/stack.h"
#include "ops/scale_ranks.h"

namespace vkformer {

Result<TensorId> add_adapted_linear(Graph& graph, TensorId x, const LinearWeight& weight,
                                    const LinearAdapters& adapters, const LinearAttrs& attrs) {
  VKF_ASSIGN(const TensorId base, add_linear(graph, x, weight, {.alpha = attrs.alpha}));
  VKF_ASSIGN(TensorId low, add_linear(graph, x, adapters.down, {}));
  ScaleRanksInputs inputs{.x = low, .scales = adapters.scales, .ranks = adapters.ranks};
  if (graph.is_step()) inputs.state = add_decode_state(graph);
  VKF_ASSIGN(low, add_scale_ranks(graph, inputs,
                                  {.items = u32(adapters.items), .beams = u32(adapters.beams)}));
  VKF_ASSIGN(const TensorId y,
             add_linear(graph, low, adapters.up, {.alpha = attrs.alpha, .residual = base}));
  return finish_linear(graph, y, attrs);
}

}  // namespace vkformer
