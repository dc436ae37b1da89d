#include "ops/softmax.h"

#include <algorithm>
#include <array>

#include "base/message.h"
#include "ops/row_op.h"
#include "ops/score_kinds.h"
#include "params/softmax.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostHeld = 32;  // keys of an invocation in registers

}  // namespace

Result<TensorDesc> check_softmax(const TensorDesc& x, const TensorDesc& terms,
                                 const SoftmaxAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_softmax, "x", x, 4));
  if (x.shape.size() != 4) {
    return op_error(OpId::k_softmax, message({"x has shape ", shape_text(x.shape),
                                              ", but must have four dimensions (B, H, T, S)."}));
  }
  if (!(attrs.temperature >= 1e-30f && attrs.temperature <= 1e30f)) {
    return op_error(OpId::k_softmax, message({"The temperature is ", attrs.temperature,
                                              ", but must be from 1e-30 to 1e30."}));
  }
  if (terms.dtype != DType::kU32 || terms.shape.size() != 1) {
    return op_error(OpId::k_softmax,
                    message({"terms is ", dtype_name(terms.dtype), " ", shape_text(terms.shape),
                             ", but must be U32 with one dimension."}));
  }
  std::array<uint64_t, 4> sizes{};
  std::copy(x.shape.begin(), x.shape.end(), sizes.begin());
  const std::string error =
      score_terms_error(attrs.terms, static_cast<uint64_t>(terms.shape[0]), sizes);
  if (!error.empty()) return op_error(OpId::k_softmax, error + ".");
  return TensorDesc{"softmax", DType::kF32, x.shape};
}

Result<TensorId> add_softmax(Graph& graph, TensorId x, TensorId terms, const SoftmaxAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_softmax(graph.tensor(x), graph.tensor(terms), attrs));
  Node node = make_node<OpId::k_softmax>(attrs, "temperature=" + number_text(attrs.temperature));
  node.inputs = {x, terms};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_softmax(LowerContext& context, const Node& node) {
  const SoftmaxAttrs& attrs = attrs_of<SoftmaxAttrs>(node);
  const TensorDesc& x = context.desc(node.inputs[0]);
  SoftmaxParams params{};
  params.rows = static_cast<uint32_t>(row_count(x.shape));
  params.heads = static_cast<uint32_t>(x.shape[1]);
  params.queries = static_cast<uint32_t>(x.shape[2]);
  params.keys = static_cast<uint32_t>(x.shape[3]);
  params.inverse_temperature = 1.0f / attrs.temperature;
  params.terms = attrs.terms;
  Dispatch d =
      make_row_dispatch(context, node,
                        context.caps.subgroup() ? KernelId::softmax_row__f32_none_f32_subgroup
                                                : KernelId::softmax_row__f32_none_f32,
                        params.rows, params.keys);
  d.bindings.back().access = Access::kReadWrite;
  d.set_push(params);
  // Arrays of a few registers; software devices without 64-bit integers keep them in memory.
  const uint32_t local = row_local_size(context.caps, params.keys);
  const uint32_t each = (params.keys + local - 1) / local;
  const bool software = context.caps.device_class == DeviceClass::kSoftware;
  const bool held = each <= kMostHeld && (!software || context.caps.int64());
  d.set_constants(SoftmaxConstants{
      .local_size = local, .kinds = score_kinds(attrs.terms), .held = held ? each : 0u});
  const double elements = static_cast<double>(params.rows) * params.keys;
  d.flops = 40.0 * elements;
  d.bytes = 8.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
