#include "operators/head_operands.h"

#include "base/check.h"
#include "operators/operator_scores.h"

namespace vkformer {
namespace {

Status check_shapes(const OperatorArguments& arguments, const HeadOperands& o) {
  const Shape &q = o.q, &k = o.k, &v = o.v;
  const bool fit = q.size() == 4 && k.size() == 4 && v.size() == 4 && q[0] == k[0] &&
                   q[0] == v[0] && q[1] == k[1] && q[1] == v[1] && q[3] == k[3] && k[2] == v[2];
  if (!fit) {
    return arguments.error("Q " + shape_text(q) + ", K " + shape_text(k) + " and V " +
                           shape_text(v) +
                           " must be (B, H, T, E), (B, H, S, E) and (B, H, S, Ev).");
  }
  const int64_t words = element_count(q) + element_count(k) + element_count(v);
  for (const Shape* shape : {&q, &k, &v}) {
    for (int64_t size : *shape) {
      if (size > 0 && size < (1 << 24) && words <= int64_t{UINT32_MAX}) continue;
      return arguments.error("Q " + shape_text(q) + ", K " + shape_text(k) + " and V " +
                             shape_text(v) + " have a dimension that is not from 1 to 16777215, " +
                             "or more than 2^32 - 1 elements.");
    }
  }
  return {};
}

Status bind_mask(const OperatorArguments& arguments, PreparedOperator& op, HeadOperands& o) {
  if (arguments.find("key_mask") == nullptr) return {};
  VKF_ASSIGN(const std::vector<uint32_t> words,
             packed_mask(arguments, "key_mask", {o.k[0], o.k[2]}));
  o.mask = op.bind("key_mask", words_tensor(words, {o.k[0], (o.k[2] + 31) / 32}));
  return {};
}

}  // namespace

Result<HeadOperands> bind_head_operands(const OperatorArguments& arguments, PreparedOperator& op) {
  VKF_ASSIGN(const Tensor q, arguments.floats("Q"));
  VKF_ASSIGN(const Tensor k, arguments.floats("K"));
  VKF_ASSIGN(const Tensor v, arguments.floats("V"));
  HeadOperands o{.q = q.shape, .k = k.shape, .v = v.shape};
  VKF_CHECK(check_shapes(arguments, o));
  o.x = op.bind("QKV", joined({&q, &k, &v}));
  VKF_CHECK(bind_mask(arguments, op, o));
  return o;
}

}  // namespace vkformer
