#include "ops/fusion.h"

#include <algorithm>
#include <optional>

#include "base/message.h"
#include "ops/combine.h"
#include "ops/conv.h"
#include "ops/embedding.h"
#include "ops/layer_norm.h"
#include "ops/matmul_lowering.h"
#include "ops/rms_norm.h"

namespace vkformer {
namespace {

using Third = MatmulNodeAttrs::Third;

bool is(const Node& node, OpId op) {
  return node.op == static_cast<uint16_t>(op);
}

// A pair of nodes that a pattern is tried on: the second reads the first one's output, once.
struct Pair {
  const Graph& graph;
  const DeviceCaps& caps;
  Precision precision;
  const Node& first;
  const Node& second;

  const Shape& shape_between() const { return graph.tensor(first.outputs[0]).shape; }
  const Shape& shape_after() const { return graph.tensor(second.outputs[0]).shape; }
  // Views may give the result another shape than its producer did; its rows stay the same.
  bool keeps_rows() const {
    return shape_after().back() == shape_between().back() &&
           element_count(shape_after()) == element_count(shape_between());
  }
};

struct Pattern {
  const char* name;
  // Whether the operators, inputs and attributes are the pattern's.
  bool (*matches)(const Pair& pair);
  // Whether shapes and the device allow one kernel for both, and it gains something.
  bool (*pays)(const Pair& pair);
  // The node that takes the second one's place.
  Node (*fuse)(const Pair& pair);
  // Whether several nodes, wherever they are, may each take the first one over. Else it is the next
  // one alone, so that no value lives longer than before.
  bool several = false;
};

bool always(const Pair&) {
  return true;
}

// ---- embedding + layer_norm

bool is_plain_layer_norm(const Node& node) {
  return is(node, OpId::k_layer_norm) && node.inputs[1] == kNoTensor;
}

bool is_normed_embedding(const Pair& pair) {
  return is(pair.first, OpId::k_embedding) && pair.first.inputs[kEmbeddingNorm] == kNoTensor &&
         is_plain_layer_norm(pair.second) && pair.second.inputs[0] == pair.first.outputs[0];
}

bool embedding_can_norm(const Pair& pair) {
  return embedding_takes_norm(pair.graph, pair.first, pair.caps);
}

Node normed_embedding(const Pair& pair) {
  auto attrs = attrs_of<EmbeddingAttrs>(pair.first);
  attrs.norm_epsilon = attrs_of<LayerNormAttrs>(pair.second).epsilon;
  Node node = pair.first;
  node.attrs_text += " layer_norm epsilon=" + number_text(attrs.norm_epsilon);
  node.attrs = std::make_shared<const EmbeddingAttrs>(attrs);
  node.inputs[kEmbeddingNorm] = pair.second.inputs[2];
  node.outputs = pair.second.outputs;
  return node;
}

// ---- what follows a product

// The attributes of a product that nothing was put into yet; null of others.
const MatmulNodeAttrs* plain_product(const Node& node) {
  if (!is(node, OpId::k_matmul)) return nullptr;
  const auto& attrs = attrs_of<MatmulNodeAttrs>(node);
  const bool plain = attrs.matmul.activation == ActivationKind::kNone &&
                     attrs.gate == GatePairs::kNo && attrs.third == Third::kC;
  return plain ? &attrs : nullptr;
}

bool is_linear(const MatmulNodeAttrs& attrs) {
  return attrs.weight.tensor != kNoTensor;
}

// A product of other attributes that writes what the second node did.
Node product_with(const Pair& pair, const MatmulNodeAttrs& attrs) {
  Node node = pair.first;
  node.attrs_text = matmul_text(attrs);
  node.attrs = std::make_shared<const MatmulNodeAttrs>(attrs);
  node.outputs = pair.second.outputs;
  return node;
}

bool is_gated_linear(const Pair& pair) {
  const MatmulNodeAttrs* product = plain_product(pair.first);
  return product != nullptr && is_linear(*product) && is(pair.second, OpId::k_gated_activation) &&
         attrs_of<GatedActivationAttrs>(pair.second).pairs == GatePairs::kPairs &&
         attrs_of<GatedActivationAttrs>(pair.second).up == ActivationKind::kNone;
}

Node gated_linear(const Pair& pair) {
  auto attrs = attrs_of<MatmulNodeAttrs>(pair.first);
  attrs.gate = GatePairs::kPairs;
  attrs.matmul.activation = attrs_of<GatedActivationAttrs>(pair.second).kind;
  return product_with(pair, attrs);
}

bool is_activated_product(const Pair& pair) {
  return plain_product(pair.first) != nullptr && is(pair.second, OpId::k_activation) &&
         attrs_of<ActivationAttrs>(pair.second).kind != ActivationKind::kNone;
}

// Of two tensors the batches are counted by the result's shape.
bool product_keeps_shape(const Pair& pair) {
  return is_linear(attrs_of<MatmulNodeAttrs>(pair.first))
             ? pair.keeps_rows()
             : pair.shape_after() == pair.shape_between();
}

Node activated_product(const Pair& pair) {
  auto attrs = attrs_of<MatmulNodeAttrs>(pair.first);
  attrs.matmul.activation = attrs_of<ActivationAttrs>(pair.second).kind;
  return product_with(pair, attrs);
}

// A plain one or one with an activation.
bool is_linear_with_sum(const Pair& pair) {
  if (!is(pair.first, OpId::k_matmul) || !is(pair.second, OpId::k_combine)) return false;
  const auto& product = attrs_of<MatmulNodeAttrs>(pair.first);
  const auto& sum = attrs_of<CombineAttrs>(pair.second);
  return is_linear(product) && product.gate == GatePairs::kNo && product.third == Third::kC &&
         sum.alpha == 1.0f && sum.beta == 1.0f && sum.most == 0.0f;
}

Node linear_with_residual(const Pair& pair) {
  auto attrs = attrs_of<MatmulNodeAttrs>(pair.first);
  attrs.third = Third::kResidual;
  Node node = product_with(pair, attrs);
  const std::vector<TensorId>& terms = pair.second.inputs;
  node.inputs[2] = terms[terms[0] == pair.first.outputs[0] ? 1 : 0];
  return node;
}

// ---- conv + activation

bool is_activated_conv(const Pair& pair) {
  if (!is(pair.first, OpId::k_conv) || !is(pair.second, OpId::k_activation)) return false;
  const auto& conv = attrs_of<ConvNodeAttrs>(pair.first);
  return conv.activation == ActivationKind::kNone && conv.conv.leading_tokens == 0;
}

bool keeps_elements(const Pair& pair) {
  return element_count(pair.shape_after()) == element_count(pair.shape_between());
}

Node activated_conv(const Pair& pair) {
  auto attrs = attrs_of<ConvNodeAttrs>(pair.first);
  attrs.activation = attrs_of<ActivationAttrs>(pair.second).kind;
  Node node = pair.first;
  node.attrs_text += message({" ", activation_name(attrs.activation)});
  node.attrs = std::make_shared<const ConvNodeAttrs>(attrs);
  node.outputs = pair.second.outputs;
  return node;
}

// ---- norm + linear

bool is_linear_of_norm(const Pair& pair) {
  if (!is(pair.first, OpId::k_rms_norm) && !is_plain_layer_norm(pair.first)) return false;
  if (!is(pair.second, OpId::k_matmul)) return false;
  const auto& product = attrs_of<MatmulNodeAttrs>(pair.second);
  return is_linear(product) && product.third == Third::kC && product.norm == kNormNone &&
         pair.second.inputs[0] == pair.first.outputs[0];
}

bool linear_can_norm(const Pair& pair) {
  return attrs_of<MatmulNodeAttrs>(pair.second).weight.k == pair.shape_between().back() &&
         products_take_norm(pair.graph, pair.second, pair.caps, pair.precision);
}

Node linear_of_norm(const Pair& pair) {
  auto attrs = attrs_of<MatmulNodeAttrs>(pair.second);
  const bool rms = is(pair.first, OpId::k_rms_norm);
  attrs.third = Third::kGains;
  attrs.norm = rms ? kNormRms : kNormLayer;
  attrs.norm_epsilon = rms ? attrs_of<RmsNormAttrs>(pair.first).epsilon
                           : attrs_of<LayerNormAttrs>(pair.first).epsilon;
  Node node = pair.second;
  node.attrs_text = matmul_text(attrs);
  node.attrs = std::make_shared<const MatmulNodeAttrs>(attrs);
  node.inputs[0] = pair.first.inputs[0];
  node.inputs[2] = pair.first.inputs[rms ? 1 : 2];
  return node;
}

// An embedding takes its norm before a product can. A gate and an activation come before a
// residual, which a product adds last, and a residual before a norm, which needs the same binding.
constexpr Pattern kPatterns[] = {
    {"embedding + layer_norm", is_normed_embedding, embedding_can_norm, normed_embedding},
    {"linear + gated_activation", is_gated_linear, always, gated_linear},
    {"matmul + activation", is_activated_product, product_keeps_shape, activated_product},
    {"linear + combine", is_linear_with_sum, product_keeps_shape, linear_with_residual},
    {"conv + activation", is_activated_conv, keeps_elements, activated_conv},
    {"norm + linear", is_linear_of_norm, linear_can_norm, linear_of_norm, true},
};

// The nodes of a graph while they are fused, and who uses which tensor.
class Fuser {
 public:
  Fuser(const Graph& graph, const DeviceCaps& caps, Precision precision)
      : graph_(graph),
        caps_(caps),
        precision_(precision),
        nodes_(graph.nodes()),
        gone_(nodes_.size(), false),
        readers_(graph.tensors().size()),
        writers_(graph.tensors().size()) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const TensorId id : nodes_[i].inputs) {
        if (id != kNoTensor) readers_[id].push_back(i);
      }
      for (const TensorId id : nodes_[i].outputs) {
        if (id != kNoTensor) writers_[id].push_back(i);
      }
    }
  }

  void apply(const Pattern& pattern) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!gone_[i]) apply(pattern, i);
    }
  }

  FusedGraph result() && {
    std::vector<Node> kept;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!gone_[i]) kept.push_back(std::move(nodes_[i]));
    }
    FusedGraph fused{graph_, std::move(fusions_)};
    fused.graph.set_nodes(std::move(kept));
    return fused;
  }

 private:
  void apply(const Pattern& pattern, size_t index) {
    const std::vector<size_t> seconds = readers_of(index);
    if (seconds.empty()) return;
    if (!pattern.several && (seconds.size() > 1 || seconds[0] != next(index))) return;
    const auto applies = [&](size_t second) {
      const Pair pair = pair_of(index, second);
      return pattern.matches(pair) && pattern.pays(pair);
    };
    if (!std::all_of(seconds.begin(), seconds.end(), applies)) return;
    if (inputs_change(index, seconds.back())) return;
    for (const size_t second : seconds) nodes_[second] = pattern.fuse(pair_of(index, second));
    fusions_.push_back({pattern.name, nodes_[index].label, static_cast<uint32_t>(seconds.size())});
    remove(index, seconds);
  }

  size_t next(size_t index) const {
    return static_cast<size_t>(
        std::find(gone_.begin() + static_cast<std::ptrdiff_t>(index) + 1, gone_.end(), false) -
        gone_.begin());
  }

  Pair pair_of(size_t first, size_t second) const {
    return {graph_, caps_, precision_, nodes_[first], nodes_[second]};
  }

  // The nodes that read the only output of a node, in order. There are none where something else
  // may, where another node writes it as well, or one reads it twice.
  std::vector<size_t> readers_of(size_t index) const {
    const Node& node = nodes_[index];
    if (node.outputs.size() != 1) return {};
    const TensorId between = node.outputs[0];
    if (between == kNoTensor) return {};
    const std::vector<size_t>& readers = readers_[between];
    const bool alone = graph_.tensor(between).kind == TensorKind::kTemporary &&
                       writers_[between].size() == 1 && !readers.empty() &&
                       readers.front() > index &&
                       std::adjacent_find(readers.begin(), readers.end()) == readers.end();
    return alone ? readers : std::vector<size_t>{};
  }

  // Whether a node after the first, up to the last, writes what the first one reads.
  bool inputs_change(size_t first, size_t last) const {
    const auto changes = [&](TensorId id) {
      return id != kNoTensor && std::any_of(writers_[id].begin(), writers_[id].end(),
                                            [&](size_t w) { return w > first && w <= last; });
    };
    const std::vector<TensorId>& inputs = nodes_[first].inputs;
    return std::any_of(inputs.begin(), inputs.end(), changes);
  }

  // The fused nodes now read what the first one did, in place of its output.
  void remove(size_t index, const std::vector<size_t>& seconds) {
    gone_[index] = true;
    const TensorId between = nodes_[index].outputs[0];
    readers_[between].clear();
    writers_[between].clear();
    for (const TensorId id : nodes_[index].inputs) {
      if (id == kNoTensor) continue;
      std::vector<size_t>& readers = readers_[id];
      readers.erase(std::find(readers.begin(), readers.end(), index));
      for (const size_t second : seconds)
        readers.insert(std::upper_bound(readers.begin(), readers.end(), second), second);
    }
  }

  const Graph& graph_;
  const DeviceCaps& caps_;
  Precision precision_;
  std::vector<Node> nodes_;
  std::vector<bool> gone_;
  std::vector<std::vector<size_t>> readers_;  // by tensor: nodes, ascending, one for each use
  std::vector<std::vector<size_t>> writers_;
  std::vector<Fusion> fusions_;
};

}  // namespace

FusedGraph fuse(const Graph& graph, const DeviceCaps& caps, Precision precision) {
  Fuser fuser(graph, caps, precision);
  for (const Pattern& pattern : kPatterns) fuser.apply(pattern);
  return std::move(fuser).result();
}

}  // namespace vkformer
