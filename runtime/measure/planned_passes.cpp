#include "measure/planned_passes.h"

#include "base/handle_access.h"
#include "load/loaded_model.h"
#include "ops/op.h"
#include "session/sized_graphs.h"

namespace vkformer {

Result<std::vector<Plan>> plan_passes(const DeviceCaps& caps, const ModelSource& source,
                                      const ModelOptions& options, const SessionSizes& sizes) {
  VKF_ASSIGN(const ModelWeights model,
             read_model_weights(caps, *HandleAccess::impl(source), options));
  VKF_ASSIGN(const std::vector<SizedGraph> graphs,
             sized_graphs(*model.family, model.weights, sizes));
  std::vector<Plan> plans;
  for (const SizedGraph& sized : graphs) {
    VKF_ASSIGN(Plan plan, make_plan(sized.graph, caps, model.precision));
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace vkformer
