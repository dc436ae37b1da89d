#include "model/model_builder.h"

namespace vkformer {
namespace {

Shape logical_shape(const PackedWeight& weight) {
  switch (weight.row.layout) {
    case WeightLayout::kLinear:
      return {weight.row.width, weight.row.rows};
    case WeightLayout::kNorm:
      return {2, weight.row.width};
    case WeightLayout::kTable:
      return {weight.row.rows, weight.row.width};
  }
  return {};
}

}  // namespace

ModelBuilder::ModelBuilder(Graph& graph, const std::vector<PackedWeight>& weights)
    : graph_(graph), weights_(weights) {}

Result<TensorId> ModelBuilder::constant(const std::string& name, WeightLayout layout) {
  const auto known = constants_.find(name);
  if (known != constants_.end()) return known->second;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].row.name != name || weights_[i].row.layout != layout) continue;
    const TensorId id = graph_.add_tensor({.name = name,
                                           .dtype = weights_[i].dtype,
                                           .shape = logical_shape(weights_[i]),
                                           .kind = TensorKind::kConstant,
                                           .constant = static_cast<uint32_t>(i),
                                           .bytes = weights_[i].bytes});
    constants_.emplace(name, id);
    return id;
  }
  return internal_error("[" + name + "] is not in the family's weight table");
}

Result<LinearWeight> ModelBuilder::linear(const std::string& name) {
  VKF_ASSIGN(TensorId id, constant(name, WeightLayout::kLinear));
  const PackedWeight& packed = weights_[graph_.tensor(id).constant];
  return LinearWeight{.tensor = id,
                      .n = static_cast<uint32_t>(packed.row.rows),
                      .k = static_cast<uint32_t>(packed.row.width),
                      .bias_offset = packed.bias_offset,
                      .dtype = packed.dtype};
}

Result<TensorId> ModelBuilder::norm(const std::string& name) {
  return constant(name, WeightLayout::kNorm);
}

Result<TensorId> ModelBuilder::table(const std::string& name) {
  return constant(name, WeightLayout::kTable);
}

void ModelBuilder::mark_output(TensorId tensor, const std::string& name) {
  graph_.tensor(tensor).kind = TensorKind::kExternal;
  graph_.tensor(tensor).name = name;
}

}  // namespace vkformer
