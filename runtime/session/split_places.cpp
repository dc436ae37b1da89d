#include "session/split_places.h"

#include <algorithm>
#include <set>

#include "graph/tensor_bytes.h"
#include "ops/fusion.h"
#include "recording/node_places.h"
#include "session/sized_graphs.h"

namespace vkformer {
namespace {

// Places in the order in which a pass comes to them.
class Places {
 public:
  explicit Places(const std::vector<PackedWeight>& weights) : weights_(weights) {}

  // `tokens`: that the pass has; 0: its work does not count.
  void add(const Graph& graph, int64_t tokens) {
    const bool counts = tokens > 0;
    std::vector<size_t> made_at(graph.tensors().size(), SIZE_MAX);
    std::vector<size_t> read_at(graph.tensors().size(), 0);
    size_t at = 0;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      at = place_index(place_of_node(graph, i), at, counts);
      for (const TensorId id : node.inputs) {
        if (id == kNoTensor) continue;
        read_at[id] = std::max(read_at[id], at);
        if (graph.tensor(id).kind == TensorKind::kConstant) add_weight(at, node, graph, id, counts);
      }
      for (const TensorId id : node.outputs) {
        if (id != kNoTensor) made_at[id] = std::min(made_at[id], at);
      }
    }
    for (TensorId id = 0; counts && id < made_at.size(); ++id) {
      const TensorDesc& desc = graph.tensor(id);
      if (made_at[id] == SIZE_MAX || desc.kind != TensorKind::kTemporary) continue;
      const auto bytes = static_cast<double>(tensor_bytes(desc));
      for (size_t place = made_at[id] + 1; place <= read_at[id]; ++place) {
        places_[place].handed += bytes / static_cast<double>(tokens);
      }
    }
  }

  // Dispatches of a pass that was added: one for each node that is left after fusion.
  void count_dispatches(const Graph& graph) {
    // The same at every process of a group, whatever its device.
    const FusedGraph fused = fuse(graph, DeviceCaps{}, Precision::kF32);
    size_t at = 0;
    for (size_t i = 0; i < fused.graph.nodes().size(); ++i) {
      const size_t before = at;
      at = place_index(place_of_node(fused.graph, i), at, false);
      ++places_[at].dispatches;
      if (i == 0 || at != before) ++places_[at].visits;
    }
  }

  // What the step of a longer cache holds more of: keys and values, by the tokens it is longer by.
  void add_cache(const Graph& longer, const Graph& step, int64_t tokens) {
    std::map<std::string, double> bytes;
    for (const TensorDesc& desc : step.tensors()) bytes[desc.name] = external_bytes(desc);
    size_t at = 0;
    std::set<TensorId> seen;
    for (size_t i = 0; i < longer.nodes().size(); ++i) {
      at = place_index(place_of_node(longer, i), at, false);
      for (const TensorId id : longer.nodes()[i].inputs) {
        if (id == kNoTensor || !seen.insert(id).second) continue;
        const TensorDesc& desc = longer.tensor(id);
        const double more = external_bytes(desc) - bytes[desc.name];
        if (more > 0) places_[at].cache += more / static_cast<double>(tokens);
      }
    }
  }

  // Weights that none of these passes reads (towers of pictures) are the first place's.
  std::vector<SplitPlace> take() {
    std::vector<bool> read(weights_.size());
    for (const SplitPlace& place : places_) {
      for (const uint32_t weight : place.weights) read[weight] = true;
    }
    for (uint32_t i = 0; i < read.size() && !places_.empty(); ++i) {
      if (!read[i]) places_[0].weights.push_back(i);
    }
    return std::move(places_);
  }

 private:
  static double external_bytes(const TensorDesc& desc) {
    return desc.kind == TensorKind::kExternal ? static_cast<double>(tensor_bytes(desc)) : 0;
  }

  // Of a pass that does not count, what has no place is at the one before.
  size_t place_index(const std::string& name, size_t before, bool counts) {
    const auto found = index_.find(name);
    if (found != index_.end()) return found->second;
    if (!counts) return before;
    index_.emplace(name, places_.size());
    places_.push_back({.name = name, .weights = {}});
    return places_.size() - 1;
  }

  void add_weight(size_t at, const Node& node, const Graph& graph, TensorId id, bool counts) {
    const uint32_t weight = graph.tensor(id).constant;
    places_[at].weights.push_back(weight);
    const bool looked_up = std::string_view(node.op_name).starts_with("embedding");
    if (!counts || looked_up || weights_[weight].row.layout != WeightLayout::kLinear) return;
    const PackedWeight& matrix = weights_[weight];
    places_[at].work += static_cast<double>(matrix.bytes);
    places_[at].multiplies +=
        static_cast<double>(matrix.columns) * static_cast<double>(matrix.row.width);
  }

  const std::vector<PackedWeight>& weights_;
  std::vector<SplitPlace> places_;
  std::map<std::string, size_t> index_;
};

}  // namespace

Result<std::vector<SplitPlace>> split_places(const ModelFamily& family,
                                             const std::vector<PackedWeight>& weights) {
  constexpr int64_t kMoreTokens = 64;
  const ModelFacts& facts = family.facts();
  Places places(weights);
  const int64_t tokens = facts.max_source > 0 ? std::min<int64_t>(facts.max_source, 8) : 8;
  const auto forward = sized_graphs(family, weights, {.batch = 1, .tokens = tokens});
  if (!forward) return forward.error().with_context("[group] no pass of this model can be planned");
  places.add((*forward)[0].graph, tokens);
  places.count_dispatches((*forward)[0].graph);
  if (facts.head != HeadKind::kLanguage) return places.take();
  // What does not generate in steps has no such graphs.
  SessionSizes sizes{.batch = 1, .tokens = std::max<int64_t>(1, tokens / 2), .new_tokens = 2};
  const auto steps = sized_graphs(family, weights, sizes);
  if (!steps) return places.take();
  for (const SizedGraph& graph : *steps) places.add(graph.graph, 0);
  sizes.new_tokens += kMoreTokens;
  const auto longer = sized_graphs(family, weights, sizes);
  if (longer) places.add_cache(longer->back().graph, steps->back().graph, kMoreTokens);
  return places.take();
}

}  // namespace vkformer
