#include "vkformer/cluster_plan.h"

#include "base/guarded.h"
#include "base/handle_access.h"
#include "measure/cluster_planning.h"

namespace vkformer {

Result<ClusterPlan> plan_cluster(const ModelSource& model, const ClusterOptions& options) {
  return guarded([&] { return plan_cluster_of(*HandleAccess::impl(model), options); });
}

}  // namespace vkformer
