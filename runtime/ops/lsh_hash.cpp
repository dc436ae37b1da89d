#include "ops/lsh_hash.h"

#include "base/message.h"
#include "ops/attention.h"
#include "ops/row_op.h"
#include "params/lsh.h"
#include "software/strategies.h"

namespace vkformer {
namespace {

std::string factors_text(const std::vector<uint32_t>& factors) {
  std::string text;
  for (uint32_t factor : factors) text += (text.empty() ? "" : " x ") + std::to_string(factor);
  return text;
}

// Columns of a rotation.
uint32_t columns_of(const std::vector<uint32_t>& factors) {
  uint32_t columns = 0;
  for (uint32_t factor : factors) columns += factor / 2;
  return columns;
}

Status check_sizes(const LshHashAttrs& a) {
  const uint32_t sizes[] = {a.batch, a.heads, a.tokens, a.head_width, a.rounds};
  const char* names[] = {"batch", "heads", "tokens", "head_width", "rounds"};
  for (size_t i = 0; i < 5; ++i) {
    if (sizes[i] >= 1 && sizes[i] < (1u << 24)) continue;
    return op_error(OpId::k_lsh_hash,
                    message({names[i], " is ", sizes[i], ", but must be from 1 to 16777215."}));
  }
  return {};
}

Status check_mask(const TensorDesc& mask, const LshHashAttrs& a) {
  const Shape wanted{a.batch, (int64_t{a.tokens} + 31) / 32};
  if (mask.dtype == DType::kU32 && element_count(mask.shape) >= element_count(wanted)) return {};
  return op_error(OpId::k_lsh_hash,
                  message({"mask is ", dtype_name(mask.dtype), " ", shape_text(mask.shape),
                           ", but must be U32 ", shape_text(wanted), ", one bit per token."}));
}

}  // namespace

Result<uint32_t> count_buckets(const std::vector<uint32_t>& factors) {
  if (factors.empty() || factors.size() > VKF_MAX_BUCKET_FACTORS) {
    return op_error(OpId::k_lsh_hash,
                    message({"The number of buckets has ", factors.size(),
                             " factors, but must have from 1 to ", VKF_MAX_BUCKET_FACTORS, "."}));
  }
  constexpr uint64_t kMostBuckets = 1u << 24;
  uint64_t product = 1;
  for (uint32_t factor : factors) {
    if (factor < 2 || factor % 2 != 0) {
      return op_error(OpId::k_lsh_hash,
                      message({"The number of buckets is ", factors_text(factors),
                               ", but every factor must be even and at least 2."}));
    }
    product *= factor;
    if (product > kMostBuckets) {
      return op_error(OpId::k_lsh_hash, message({"The number of buckets, ", factors_text(factors),
                                                 ", is above the limit of ", kMostBuckets, "."}));
    }
  }
  return static_cast<uint32_t>(product);
}

Result<TensorDesc> check_lsh_hash(const TensorDesc& x, const TensorDesc& rotations,
                                  const LshHashAttrs& a) {
  VKF_CHECK(check_sizes(a));
  VKF_ASSIGN(const uint32_t buckets, count_buckets(a.factors));
  VKF_CHECK(check_layout(OpId::k_lsh_hash, x, "x", a.x,
                         std::array{a.batch, a.heads, a.tokens, a.head_width}));
  VKF_CHECK(check_floats(OpId::k_lsh_hash, "rotations", rotations, 4));
  const Shape wanted{a.heads, a.head_width, a.rounds, columns_of(a.factors)};
  if (rotations.shape != wanted) {
    return op_error(OpId::k_lsh_hash,
                    message({"rotations has shape ", shape_text(rotations.shape), ", but ",
                             factors_text(a.factors), " buckets need ", shape_text(wanted),
                             ": heads, head width, rounds, half the buckets."}));
  }
  const double entries = static_cast<double>(a.batch) * a.heads * a.rounds * a.tokens;
  if (entries >= 4294967296.0 || (buckets + 1.0) * a.rounds >= 4294967296.0 ||
      static_cast<double>(element_count(rotations.shape)) >= 4294967296.0) {
    return op_error(OpId::k_lsh_hash,
                    message({a.rounds, " rounds over ", a.tokens, " tokens and ", buckets,
                             " buckets leave 32 bits; use fewer rounds or a smaller batch."}));
  }
  return TensorDesc{"buckets", DType::kU32, {a.batch, a.heads, a.rounds, a.tokens}};
}

Result<TensorId> add_lsh_hash(Graph& graph, const LshHashInputs& inputs,
                              const LshHashAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out,
             check_lsh_hash(graph.tensor(inputs.x), graph.tensor(inputs.rotations), attrs));
  if (inputs.mask != kNoTensor) VKF_CHECK(check_mask(graph.tensor(inputs.mask), attrs));
  Node node = make_node<OpId::k_lsh_hash>(attrs, "rounds=" + std::to_string(attrs.rounds) +
                                                     " buckets=" + factors_text(attrs.factors) +
                                                     (inputs.mask != kNoTensor ? " mask" : ""));
  node.inputs = {inputs.x, inputs.rotations, inputs.mask};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_lsh_hash(LowerContext& context, const Node& node) {
  const LshHashAttrs& a = attrs_of<LshHashAttrs>(node);
  const bool has_mask = node.inputs[2] != kNoTensor;
  const uint64_t units = uint64_t{a.batch} * a.heads * a.rounds;
  LshHashParams params{.x = a.x,
                       .heads = a.heads,
                       .tokens = a.tokens,
                       .rounds = a.rounds,
                       .columns = columns_of(a.factors),
                       .stride = has_mask ? 1u : 0u,
                       .factor_count = static_cast<uint32_t>(a.factors.size()),
                       .factors = {},
                       .units = static_cast<uint32_t>(units)};
  uint32_t buckets = 1;
  uint64_t loops = 0;
  for (size_t f = 0; f < a.factors.size(); ++f) {
    params.factors[f] = a.factors[f];
    buckets *= a.factors[f];
    loops += (uint64_t{a.factors[f]} / 8 + 1) * (a.head_width + 1);
  }
  params.stride = a.offsets == LshHashAttrs::Offsets::kNone ? 0 : params.stride + buckets;
  if (leaves_loops(context.caps, 2 * loops)) {
    return unsupported(message(
        {"[lsh_hash] There is no kernel for ", factors_text(a.factors), " buckets of heads ",
         a.head_width, " wide on a software device; split the number of buckets into factors"}));
  }
  // An invocation is a token here, so that a workgroup is as wide as a row of tokens.
  const uint32_t local = row_local_size(context.caps, a.tokens);
  Dispatch d = make_dispatch(
      node, software_lsh_hash(context.caps, local).value_or(KernelId::lsh_hash_token__f32_f32_u32));
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {has_mask ? node.inputs[2] : node.inputs[0], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(params);
  d.set_constants(
      LshHashConstants{.local_size = local, .width = a.head_width, .has_mask = has_mask});
  d.groups = {(a.tokens + local - 1) / local,
              static_cast<uint32_t>(std::min<uint64_t>(units, kRowsPerGridLine)),
              static_cast<uint32_t>((units + kRowsPerGridLine - 1) / kRowsPerGridLine)};
  const double vectors = static_cast<double>(units) * a.tokens;
  d.flops = 2.0 * vectors * a.head_width * params.columns;
  d.bytes = 4.0 * vectors * (a.head_width + 1.0);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
