#include "operators/lsh_hash.h"

#include "base/check.h"
#include "base/narrow.h"
#include "operators/operator_adaptors.h"
#include "ops/attention.h"

namespace vkformer {
namespace {

// U32 buckets as I64.
Result<TensorMap> widen_buckets(TensorMap outputs) {
  Tensor& y = outputs.at("buckets");
  VKF_ASSIGN(const std::vector<int64_t> values, y.to_ints());
  y = Tensor::from_ints(y.shape, values);
  return outputs;
}

}  // namespace

Result<LshHashAttrs> lsh_hash_attrs(const OperatorArguments& arguments, const char* name,
                                    const Shape& s, const Shape& r) {
  if (s.size() != 4 || r.size() != 4 || r[0] != s[1] || r[1] != s[3]) {
    return arguments.error(std::string(name) + " " + shape_text(s) + " and rotations " +
                           shape_text(r) +
                           " must be (B, H, S, E) and (H, E, hashes, half the buckets).");
  }
  VKF_CHECK(check_dimensions(arguments, name, s));
  VKF_CHECK(check_dimensions(arguments, "rotations", r));
  LshHashAttrs attrs{.batch = u32(s[0]),
                     .heads = u32(s[1]),
                     .tokens = u32(s[2]),
                     .head_width = u32(s[3]),
                     .rounds = u32(r[2]),
                     .factors = {2 * u32(r[3])}};
  attrs.x = separate_heads(attrs.heads, attrs.tokens, attrs.head_width, 0);
  return attrs;
}

// lsh_hash (Matrix product and attention)
// inputs:     X (B, H, S, E), rotations (H, E, R, C)
// outputs:    buckets (B, H, R, S) I64
// computes:   argmax of [X · rotations, −X · rotations], the first index on ties
Result<PreparedOperator> prepare_lsh_hash(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "rotations"}, {}));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(Tensor rotations, arguments.floats("rotations"));
  VKF_ASSIGN(LshHashAttrs attrs, lsh_hash_attrs(arguments, "X", x.shape, rotations.shape));
  // A round's buckets begin at 0 here, as the definition of the operator alone has it.
  attrs.offsets = LshHashAttrs::Offsets::kNone;
  PreparedOperator op;
  LshHashInputs inputs;
  inputs.x = op.bind("X", std::move(x));
  inputs.rotations = op.bind("rotations", std::move(rotations));
  VKF_ASSIGN(const TensorId buckets, add_lsh_hash(op.graph, inputs, attrs));
  op.name_output(buckets, "buckets");
  op.finish = widen_buckets;
  return op;
}

}  // namespace vkformer
