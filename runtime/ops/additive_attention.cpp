#include "ops/additive_attention.h"

#include <cmath>

#include "base/message.h"
#include "ops/row_op.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostWidth = 2048;  // of a query that is kept in shared memory

Status check_numbers(const AdditiveAttentionAttrs& a) {
  const bool staged = a.score != AdditiveAttentionAttrs::Score::kLocation;
  if (a.width < 1 || a.value_width < 1 || (staged && a.width > kMostWidth)) {
    return op_error(OpId::k_additive_attention,
                    message({"queries have ", a.width, " columns and values ", a.value_width,
                             ", but there must be from 1 to ", kMostWidth, " and at least 1"}));
  }
  if (!(a.temperature > 0) || !std::isfinite(a.temperature)) {
    return op_error(OpId::k_additive_attention, message({"temperature is ", a.temperature,
                                                         ", but must be finite and above 0"}));
  }
  if (a.window != AdditiveAttentionAttrs::Window::kNone && a.reach < 1) {
    return op_error(OpId::k_additive_attention,
                    message({"the window reaches ", a.reach,
                             " tokens to each side, but must reach at least 1"}));
  }
  return {};
}

Status check_aux(const TensorDesc& kv, const TensorDesc* aux, const AdditiveAttentionAttrs& a) {
  int64_t words = a.masked ? kv.shape[0] * ((kv.shape[1] + 31) / 32) : 0;
  if (a.score == AdditiveAttentionAttrs::Score::kAdditive) {
    words = std::max(words, int64_t{a.v_offset} + a.width);
  }
  if (words == 0 && aux == nullptr) return {};
  if (aux != nullptr && aux->dtype == DType::kU32 && element_count(aux->shape) >= words) return {};
  return op_error(
      OpId::k_additive_attention,
      message({"mask and v need aux as U32 with at least ", words, " words, but it is ",
               (aux == nullptr ? std::string("absent")
                               : dtype_name(aux->dtype) + (" " + shape_text(aux->shape)))}));
}

// Invocations of a workgroup: the fewest whose loops a software device does not cut short.
Result<uint32_t> local_size(const DeviceCaps& caps, const AdditiveAttentionAttrs& a,
                            uint64_t keys) {
  uint32_t local = row_local_size(caps, static_cast<uint32_t>(keys));
  const uint32_t limit =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], 128u});
  const auto rounds = [&](uint64_t lanes) {
    const uint64_t ranks = a.window != AdditiveAttentionAttrs::Window::kNone ||
                                   a.score == AdditiveAttentionAttrs::Score::kLocation
                               ? 4 * (keys + 31) / 32
                               : 0;
    const uint64_t own = (keys + lanes - 1) / lanes;
    return 2 * (own * (a.width + ranks + 6) + (a.value_width + lanes - 1) / lanes * (keys + 1));
  };
  while (local < limit && rounds(local) > kMostSoftwareIterations) local *= 2;
  if (leaves_loops(caps, rounds(local))) {
    return unsupported(message({"[additive_attention] There is no kernel for ", keys, " keys with ",
                                a.width, " columns and values of ", a.value_width,
                                " on a software device; use a shorter source"}));
  }
  return local;
}

}  // namespace

Result<TensorDesc> check_additive_attention(const TensorDesc& q, const TensorDesc& kv,
                                            const TensorDesc* aux,
                                            const AdditiveAttentionAttrs& a) {
  VKF_CHECK(check_numbers(a));
  VKF_CHECK(check_floats(OpId::k_additive_attention, "q", q, 2));
  VKF_CHECK(check_floats(OpId::k_additive_attention, "kv", kv, 3));
  const int64_t columns =
      int64_t{a.width} + (a.window == AdditiveAttentionAttrs::Window::kPredictive ? 1 : 0);
  if (q.shape.back() != columns) {
    return op_error(OpId::k_additive_attention, message({"q has shape ", shape_text(q.shape),
                                                         ", but must have ", columns, " columns"}));
  }
  const int64_t key = a.score == AdditiveAttentionAttrs::Score::kLocation ? 0 : a.width;
  if (kv.shape.size() != 3 || kv.shape[0] < 1 || kv.shape[1] < 1 ||
      kv.shape[2] < std::max<int64_t>(key, a.value_width)) {
    return op_error(OpId::k_additive_attention,
                    message({"kv has shape ", shape_text(kv.shape),
                             ", but must be (B, S, line) with room for a key of ", key,
                             " and a value of ", a.value_width}));
  }
  VKF_CHECK(check_aux(kv, aux, a));
  Shape shape = q.shape;
  shape.back() = a.value_width + kv.shape[1];
  return TensorDesc{"additive_attention", DType::kF32, std::move(shape)};
}

Result<TensorId> add_additive_attention(Graph& graph, const AdditiveAttentionInputs& inputs,
                                        const AdditiveAttentionAttrs& attrs) {
  const TensorDesc& q = graph.tensor(inputs.q);
  const TensorDesc& kv = graph.tensor(inputs.kv);
  const TensorDesc* aux = inputs.aux == kNoTensor ? nullptr : &graph.tensor(inputs.aux);
  VKF_ASSIGN(TensorDesc out, check_additive_attention(q, kv, aux, attrs));
  const int64_t rows = static_cast<int64_t>(row_count(q.shape));
  if (attrs.queries < 1 || rows != kv.shape[0] * attrs.queries) {
    return op_error(OpId::k_additive_attention, message({"q has ", rows, " rows, but ", kv.shape[0],
                                                         " items of ", attrs.queries, " queries"}));
  }
  if (graph.is_step() != (inputs.state != kNoTensor)) {
    return op_error(OpId::k_additive_attention,
                    graph.is_step() ? "a decoding step needs its state; none was given"
                                    : "a state was given, but the graph is not a decoding step");
  }
  Node node = make_node<OpId::k_additive_attention>(
      attrs, "A=" + std::to_string(attrs.width) + " S=" + std::to_string(kv.shape[1]));
  const TensorId y = graph.add_tensor(std::move(out));
  node.inputs = {inputs.q, inputs.kv, inputs.aux, inputs.state};
  node.outputs = {y};
  graph.add_node(std::move(node));
  return y;
}

Status lower_additive_attention(LowerContext& context, const Node& node) {
  const AdditiveAttentionAttrs& a = attrs_of<AdditiveAttentionAttrs>(node);
  const TensorDesc& q = context.desc(node.inputs[0]);
  const TensorDesc& kv = context.desc(node.inputs[1]);
  const bool step = node.inputs[3] != kNoTensor;
  const bool location = a.score == AdditiveAttentionAttrs::Score::kLocation;
  const AdditiveAttentionParams params{
      .rows = static_cast<uint32_t>(row_count(q.shape)),
      .queries = a.queries,
      .keys = static_cast<uint32_t>(kv.shape[1]),
      .first = a.first,
      .q_stride = static_cast<uint32_t>(q.shape.back()),
      .kv_stride = static_cast<uint32_t>(kv.shape[2]),
      .value_width = a.value_width,
      .v_offset = a.v_offset,
      .has_mask = a.masked ? 1u : 0u,
      .window = static_cast<uint32_t>(a.window),
      .reach = a.reach,
      .raw_scores = a.result == AdditiveAttentionAttrs::Result::kScores ? 1u : 0u,
      .inverse_temperature = 1.0f / a.temperature,
      .unused = {}};
  VKF_ASSIGN(const uint32_t local, local_size(context.caps, a, params.keys));
  Dispatch d = make_dispatch(node, step ? KernelId::additive_attention_step__f32_f32_f32
                                        : KernelId::additive_attention_row__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.inputs[2] == kNoTensor ? node.inputs[1] : node.inputs[2], Access::kRead},
                {node.outputs[0], Access::kReadWrite}};
  if (step) d.bindings.push_back({node.inputs[3], Access::kRead});
  d.set_push(params);
  d.set_constants(AdditiveAttentionConstants{.local_size = local,
                                             .width = a.width,
                                             .score = static_cast<uint32_t>(a.score),
                                             .staged = location ? 1u : a.width});
  set_row_groups(context, d, params.rows, 1);
  const double pairs = static_cast<double>(params.rows) * params.keys;
  const double cost = a.score == AdditiveAttentionAttrs::Score::kAdditive ? 30.0 : 2.0;
  d.flops = pairs * (cost * (location ? 1 : a.width) + 2.0 * a.value_width + 20.0);
  d.bytes = 4.0 * pairs * ((location ? 0.0 : a.width) + a.value_width + 6.0);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
