#include "ops/mean_pool.h"

#include "base/message.h"
#include "ops/row_kernel.h"
#include "ops/row_op.h"
#include "params/rowwise.h"

namespace vkformer {
namespace {

// By number.
constexpr const char* kKindNames[] = {"mean", "max", "last", "weighted_mean", "mean_sqrt_length"};

}  // namespace

Result<PoolKind> pool_kind_from_name(std::string_view name) {
  for (uint32_t i = 0; i < std::size(kKindNames); ++i) {
    if (name == kKindNames[i]) return static_cast<PoolKind>(i);
  }
  return op_error(OpId::k_mean_pool,
                  message({"kind is '", name,
                           "', but must be mean, max, last, weighted_mean or mean_sqrt_length."}));
}

Result<TensorDesc> check_mean_pool(const TensorDesc& x) {
  VKF_CHECK(check_floats(OpId::k_mean_pool, "x", x, 3));
  if (x.shape.size() != 3) {
    return op_error(OpId::k_mean_pool, message({"x has shape ", shape_text(x.shape),
                                                ", but must have three dimensions (B, T, D)."}));
  }
  return TensorDesc{"mean_pool", DType::kF32, {x.shape[0], x.shape[2]}};
}

Status check_mean_pool_mask(const TensorDesc& x, const TensorDesc& mask) {
  const Shape wanted{x.shape[0], (x.shape[1] + 31) / 32};
  if (mask.dtype == DType::kU32 && mask.shape == wanted) return {};
  return op_error(OpId::k_mean_pool,
                  message({"mask is ", dtype_name(mask.dtype), " ", shape_text(mask.shape),
                           ", but must be U32 ", shape_text(wanted), ", one bit per token."}));
}

Result<TensorId> add_mean_pool(Graph& graph, TensorId x, TensorId mask, MeanPoolAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_mean_pool(graph.tensor(x)));
  if (mask != kNoTensor) VKF_CHECK(check_mean_pool_mask(graph.tensor(x), graph.tensor(mask)));
  const bool normalize = attrs.normalize == MeanPoolAttrs::Normalize::kOn;
  const auto kind = static_cast<size_t>(attrs.kind);
  if (kind >= std::size(kKindNames)) return internal_error("[mean_pool] has no kernel for first");
  const std::string words = normalize ? "normalize=on" : "normalize=off";
  Node node = make_node<OpId::k_mean_pool>(
      attrs, kind == 0 ? words : "kind=" + std::string(kKindNames[kind]) + " " + words);
  node.inputs = {x, mask};
  return add_single_output(graph, std::move(node), std::move(out));
}

namespace {

struct PassBuffers {
  uint32_t x, mask, y;
};

void add_pass(LowerContext& context, const Node& node, const PassBuffers& buffers,
              const MeanPoolParams& params, const MeanPoolConstants& constants) {
  const bool masked = buffers.mask != kNoTensor;
  MeanPoolConstants all = constants;
  all.has_mask = masked;
  Dispatch d =
      make_dispatch(node, context.caps.subgroup() ? KernelId::mean_pool_row__f32_none_f32_subgroup
                                                  : KernelId::mean_pool_row__f32_none_f32);
  d.bindings = {{buffers.x, Access::kRead},
                {masked ? buffers.mask : buffers.x, Access::kRead},
                {buffers.y, Access::kWrite}};
  d.set_push(params);
  d.set_constants(all);
  set_row_groups(context, d, params.batch, 1);
  d.groups[2] = std::max(1u, (params.width + params.span - 1) / std::max(1u, params.span));
  const double outputs = static_cast<double>(params.batch) * params.width;
  d.flops = outputs * params.tokens * (params.normalize != 0 ? 2.0 : 1.0);
  d.bytes = 4.0 * (d.flops + outputs);
  context.plan.dispatches.push_back(std::move(d));
}

}  // namespace

// Pooled first, each invocation some columns, so that its rounds are the tokens alone; then, as
// means of one token, their lengths. A software device goes through the tokens for several columns
// at once; a GPU would rather have more invocations.
Status lower_mean_pool(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  MeanPoolParams params{.batch = static_cast<uint32_t>(x.shape[0]),
                        .tokens = static_cast<uint32_t>(x.shape[1]),
                        .width = static_cast<uint32_t>(x.shape[2])};
  if (leaves_loops(context.caps, 2ull * params.tokens)) {
    return unsupported(message({"[mean_pool] There is no kernel for ", params.tokens,
                                " tokens on this software device, whose loops end after ",
                                kMostSoftwareIterations / 2, "; pool parts of the row"}));
  }
  const uint32_t lanes = row_local_size(context.caps, params.width);
  const MeanPoolAttrs& attrs = attrs_of<MeanPoolAttrs>(node);
  const bool normalize = attrs.normalize == MeanPoolAttrs::Normalize::kOn;
  uint32_t means = node.outputs[0];
  if (normalize) means = context.add_scratch("mean_pool.means", 4ull * params.batch * params.width);
  const uint32_t columns = context.caps.device_class == DeviceClass::kSoftware ? 8 : 1;
  params.span = lanes * columns;
  add_pass(context, node, {node.inputs[0], node.inputs[1], means}, params,
           {.local_size = lanes, .columns = columns, .kind = static_cast<uint32_t>(attrs.kind)});
  if (!normalize) return {};
  params.tokens = 1;
  params.normalize = 1;
  params.span = params.width;
  add_pass(context, node, {means, kNoTensor, node.outputs[0]}, params, {.local_size = lanes});
  return {};
}

}  // namespace vkformer
