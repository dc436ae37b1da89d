#include "ops/sequence_projection.h"

#include <algorithm>

#include "base/message.h"
#include "ops/linear_state.h"
#include "ops/row_kernel.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostProjected = 1 << 16;

// Words of the projected keys, or values, of one head.
uint64_t head_words(const SequenceProjectionAttrs& a, uint32_t width) {
  return uint64_t{a.projected} * (width + 1) + 2;
}

uint64_t all_words(const SequenceProjectionAttrs& a, uint32_t width) {
  return uint64_t{a.batch} * a.heads * head_words(a, width);
}

HeadLayout projected(const SequenceProjectionAttrs& a, uint32_t width, uint64_t offset) {
  const auto words = static_cast<uint32_t>(head_words(a, width));
  return {static_cast<uint32_t>(offset), a.heads * words, words, width + 1};
}

Status check_matrix(const char* role, const TensorDesc& t, const SequenceProjectionAttrs& a) {
  const bool per_head = a.matrices == SequenceProjectionAttrs::Matrices::kPerHead;
  const int64_t wanted = int64_t{per_head ? a.heads : 1} * a.projected * a.reach;
  if (t.dtype == DType::kF32 && element_count(t.shape) == wanted) return {};
  const std::string matrix = std::to_string(a.projected) + ", " + std::to_string(a.reach) + ")";
  return op_error(
      OpId::k_sequence_projection,
      message({role, " is ", dtype_name(t.dtype), " ", shape_text(t.shape), ", but must be F32 (",
               (per_head ? std::to_string(a.heads) + ", " : std::string()), matrix}));
}

// The sum over all keys for k or v, `v` being where its rows lie, into `to` of kv.
void emit_projection(LowerContext& context, const Node& node, StateSum sum, uint32_t first_unit,
                     uint32_t units) {
  sum.state.first_unit = sum.scan.first_unit = first_unit;
  sum.state.units = sum.scan.units = units;
  emit_state_sum(context, node, sum);
}

StateSum sum_of(const Node& node, const SequenceProjectionAttrs& a, TensorId matrix,
                uint32_t width) {
  const bool per_head = a.matrices == SequenceProjectionAttrs::Matrices::kPerHead;
  StateSum sum{.x = node.inputs[0],
               .features = matrix,
               .mask = node.inputs[3],
               .total = node.outputs[0],
               .value_width = width};
  sum.state.f_head_stride = per_head ? a.projected * a.reach : 0;
  sum.state.f_token_stride = 1;
  sum.state.f_feature_stride = a.reach;
  sum.state.heads = sum.scan.heads = a.heads;
  sum.state.keys = a.keys;
  sum.state.chunk = kSumChunk;
  sum.state.chunks = sum.scan.chunks = (a.keys + kSumChunk - 1) / kSumChunk;
  sum.state.features = a.projected;
  sum.scan.state_words = static_cast<uint32_t>(head_words(a, width));
  sum.scan.total_item_stride = a.heads * sum.scan.state_words;
  sum.scan.total_head_stride = sum.scan.state_words;
  sum.scan.copies = 1;
  return sum;
}

}  // namespace

HeadLayout projected_keys(const SequenceProjectionAttrs& a) {
  return projected(a, a.head_width, 0);
}

HeadLayout projected_values(const SequenceProjectionAttrs& a) {
  return projected(a, a.value_width, all_words(a, a.head_width));
}

Result<TensorDesc> check_sequence_projection(const TensorDesc& x, const TensorDesc& e,
                                             const TensorDesc& f, const TensorDesc* mask,
                                             const SequenceProjectionAttrs& a) {
  AttentionAttrs numbers;
  numbers.batch = a.batch;
  numbers.heads = numbers.kv_heads = a.heads;
  numbers.keys = a.keys;
  numbers.head_width = a.head_width;
  numbers.value_width = a.value_width;
  VKF_CHECK(check_attention_numbers(OpId::k_sequence_projection, numbers));
  if (a.projected < 1 || a.projected > kMostProjected) {
    return op_error(OpId::k_sequence_projection,
                    message({"the projected length is ", a.projected, ", but must be from 1 to ",
                             kMostProjected}));
  }
  if (a.reach < a.keys || a.reach >= (1u << 24)) {
    return op_error(OpId::k_sequence_projection,
                    message({"there are ", a.keys, " keys, but E and F project ", a.reach,
                             "; use a shorter sequence (or matrices of fewer than 2^24 columns)"}));
  }
  VKF_CHECK(check_layout(OpId::k_sequence_projection, x, "k", a.k,
                         std::array{a.batch, a.heads, a.keys, a.head_width}));
  VKF_CHECK(check_layout(OpId::k_sequence_projection, x, "v", a.v,
                         std::array{a.batch, a.heads, a.keys, a.value_width}));
  VKF_CHECK(check_matrix("E", e, a));
  VKF_CHECK(check_matrix("F", f, a));
  const Shape wanted = {a.batch, (int64_t{a.keys} + 31) / 32};
  if (mask != nullptr && (mask->dtype != DType::kU32 || mask->shape != wanted)) {
    return op_error(OpId::k_sequence_projection,
                    message({"mask is ", dtype_name(mask->dtype), " ", shape_text(mask->shape),
                             ", but must be U32 ", shape_text(wanted), ", one bit per key"}));
  }
  const uint64_t words = all_words(a, a.head_width) + all_words(a, a.value_width);
  if (words <= 0xffffffffu) {
    return TensorDesc{"projected", DType::kF32, {static_cast<int64_t>(words)}};
  }
  return op_error(OpId::k_sequence_projection,
                  message({"projected keys and values have ", words,
                           " elements, but at most 2^32 - 1 are possible"}));
}

Result<TensorId> add_sequence_projection(Graph& graph, const SequenceProjectionInputs& inputs,
                                         const SequenceProjectionAttrs& attrs) {
  const TensorDesc* mask = inputs.mask == kNoTensor ? nullptr : &graph.tensor(inputs.mask);
  VKF_ASSIGN(TensorDesc out,
             check_sequence_projection(graph.tensor(inputs.x), graph.tensor(inputs.e),
                                       graph.tensor(inputs.f), mask, attrs));
  const TensorId kv = graph.add_tensor(std::move(out));
  Node node = make_node<OpId::k_sequence_projection>(
      attrs, "S=" + std::to_string(attrs.keys) + " P=" + std::to_string(attrs.projected) +
                 " H=" + std::to_string(attrs.heads) + " E=" + std::to_string(attrs.head_width));
  node.inputs = {inputs.x, inputs.e, inputs.f, inputs.mask};
  node.outputs = {kv};
  graph.add_node(std::move(node));
  return kv;
}

Status lower_sequence_projection(LowerContext& context, const Node& node) {
  const SequenceProjectionAttrs& a = attrs_of<SequenceProjectionAttrs>(node);
  StateSum keys = sum_of(node, a, node.inputs[1], a.head_width);
  StateSum values = sum_of(node, a, node.inputs[2], a.value_width);
  keys.state.v = a.k;
  values.state.v = a.v;
  values.scan.total_offset = static_cast<uint32_t>(all_words(a, a.head_width));
  const uint32_t all = a.batch * a.heads;
  const uint32_t width = std::max(a.head_width, a.value_width);
  const uint64_t each = keys.state.chunks * head_words(a, width);
  const auto most =
      static_cast<uint32_t>(std::clamp<uint64_t>(kMostLaunchWords / each, 1, uint64_t{all}));
  if (!keys.direct()) {
    keys.states = values.states = context.add_scratch("states", 4 * most * each);
  }
  for (uint32_t first = 0; first < all; first += most) {
    const uint32_t units = std::min(most, all - first);
    emit_projection(context, node, keys, first, units);
    emit_projection(context, node, values, first, units);
  }
  return {};
}

}  // namespace vkformer
