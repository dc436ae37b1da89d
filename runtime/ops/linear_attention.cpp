#include "ops/linear_attention.h"

#include <cmath>

#include "base/message.h"
#include "ops/linear_attention_lowering.h"
#include "ops/row_op.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

using Map = LinearFeatureAttrs::Map;

constexpr int64_t kMostFeatures = 4096;
// Offsets inside a launch are 32-bit.
constexpr uint64_t kMostUnitWords = 1ull << 30;

std::string features_text(const LinearFeatureAttrs& f, uint32_t heads, uint32_t head_width) {
  std::string text = f.map == Map::kElu ? "elu" : "favor";
  text += " H=" + std::to_string(heads) + " E=" + std::to_string(head_width);
  if (f.kernel_eps > 0) text += " kernel_eps=" + number_text(f.kernel_eps);
  if (f.epsilon > 0) text += " epsilon=" + number_text(f.epsilon);
  return text;
}

Status check_features(const LinearFeatureAttrs& f, const TensorDesc* omega, uint32_t head_width) {
  for (float value : {f.kernel_eps, f.epsilon}) {
    if (value >= 0 && std::isfinite(value)) continue;
    return op_error(OpId::k_linear_attention,
                    message({"kernel_eps or the denominator's eps is ", value,
                             ", but must be a finite number of at least 0"}));
  }
  if (f.map == Map::kElu) {
    if (omega == nullptr && f.kernel_eps == 0) return {};
    return op_error(OpId::k_linear_attention,
                    "omega or kernel_eps is given, but the features are elu(x) + 1, which "
                    "have neither");
  }
  if (omega == nullptr)
    return op_error(OpId::k_linear_attention, "random features need omega (m, E); none was given");
  if (f.epsilon != 0) {
    return op_error(OpId::k_linear_attention,
                    message({"the denominator's eps is ", f.epsilon,
                             ", but must be 0 with random features, whose scale is free"}));
  }
  const bool fits = omega->dtype == DType::kF32 && omega->shape.size() == 2 &&
                    omega->shape[0] >= 1 && omega->shape[0] <= kMostFeatures &&
                    omega->shape[1] == int64_t{head_width};
  if (fits) return {};
  return op_error(
      OpId::k_linear_attention,
      message({"omega is ", dtype_name(omega->dtype), " ", shape_text(omega->shape),
               ", but must be F32 (m, ", head_width, ") with m from 1 to ", kMostFeatures}));
}

Status check_mask(const TensorDesc* mask, const LinearAttentionAttrs& a) {
  if (mask == nullptr) return {};
  const Shape wanted = {a.batch, (int64_t{a.keys} + 31) / 32};
  if (mask->dtype == DType::kU32 && mask->shape == wanted) return {};
  return op_error(OpId::k_linear_attention,
                  message({"mask is ", dtype_name(mask->dtype), " ", shape_text(mask->shape),
                           ", but must be U32 ", shape_text(wanted), ", one bit per key"}));
}

LinearAttentionAttrs complete(LinearAttentionAttrs a) {
  if (a.y_shape.empty()) a.y_shape = {a.batch, a.queries, int64_t{a.heads} * a.value_width};
  if (a.y.row_stride == 0) a.y = merged_rows(a.queries, a.heads * a.value_width, 0, a.value_width);
  if (a.head_count == 0 && a.first_head < a.heads) a.head_count = a.heads - a.first_head;
  return a;
}

Status check_maps(const LinearAttentionAttrs& a) {
  if (a.maps == LinearAttentionAttrs::Maps::kNone) return {};
  if (a.head_count < 1 || uint64_t{a.first_head} + a.head_count > a.heads) {
    return op_error(OpId::k_linear_attention,
                    message({"weights of ", a.head_count, " heads from head ", a.first_head,
                             " on were asked for, but there are ", a.heads}));
  }
  const double words = double{1} * a.batch * a.head_count * a.queries * a.keys;
  if (words < 4294967296.0) return {};
  return op_error(OpId::k_linear_attention,
                  message({"the weights of ", a.queries, " queries and ", a.keys,
                           " keys have more than 2^32 - 1 elements; ask "
                           "for one head, or a shorter sequence"}));
}

Status check_states(const TensorDesc& states, int64_t heads, int64_t width) {
  const bool fits = states.dtype == DType::kF32 && states.shape.size() == 3 &&
                    states.shape[0] >= 1 && states.shape[1] == 2 &&
                    states.shape[2] == heads * width;
  if (fits) return {};
  return op_error(OpId::k_linear_attention,
                  message({"states is ", dtype_name(states.dtype), " ", shape_text(states.shape),
                           ", but must be F32 (rows, 2, ", heads * width, ")"}));
}

int64_t omega_rows(const Graph& graph, TensorId omega) {
  return omega == kNoTensor ? 0 : graph.tensor(omega).shape[0];
}

const TensorDesc* optional_desc(const Graph& graph, TensorId id) {
  return id == kNoTensor ? nullptr : &graph.tensor(id);
}

}  // namespace

int64_t linear_state_width(const LinearFeatureAttrs& f, int64_t rows, int64_t head_width,
                           int64_t value_width) {
  const int64_t features = (f.map == Map::kElu ? head_width : rows) + (f.kernel_eps > 0 ? 1 : 0);
  return features * (value_width + 1) + 2;
}

Result<TensorDesc> check_linear_attention(const TensorDesc& x, const TensorDesc* omega,
                                          const TensorDesc* mask,
                                          const LinearAttentionAttrs& given) {
  AttentionAttrs numbers;
  numbers.batch = given.batch;
  numbers.heads = numbers.kv_heads = given.heads;
  numbers.queries = given.queries;
  numbers.keys = given.keys;
  numbers.head_width = given.head_width;
  numbers.value_width = given.value_width;
  VKF_CHECK(check_attention_numbers(OpId::k_linear_attention, numbers));
  const LinearAttentionAttrs a = complete(given);
  VKF_CHECK(check_layout(OpId::k_linear_attention, x, "q", a.q,
                         std::array{a.batch, a.heads, a.queries, a.head_width}));
  VKF_CHECK(check_layout(OpId::k_linear_attention, x, "k", a.k,
                         std::array{a.batch, a.heads, a.keys, a.head_width}));
  VKF_CHECK(check_layout(OpId::k_linear_attention, x, "v", a.v,
                         std::array{a.batch, a.heads, a.keys, a.value_width}));
  TensorDesc y{"linear_attention", DType::kF32, a.y_shape};
  VKF_CHECK(check_layout(OpId::k_linear_attention, y, "y", a.y,
                         std::array{a.batch, a.heads, a.queries, a.value_width}));
  VKF_CHECK(check_features(a.features, omega, a.head_width));
  VKF_CHECK(check_mask(mask, a));
  VKF_CHECK(check_maps(a));
  const int64_t rows = omega == nullptr ? 0 : omega->shape[0];
  const uint64_t words = linear_unit_words(linear_sizes(a, rows));
  if (words <= kMostUnitWords) return y;
  return op_error(OpId::k_linear_attention,
                  message({a.queries, " queries and ", a.keys, " keys need ", words,
                           " numbers per head for their features, but at most ", kMostUnitWords,
                           " are possible; use a shorter sequence"}));
}

Result<TensorDesc> check_linear_attention_step(const TensorDesc& x, const TensorDesc* omega,
                                               const TensorDesc& states, const LinearStepAttrs& a) {
  AttentionAttrs numbers;
  numbers.heads = numbers.kv_heads = a.heads;
  numbers.head_width = a.head_width;
  numbers.value_width = a.value_width;
  VKF_CHECK(check_attention_numbers(OpId::k_linear_attention, numbers));
  VKF_CHECK(check_features(a.features, omega, a.head_width));
  const int64_t heads = a.heads;
  const int64_t least = std::max({int64_t{a.q_offset} + heads * a.head_width,
                                  int64_t{a.k_offset} + heads * a.head_width,
                                  int64_t{a.v_offset} + heads * a.value_width});
  if (x.dtype != DType::kF32 || x.shape.size() != 2 || x.shape[0] < 1 || x.shape[1] < least) {
    return op_error(OpId::k_linear_attention,
                    message({"x is ", dtype_name(x.dtype), " ", shape_text(x.shape),
                             ", but must be F32 (slots, at least ", least, ")"}));
  }
  const int64_t rows = omega == nullptr ? 0 : omega->shape[0];
  VKF_CHECK(check_states(states, heads,
                         linear_state_width(a.features, rows, a.head_width, a.value_width)));
  if (a.beams < 1 || a.capacity < 1) {
    return op_error(OpId::k_linear_attention,
                    message({"beams is ", a.beams, " and capacity ", a.capacity,
                             ", but both must be at least 1"}));
  }
  return TensorDesc{"linear_attention", DType::kF32, {x.shape[0], heads * a.value_width}};
}

Result<LinearAttentionOutputs> add_linear_attention(Graph& graph,
                                                    const LinearAttentionInputs& inputs,
                                                    const LinearAttentionAttrs& attrs) {
  if (graph.is_step()) {
    return op_error(OpId::k_linear_attention,
                    "add_linear_attention was called on a decoding step's graph; use "
                    "add_linear_attention_step");
  }
  VKF_ASSIGN(TensorDesc out,
             check_linear_attention(graph.tensor(inputs.x), optional_desc(graph, inputs.omega),
                                    optional_desc(graph, inputs.mask), attrs));
  const LinearAttentionAttrs a = complete(attrs);
  if (inputs.states != kNoTensor) {
    const int64_t width = linear_state_width(a.features, omega_rows(graph, inputs.omega),
                                             a.head_width, a.value_width);
    VKF_CHECK(check_states(graph.tensor(inputs.states), a.heads, width));
    if (graph.tensor(inputs.states).shape[0] < int64_t{a.batch} * a.beams) {
      return op_error(OpId::k_linear_attention,
                      message({"states has ", graph.tensor(inputs.states).shape[0], " rows, but ",
                               a.batch, " items of ", a.beams, " rows need more"}));
    }
  }
  LinearAttentionOutputs result;
  result.y = graph.add_tensor(std::move(out));
  Node node = make_node<OpId::k_linear_attention>(
      LinearAttentionNodeAttrs{a},
      features_text(a.features, a.heads, a.head_width) + " T=" + std::to_string(a.queries) +
          " S=" + std::to_string(a.keys) +
          (a.causal == LinearAttentionAttrs::Causal::kYes ? " causal" : "") +
          (inputs.mask != kNoTensor ? " mask" : ""));
  node.inputs = {inputs.x, inputs.omega, inputs.mask};
  node.outputs = {result.y, inputs.states, kNoTensor};
  if (a.maps == LinearAttentionAttrs::Maps::kChosen) {
    result.weights =
        graph.add_temporary("weights", DType::kF32, {a.batch, a.head_count, a.queries, a.keys});
    node.outputs[2] = result.weights;
  }
  graph.add_node(std::move(node));
  return result;
}

Result<TensorId> add_linear_attention_step(Graph& graph, const LinearStepInputs& inputs,
                                           const LinearStepAttrs& attrs) {
  if (!graph.is_step()) {
    return op_error(OpId::k_linear_attention,
                    "add_linear_attention_step was called on a graph that is not a decoding "
                    "step; use add_linear_attention");
  }
  VKF_ASSIGN(TensorDesc out,
             check_linear_attention_step(graph.tensor(inputs.x), optional_desc(graph, inputs.omega),
                                         graph.tensor(inputs.states), attrs));
  const int64_t needed = graph.tensor(inputs.states).shape[0] * int64_t{attrs.capacity};
  const TensorDesc& ancestry = graph.tensor(inputs.ancestry);
  if (ancestry.dtype != DType::kU32 || element_count(ancestry.shape) < needed) {
    return op_error(
        OpId::k_linear_attention,
        message({"the ancestry is ", dtype_name(ancestry.dtype), " ", shape_text(ancestry.shape),
                 ", but must be U32 with at least ", needed, " words"}));
  }
  const TensorId y = graph.add_tensor(std::move(out));
  Node node = make_node<OpId::k_linear_attention>(
      LinearAttentionNodeAttrs{attrs},
      "step " + features_text(attrs.features, attrs.heads, attrs.head_width));
  node.inputs = {inputs.x, inputs.omega, inputs.ancestry, inputs.states, inputs.state};
  node.outputs = {y, inputs.states};
  graph.add_node(std::move(node));
  return y;
}

}  // namespace vkformer
