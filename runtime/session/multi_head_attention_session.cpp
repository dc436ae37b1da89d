#include "session/multi_head_attention_session.h"

#include <set>

#include "base/check.h"
#include "model/blocks/multi_head_attention.h"
#include "operators/graph_runner.h"

namespace vkformer {
namespace {

using Options = MultiHeadAttentionOptions;

Error attention_error(const std::string& message) {
  return invalid_argument("[multi_head_attention] " + message);
}

Status check_options(const Options& options) {
  const int64_t d = options.d_model;
  const int64_t heads = options.heads;
  if (d < 1 || d > 65536 || heads < 1 || heads > d || d % heads != 0) {
    return attention_error("d_model " + std::to_string(d) + " and heads " + std::to_string(heads) +
                           " do not fit; d_model must be from 1 to 65536 and a multiple of heads");
  }
  if (d / heads > kMaxHeadWidth) {
    return attention_error("a head would be " + std::to_string(d / heads) +
                           " wide, above the limit of " + std::to_string(kMaxHeadWidth));
  }
  return {};
}

// The tensor `name` of that shape as floats; an empty list if it is absent.
Result<std::vector<float>> find_floats(const TensorMap& weights, const std::string& name,
                                       const Shape& shape) {
  const auto found = weights.find(name);
  if (found == weights.end()) return std::vector<float>{};
  const Tensor& tensor = found->second;
  const size_t bytes = static_cast<size_t>(element_count(shape)) * dtype_size(tensor.dtype);
  if (tensor.shape != shape || tensor.bytes.size() != bytes) {
    return attention_error(name + " has shape " + shape_text(tensor.shape) + " and " +
                           std::to_string(tensor.bytes.size()) + " bytes, but must have shape " +
                           shape_text(shape));
  }
  Result<std::vector<float>> values = tensor.to_floats();
  if (!values) return values.error().with_context("[multi_head_attention] " + name);
  return values;
}

// Stacks the layers `names` of (width, width) each into `into` and `into`_bias.
Status stack_layers(const TensorMap& given, const std::vector<std::string>& names, int64_t rows,
                    int64_t columns, std::pair<const char*, TensorMap*> into) {
  std::vector<float> weight;
  std::vector<float> bias;
  for (const std::string& name : names) {
    VKF_ASSIGN(const std::vector<float> w, find_floats(given, name + ".weight", {rows, columns}));
    if (w.empty()) return attention_error("weights lack " + name + ".weight; give it");
    weight.insert(weight.end(), w.begin(), w.end());
    VKF_ASSIGN(std::vector<float> b, find_floats(given, name + ".bias", {rows}));
    b.resize(static_cast<size_t>(rows), 0.0f);
    bias.insert(bias.end(), b.begin(), b.end());
  }
  const int64_t all = rows * static_cast<int64_t>(names.size());
  TensorMap& tensors = *into.second;
  tensors.emplace(into.first, Tensor::from_floats({all, columns}, weight));
  tensors.emplace(std::string(into.first) + "_bias", Tensor::from_floats({all}, bias));
  return {};
}

Status check_weight_names(const Options& options, const TensorMap& weights) {
  std::set<std::string> known = {"output.weight", "output.bias"};
  const bool merged = options.projection == Options::Projection::kMerged;
  for (const char* name : {"query", "key", "value", "qkv"}) {
    if (merged != (std::string(name) == "qkv")) continue;
    known.insert(std::string(name) + ".weight");
    known.insert(std::string(name) + ".bias");
  }
  for (const auto& [name, tensor] : weights) {
    if (known.count(name) != 0) continue;
    return attention_error("there is no weight " + name + " in this kind of projection; remove it");
  }
  if (weights.count("output.bias") != 0 && weights.count("output.weight") == 0) {
    return attention_error("output.bias was given without output.weight; give both or neither");
  }
  return {};
}

Status check_x(const Options& options, const Tensor& x) {
  bool fits = x.dtype == DType::kF32 && x.shape.size() == 3 && x.shape[2] == options.d_model;
  for (size_t axis = 0; fits && axis < 2; ++axis) fits = x.shape[axis] > 0 && x.shape[axis] < 65536;
  if (fits && x.bytes.size() == 4 * static_cast<size_t>(element_count(x.shape))) return {};
  return attention_error("x is " + std::string(dtype_name(x.dtype)) + " " + shape_text(x.shape) +
                         " with " + std::to_string(x.bytes.size()) +
                         " bytes, but must be F32 (B, T, " + std::to_string(options.d_model) +
                         ") with B and T from 1 to 65535");
}

Result<ScoreTerms> make_terms(const Options& options, const Shape& x, const Tensor* key_mask) {
  ScoreTermsInput input;
  if (key_mask != nullptr) {
    if (key_mask->shape != Shape{x[0], x[1]} ||
        key_mask->bytes.size() != dtype_size(key_mask->dtype) * static_cast<size_t>(x[0] * x[1])) {
      return attention_error("key_mask has shape " + shape_text(key_mask->shape) +
                             ", but must be (B, T) = " + shape_text({x[0], x[1]}));
    }
    input.key_mask = *key_mask;
  }
  const int64_t dims[] = {x[0], options.heads, x[1], x[1]};
  VKF_ASSIGN(ScoreTerms terms, pack_score_terms(input, dims));
  if (options.causal) terms.params.flags |= VKF_TERM_CAUSAL;
  return terms;
}

// A graph under construction with the tensors bound to it.
struct BoundGraph {
  Graph graph;
  TensorMap inputs;

  TensorId bind(const std::string& name, const Tensor& tensor) {
    inputs.emplace(name, tensor);
    return graph.add_external(name, tensor.dtype, tensor.shape);
  }
  // The layer `name` of `weights`, or an absent one.
  AttentionProjection bind_layer(const TensorMap& weights, const std::string& name) {
    if (weights.count(name) == 0) return {};
    AttentionProjection layer;
    layer.weight = bind(name, weights.at(name));
    layer.bias = bind(name + "_bias", weights.at(name + "_bias"));
    return layer;
  }
  void name_output(TensorId id, const std::string& name) {
    graph.tensor(id).kind = TensorKind::kExternal;
    graph.tensor(id).name = name;
  }
};

}  // namespace

Result<MultiHeadAttentionSession> MultiHeadAttentionSession::create(
    std::shared_ptr<VulkanDevice> device, const Options& options, const TensorMap& weights) {
  VKF_CHECK(check_options(options));
  VKF_CHECK(check_weight_names(options, weights));
  const int64_t d = options.d_model;
  const bool shared = options.projection == Options::Projection::kSharedByHeads;
  const int64_t width = shared ? d / options.heads : d;
  MultiHeadAttentionSession session(std::move(device), options);
  if (options.projection == Options::Projection::kMerged) {
    VKF_CHECK(stack_layers(weights, {"qkv"}, 3 * d, d, {"qkv", &session.weights_}));
  } else {
    VKF_CHECK(
        stack_layers(weights, {"query", "key", "value"}, width, width, {"qkv", &session.weights_}));
  }
  if (weights.count("output.weight") != 0) {
    VKF_CHECK(stack_layers(weights, {"output"}, d, d, {"output", &session.weights_}));
  }
  return session;
}

Result<AttentionResult> MultiHeadAttentionSession::run(const Tensor& x,
                                                       const Tensor* key_mask) const {
  VKF_CHECK(check_x(options_, x));
  VKF_ASSIGN(const ScoreTerms terms, make_terms(options_, x.shape, key_mask));
  const int64_t heads = options_.heads;
  BoundGraph bound;
  MultiHeadAttentionBlock block;
  block.batch = static_cast<uint32_t>(x.shape[0]);
  block.tokens = static_cast<uint32_t>(x.shape[1]);
  block.heads = static_cast<uint32_t>(heads);
  block.head_width = static_cast<uint32_t>(options_.d_model / heads);
  block.qkv = bound.bind_layer(weights_, "qkv");
  block.output = bound.bind_layer(weights_, "output");
  block.terms = bound.bind("terms", terms.words);
  block.terms_params = terms.params;
  Tensor states = x;
  if (options_.projection == Options::Projection::kSharedByHeads) {
    block.projection = MultiHeadAttentionBlock::Projection::kSharedByHeads;
    states.shape = {x.shape[0] * x.shape[1] * heads, options_.d_model / heads};
  }
  const bool keep = options_.keep_weights;
  if (keep) block.weights = MultiHeadAttentionBlock::Weights::kKeep;
  const TensorId states_id = bound.bind("x", states);
  VKF_ASSIGN(const MultiHeadAttentionTensors added,
             add_multi_head_attention(bound.graph, states_id, block));
  bound.name_output(added.output, "y");
  if (keep) bound.name_output(added.weights, "attention");
  VKF_ASSIGN(GraphRunReport report, run_graph(device_, bound.graph, bound.inputs, {}));
  AttentionResult result;
  result.output = std::move(report.outputs.at("y"));
  if (keep) result.weights = std::move(report.outputs.at("attention"));
  return result;
}

}  // namespace vkformer
