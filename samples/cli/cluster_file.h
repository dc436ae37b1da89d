// The description of a cluster that `vkformer plan --cluster` reads, and its plan as text.
#pragma once

#include <string>
#include <vector>

#include "output.h"
#include "vkformer/cluster_plan.h"

namespace vkformer::cli {

// A JSON object; samples/clusters/*.json are examples. Errors name the file and the key.
Result<ClusterOptions> read_cluster_file(const std::string& path);
// The same of what the file holds; `where` stands for the file in errors.
Result<ClusterOptions> cluster_of_json(const Json& file, const std::string& where);

Json cluster_json(const ClusterPlan& plan);
// Lines: the best split with its stages, then one for each depth.
std::vector<std::string> cluster_lines(const ClusterPlan& plan);

}  // namespace vkformer::cli
