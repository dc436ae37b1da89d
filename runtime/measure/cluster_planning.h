// Plans of models on clusters that are only described (vkformer/cluster_plan.h).
#pragma once

#include "checkpoint/file_store.h"
#include "vkformer/cluster_plan.h"

namespace vkformer {

Result<ClusterPlan> plan_cluster_of(const FileStore& files, const ClusterOptions& options);

}  // namespace vkformer
