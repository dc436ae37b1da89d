#include "session/attention_request.h"

#include <algorithm>
#include <string_view>

#include "base/message.h"
#include "ops/additive_attention.h"
#include "ops/attention_step.h"
#include "ops/attention_weights.h"
#include "ops/row_entropy.h"
#include "ops/row_op.h"
#include "ops/softmax.h"

namespace vkformer {
namespace {

constexpr double kLeastTemperature = 1e-9;
constexpr double kMostTemperature = 1e9;
constexpr std::string_view kMaps = "attentions.";

// The node's attributes with another temperature, or null where it has none.
std::shared_ptr<const void> with_temperature(const Node& node, float temperature) {
  if (node.op == static_cast<uint16_t>(OpId::k_attention_weights)) {
    auto attrs = attrs_of<AttentionWeightsAttrs>(node);
    attrs.attention.temperature *= temperature;
    return std::make_shared<const AttentionWeightsAttrs>(std::move(attrs));
  }
  if (node.op == static_cast<uint16_t>(OpId::k_additive_attention)) {
    auto attrs = attrs_of<AdditiveAttentionAttrs>(node);
    attrs.temperature *= temperature;
    return std::make_shared<const AdditiveAttentionAttrs>(attrs);
  }
  if (node.op == static_cast<uint16_t>(OpId::k_softmax)) {
    auto attrs = attrs_of<SoftmaxAttrs>(node);
    attrs.temperature *= temperature;
    return std::make_shared<const SoftmaxAttrs>(attrs);
  }
  if (node.op != static_cast<uint16_t>(OpId::k_attention)) return nullptr;
  auto attrs = attrs_of<AttentionNodeAttrs>(node);
  if (!std::holds_alternative<AttentionAttrs>(attrs)) return nullptr;
  std::get<AttentionAttrs>(attrs).temperature *= temperature;
  return std::make_shared<const AttentionNodeAttrs>(std::move(attrs));
}

Status set_temperature(Graph& graph, float temperature) {
  int changed = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    Node& node = graph.node(i);
    if (auto attrs = with_temperature(node, temperature)) {
      node.attrs = std::move(attrs);
      ++changed;
      continue;
    }
    if (std::string_view(node.op_name).find("attention") == std::string_view::npos) continue;
    return unsupported(
        message({"[temperature] is ", temperature, ", but '", node.label, "' is a ", node.op_name,
                 ", which has no softmax with a temperature; leave it at 1"}));
  }
  if (changed > 0) return {};
  return unsupported(message({"[temperature] is ", temperature,
                              ", but this model has no attention by softmax; leave it at 1"}));
}

const Node* producer(const Graph& graph, TensorId tensor) {
  for (const Node& node : graph.nodes()) {
    if (std::find(node.outputs.begin(), node.outputs.end(), tensor) != node.outputs.end()) {
      return &node;
    }
  }
  return nullptr;
}

// Nystromformer's maps are products, whose elements may be negative. Maps may have been moved since
// they were made.
Status check_probabilities(const Graph& graph, TensorId map) {
  const Node* node = producer(graph, map);
  const auto is = [&](OpId op) { return node->op == static_cast<uint16_t>(op); };
  while (node != nullptr && (is(OpId::k_gather_rows) || is(OpId::k_move_columns))) {
    node = producer(graph, node->inputs[0]);
  }
  if (node == nullptr || !is(OpId::k_matmul)) return {};
  return unsupported(message({"[entropy] was asked for, but the rows of [", graph.tensor(map).name,
                              "] are no probabilities in this kind of attention"}));
}

// An entropy for every map; maps that were only asked for because of it are outputs no longer.
Status add_entropies(Graph& graph, AttentionRequest::Maps maps) {
  std::vector<TensorId> found;
  for (TensorId id = 0; id < graph.tensors().size(); ++id) {
    const TensorDesc& t = graph.tensor(id);
    // Index lists of the host may be named after a map.
    const bool output = t.kind == TensorKind::kExternal && t.dtype == DType::kF32;
    if (output && t.name.find(kMaps) != std::string::npos) found.push_back(id);
  }
  for (TensorId id : found) {
    std::string name = graph.tensor(id).name;
    name.replace(name.find(kMaps), kMaps.size(), "attention_entropy.");
    VKF_CHECK(check_probabilities(graph, id));
    VKF_ASSIGN(TensorId entropy, add_row_entropy(graph, id));
    graph.tensor(entropy).kind = TensorKind::kExternal;
    graph.tensor(entropy).name = std::move(name);
    if (maps == AttentionRequest::Maps::kDropped) graph.tensor(id).kind = TensorKind::kTemporary;
  }
  if (!found.empty()) return {};
  return unsupported("[entropy] was asked for, but this model gives no attention maps");
}

}  // namespace

Result<AttentionRequest> attention_request(const RunOptions& options) {
  const bool in_range =
      options.temperature >= kLeastTemperature && options.temperature <= kMostTemperature;
  if (!in_range) {
    return invalid_argument(
        message({"[temperature] is ", options.temperature, ", but must lie between 1e-9 and 1e9"}));
  }
  if (options.entropy && options.attention_values == RunOptions::AttentionValues::kScores) {
    return invalid_argument(
        "[entropy] is that of probabilities, but attention_values asks for scores; run once for "
        "each");
  }
  AttentionRequest request{.entropy = options.entropy,
                           .temperature = static_cast<float>(options.temperature)};
  if (options.entropy && !options.attentions) {
    request.maps = AttentionRequest::Maps::kDropped;
  }
  return request;
}

Status apply_attention_request(Graph& graph, const AttentionRequest& request) {
  if (request.temperature != 1.0f) VKF_CHECK(set_temperature(graph, request.temperature));
  if (!request.entropy) return {};
  return add_entropies(graph, request.maps);
}

}  // namespace vkformer
