#include "base/check.h"
#include "operators/head_operands.h"
#include "operators/operator_adaptors.h"
#include "ops/sequence_projection.h"

namespace vkformer {

// linformer_attention (Matrix product and attention)
// attributes: `scale` (1/sqrt(E))
// inputs:     the same without omega, E and F (P, N) with N ≥ S
// outputs:    output
// computes:   `attention` over the P keys E (m K) and values F (m V), m the key mask; the first S
//             columns of E and F count
Result<PreparedOperator> prepare_linformer_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V", "E", "F", "key_mask"}, {"scale"}));
  PreparedOperator op;
  VKF_ASSIGN(const HeadOperands o, bind_head_operands(arguments, op));
  VKF_ASSIGN(Tensor e, arguments.floats("E"));
  VKF_ASSIGN(Tensor f, arguments.floats("F"));
  if (e.shape.size() != 2 || e.shape != f.shape || e.count() < 1 || e.count() >= (1 << 28)) {
    return arguments.error("E " + shape_text(e.shape) + " and F " + shape_text(f.shape) +
                           " must both be (P, N) with at most 2^28 - 1 elements.");
  }
  SequenceProjectionAttrs projection{.batch = o.batch(),
                                     .heads = o.heads(),
                                     .keys = o.keys(),
                                     .head_width = o.head_width(),
                                     .value_width = o.value_width(),
                                     .projected = static_cast<uint32_t>(e.shape[0]),
                                     .reach = static_cast<uint32_t>(e.shape[1]),
                                     .k = o.k_layout(),
                                     .v = o.v_layout()};
  SequenceProjectionInputs inputs{.x = o.x, .mask = o.mask};
  inputs.e = op.bind("E", std::move(e));
  inputs.f = op.bind("F", std::move(f));
  VKF_ASSIGN(const TensorId kv, add_sequence_projection(op.graph, inputs, projection));
  AttentionAttrs a;
  a.batch = o.batch();
  a.heads = a.kv_heads = o.heads();
  a.queries = o.queries();
  a.keys = projection.projected;
  a.head_width = o.head_width();
  a.value_width = o.value_width();
  a.q = o.q_layout();
  a.k = projected_keys(projection);
  a.v = projected_values(projection);
  a.y = separate_heads(a.heads, a.queries, a.value_width, 0);
  a.y_shape = o.y_shape();
  if (arguments.attributes().has("scale")) {
    VKF_ASSIGN(a.scale, arguments.number_or("scale", 1.0));
  }
  VKF_ASSIGN(const TensorId y, add_attention(op.graph, {.q = o.x, .kv = kv}, a));
  op.name_output(y, "output");
  return op;
}

}  // namespace vkformer
