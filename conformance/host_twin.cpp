#include "conformance/host_twin.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "conformance/twin/twin_run.h"
#include "ops/fusion.h"

namespace vkformer::conformance {
namespace {

const TwinOp* twin_of(std::string_view op) {
  for (const auto& table : {attention_twins(), choice_twins(), grid_twins(), linear_twins(),
                            move_twins(), product_twins(), row_twins(), state_twins()}) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const TwinOp& t) { return t.op == op; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

bool run_twin(TwinRun& run, const Node& node) {
  const TwinOp* twin = twin_of(node.op_name);
  return twin != nullptr && run.prepare(node) && twin->run(run, node);
}

}  // namespace

TwinRun::TwinRun(const Graph& graph, const TensorMap& inputs) : graph_(graph) {
  for (const auto& [name, tensor] : inputs) {
    const TensorId id = graph.find_external(name);
    if (id == kNoTensor) continue;
    Memory m{tensor.shape, std::vector<uint32_t>((tensor.bytes.size() + 3) / 4)};
    std::memcpy(m.words.data(), tensor.bytes.data(), tensor.bytes.size());
    memory_[id] = std::move(m);
  }
}

bool TwinRun::prepare(const Node& node) {
  for (const TensorId id : node.inputs) {
    if (id == kNoTensor || knows(id)) continue;
    const TensorDesc& t = graph_.tensor(id);
    if (t.kind != TensorKind::kExternal) return false;
    // What nobody binds is memory that nodes write before they read it.
    const size_t words = static_cast<size_t>(element_count(t.shape)) * dtype_size(t.dtype) / 4;
    memory_[id] = {t.shape, std::vector<uint32_t>(words, kNanBits)};
  }
  return true;
}

Memory& TwinRun::out(const Node& node, size_t i) {
  const TensorDesc& t = graph_.tensor(node.outputs[i]);
  Memory& m = memory_[node.outputs[i]];
  m.shape = t.shape;
  m.words.resize(static_cast<size_t>(element_count(t.shape)), kNanBits);
  return m;
}

TensorMap TwinRun::outputs() const {
  TensorMap map;
  for (const Node& node : graph_.nodes()) {
    for (const TensorId id : node.outputs) {
      if (id == kNoTensor) continue;
      const TensorDesc& t = graph_.tensor(id);
      if (t.kind != TensorKind::kExternal || dtype_size(t.dtype) != 4) continue;
      Tensor tensor{t.dtype, t.shape, {}};
      const auto& words = memory_.at(id).words;
      tensor.bytes.resize(4 * words.size());
      std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
      map.insert_or_assign(t.name, std::move(tensor));
    }
  }
  return map;
}

bool is_exact(const std::string& op) {
  constexpr std::string_view kExact[] = {
      "argmax",         "concat_columns", "expand_keys",  "greedy_select", "kv_append",
      "latent_queries", "lsh_hash",       "lsh_sort",     "move_columns",  "parent_lines",
      "picture_values", "select_rows",    "step_advance", "token_sample",  "top_k"};
  return std::find(std::begin(kExact), std::end(kExact), op) != std::end(kExact);
}

std::optional<TensorMap> twin_outputs(const Graph& graph, const TensorMap& inputs) {
  const FusedGraph fused = fuse(graph, twin_caps(), Precision::kReproducible);
  TwinRun run(fused.graph, inputs);
  const std::vector<Node>& nodes = fused.graph.nodes();
  const bool all =
      std::all_of(nodes.begin(), nodes.end(), [&](const Node& n) { return run_twin(run, n); });
  if (!all) return std::nullopt;
  return run.outputs();
}

}  // namespace vkformer::conformance
