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

// Rows of a term that has one slice where its flag is set. x (B, H, T, S).
uint64_t term_rows(const Shape& x, uint32_t flags, uint32_t one_batch) {
  uint64_t rows = 1;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if ((flags & (one_batch << axis)) == 0) rows *= static_cast<uint64_t>(x[axis]);
  }
  return rows;
}

Status check_extent(const char* role, uint32_t offset, uint64_t need, uint64_t words) {
  if (offset == VKF_NO_TERM || offset + need <= words) return {};
  return op_error(OpId::k_softmax, message({"The ", role, " starts at word ", offset, " and needs ",
                                            need, " words, but terms has ", words, "."}));
}

// Do the terms lie inside their tensor? x (B, H, T, S).
Status check_terms(const Shape& x, const ScoreTermsParams& t, uint64_t words) {
  const uint64_t keys = static_cast<uint64_t>(x[3]);
  const uint64_t row_words = (keys + 31) / 32;
  const uint64_t masks = term_rows(x, t.flags, VKF_TERM_MASK_ONE_BATCH) * row_words;
  const uint64_t biases = term_rows(x, t.flags, VKF_TERM_BIAS_ONE_BATCH) * keys;
  const uint64_t key_masks = static_cast<uint64_t>(x[0]) * row_words;
  VKF_CHECK(check_extent("key mask", t.key_mask_offset, key_masks, words));
  VKF_CHECK(check_extent("mask", t.mask_offset, masks, words));
  VKF_CHECK(check_extent("bias", t.bias_offset, biases, words));
  std::array<uint64_t, 4> sizes{};
  std::copy(x.begin(), x.end(), sizes.begin());
  const std::string sparse = sparse_terms_error(t, words, sizes);
  if (!sparse.empty()) return op_error(OpId::k_softmax, sparse + ".");
  return check_extent("ALiBi slopes", t.slopes_offset, static_cast<uint64_t>(x[1]), words);
}

}  // namespace

Result<TensorDesc> check_softmax(const TensorDesc& x, const TensorDesc& terms,
                                 const SoftmaxAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_softmax, "x", x, 4));
  if (x.shape.size() != 4) {
    return op_error(OpId::k_softmax, message({"x has shape ", shape_text(x.shape),
                                              ", but must have four dimensions (B, H, T, S)."}));
  }
  if (!(attrs.temperature >= 1e-30f && attrs.temperature <= 1e30f)) {
    return op_error(OpId::k_softmax, message({"The temperature is ", number_text(attrs.temperature),
                                              ", but must be from 1e-30 to 1e30."}));
  }
  if (terms.dtype != DType::kU32 || terms.shape.size() != 1) {
    return op_error(OpId::k_softmax,
                    message({"terms is ", dtype_name(terms.dtype), " ", shape_text(terms.shape),
                             ", but must be U32 with one dimension."}));
  }
  VKF_CHECK(check_terms(x.shape, attrs.terms, static_cast<uint64_t>(terms.shape[0])));
  return TensorDesc{"softmax", DType::kF32, x.shape};
}

Result<TensorId> add_softmax(Graph& graph, TensorId x, TensorId terms, const SoftmaxAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_softmax(graph.tensor(x), graph.tensor(terms), attrs));
  Node node = make_node(OpId::k_softmax, attrs, "temperature=" + number_text(attrs.temperature));
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
