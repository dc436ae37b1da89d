#include "model/model_builder.h"

#include <algorithm>
#include <cstring>

#include "base/message.h"

namespace vkformer {
namespace {

Shape logical_shape(const PackedWeight& weight) {
  switch (weight.row.layout) {
    case WeightLayout::kLinear:
      return {weight.row.width, weight.columns};
    case WeightLayout::kNorm:
      return {2, weight.row.width};
    case WeightLayout::kTable:
      return {weight.row.rows, weight.row.width};
  }
  return {};
}

}  // namespace

int64_t adapter_count(const std::vector<PackedWeight>& weights) {
  const std::string ending = adapter_row("", AdapterPart::kRanks);
  int64_t count = 0;
  for (const PackedWeight& weight : weights) {
    if (!weight.row.name.ends_with(ending)) continue;
    for (const float rank : weight.row.computed) {
      count = std::max(count, static_cast<int64_t>(rank) + 1);
    }
  }
  return count;
}

ModelBuilder::ModelBuilder(Graph& graph, const std::vector<PackedWeight>& weights)
    : graph_(graph), weights_(weights) {}

Result<TensorId> ModelBuilder::constant(const std::string& name, WeightLayout layout) {
  const auto known = constants_.find(name);
  if (known != constants_.end()) return known->second;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].row.name != name || weights_[i].row.layout != layout) continue;
    const TensorId id = add_constant(i);
    constants_.emplace(name, id);
    // Its slices follow it, in the table as in the graph.
    for (size_t s = i + 1; s < weights_.size() && weights_[s].first_column > 0; ++s) {
      add_constant(s);
    }
    return id;
  }
  return internal_error(message({"[", name, "] is not in the family's weight table"}));
}

TensorId ModelBuilder::add_constant(size_t index) {
  const PackedWeight& weight = weights_[index];
  std::string name = weight.row.name;
  if (weight.first_column > 0) name += " from column " + std::to_string(weight.first_column);
  return graph_.add_tensor({.name = std::move(name),
                            .dtype = weight.format == MatrixFormat::kF32   ? DType::kF32
                                     : weight.format == MatrixFormat::kF16 ? DType::kF16
                                                                           : DType::kU32,
                            .shape = logical_shape(weight),
                            .kind = TensorKind::kConstant,
                            .constant = static_cast<uint32_t>(index),
                            .bytes = weight.bytes});
}

bool ModelBuilder::has(const std::string& name) const {
  for (const PackedWeight& weight : weights_) {
    if (weight.row.name == name) return true;
  }
  return false;
}

Result<LinearWeight> ModelBuilder::linear(const std::string& name) {
  if (adapted_items_ > 0 && has(adapter_row(name, AdapterPart::kDown))) {
    return unsupported(message({"[", name,
                                "] has adapters of requests, but is more than a linear layer in "
                                "this model; load them merged (ModelOptions::adapters, "
                                "--adapter)."}));
  }
  return linear_without_adapters(name);
}

void ModelBuilder::use_adapters(int64_t items, int64_t beams) {
  adapted_items_ = items;
  adapted_beams_ = beams;
}

Result<std::optional<LinearAdapters>> ModelBuilder::adapters(const std::string& name) {
  std::optional<LinearAdapters> found;
  if (adapted_items_ == 0 || !has(adapter_row(name, AdapterPart::kDown))) return found;
  found.emplace();
  VKF_ASSIGN(found->down, linear_without_adapters(adapter_row(name, AdapterPart::kDown)));
  VKF_ASSIGN(found->up, linear_without_adapters(adapter_row(name, AdapterPart::kUp)));
  VKF_ASSIGN(found->ranks, table(adapter_row(name, AdapterPart::kRanks)));
  found->scales = graph_.find_external(kAdapterScales);
  if (found->scales == kNoTensor) {
    found->scales = graph_.add_external(kAdapterScales, DType::kF32,
                                        {adapted_items_ * adapted_beams_, adapter_count(weights_)});
  }
  found->items = adapted_items_;
  found->beams = adapted_beams_;
  return found;
}

Result<LinearWeight> ModelBuilder::linear_without_adapters(const std::string& name) {
  VKF_ASSIGN(TensorId id, constant(name, WeightLayout::kLinear));
  const size_t first = graph_.tensor(id).constant;
  const PackedWeight& packed = weights_[first];
  LinearWeight weight{.tensor = id,
                      .n = static_cast<uint32_t>(packed.row.rows),
                      .k = static_cast<uint32_t>(packed.row.width),
                      .bias_offset = packed.bias_offset,
                      .format = packed.format,
                      .exact = packed.row.format == WeightRow::Format::kExact};
  if (packed.columns == packed.row.rows) return weight;
  for (size_t i = first; i < weights_.size() && weights_[i].row.name == name; ++i) {
    const PackedWeight& slice = weights_[i];
    weight.slices.push_back({.tensor = id + static_cast<TensorId>(i - first),
                             .first = static_cast<uint32_t>(slice.first_column),
                             .n = static_cast<uint32_t>(slice.columns),
                             .bias_offset = slice.bias_offset,
                             .format = slice.format});
  }
  return weight;
}

Result<ExpertWeight> ModelBuilder::experts(const std::string& name) {
  VKF_ASSIGN(LinearWeight all, linear(name));
  const WeightRow& row = weights_[graph_.tensor(all.tensor).constant].row;
  return ExpertWeight{std::move(all), static_cast<uint32_t>(row.experts),
                      static_cast<uint32_t>(row.expert_rows)};
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

void ModelBuilder::feed(std::string what, TensorId tensor, uint64_t word) {
  feeds_.push_back({std::move(what), tensor, word});
}

TensorId ModelBuilder::host_tensor(const std::string& name, DType dtype, Shape shape,
                                   std::vector<uint32_t> values) {
  const TensorId known = graph_.find_external(name);
  if (known != kNoTensor) return known;
  const TensorId id = graph_.add_external(name, dtype, std::move(shape));
  host_words(id, 0, std::move(values));
  return id;
}

TensorId ModelBuilder::host_floats(const std::string& name, Shape shape,
                                   const std::vector<float>& values) {
  return host_tensor(name, DType::kF32, std::move(shape), float_words(values));
}

void ModelBuilder::host_words(TensorId tensor, uint64_t word, std::vector<uint32_t> values) {
  words_.push_back({tensor, word, std::move(values)});
}

std::vector<uint32_t> float_words(const std::vector<float>& values) {
  std::vector<uint32_t> words(values.size());
  if (!values.empty()) std::memcpy(words.data(), values.data(), values.size() * 4);
  return words;
}

}  // namespace vkformer
