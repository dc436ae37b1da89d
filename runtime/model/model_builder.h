// What a model file builds with: a graph, and its weights by logical name.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/matmul.h"
#include "weights/weight_table.h"

namespace vkformer {

class ModelBuilder {
 public:
  ModelBuilder(Graph& graph, const std::vector<PackedWeight>& weights);

  Graph& graph() { return graph_; }
  // A packed matrix with its bias. The name must be a kLinear row of the family's table.
  Result<LinearWeight> linear(const std::string& name);
  // Norm parameters (2, D).
  Result<TensorId> norm(const std::string& name);
  // A table (rows, D) f32.
  Result<TensorId> table(const std::string& name);

  // Hands a temporary out of the graph under that name.
  void mark_output(TensorId tensor, const std::string& name);

 private:
  Result<TensorId> constant(const std::string& name, WeightLayout layout);

  Graph& graph_;
  const std::vector<PackedWeight>& weights_;
  std::map<std::string, TensorId> constants_;
};

}  // namespace vkformer
