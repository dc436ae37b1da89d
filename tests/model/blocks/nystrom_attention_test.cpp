#include "model/blocks/nystrom_attention.h"

#include "reference/inverse_start.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using Maximum = InverseStartAttrs::Maximum;

struct Case {
  Array q, k, v;  // (B, H, S, E), (B, H, S, E), (B, H, S, Ev)
  int64_t landmarks = 1;
  Maximum maximum = Maximum::kShared;
};

Case make_case(const Shape& q, int64_t values, int64_t landmarks, uint32_t seed) {
  return {random_array(q, seed), random_array(q, seed + 1),
          random_array({q[0], q[1], q[2], values}, seed + 2), landmarks, Maximum::kShared};
}

PreparedOperator prepare(const Case& c) {
  const auto u = [](int64_t size) { return static_cast<uint32_t>(size); };
  NystromAttrs attrs{.attention = {}, .landmarks = u(c.landmarks), .maximum = c.maximum};
  AttentionAttrs& a = attrs.attention;
  a.batch = u(c.q.dim(0));
  a.heads = a.kv_heads = u(c.q.dim(1));
  a.queries = a.keys = u(c.q.dim(2));
  a.head_width = u(c.q.dim(3));
  a.value_width = u(c.v.dim(3));
  const uint32_t size = u(c.q.size());
  a.q = separate_heads(a.heads, a.keys, a.head_width, 0);
  a.k = separate_heads(a.heads, a.keys, a.head_width, size);
  a.v = separate_heads(a.heads, a.keys, a.value_width, 2 * size);
  a.y = separate_heads(a.heads, a.keys, a.value_width, 0);
  a.y_shape = c.v.shape;
  Array joined{{2 * c.q.size() + c.v.size()}, c.q.data};
  joined.data.insert(joined.data.end(), c.k.data.begin(), c.k.data.end());
  joined.data.insert(joined.data.end(), c.v.data.begin(), c.v.data.end());
  PreparedOperator op;
  NystromInputs inputs;
  inputs.x = op.bind("x", reference::to_tensor(joined));
  inputs.ones = op.bind("ones", reference::to_tensor(reference::filled({1, c.landmarks}, 1.0)));
  const auto result = add_nystrom_attention(op.graph, inputs, attrs);
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  op.name_output(result->y, "y");
  op.name_output(result->inverse, "inverse");
  return op;
}

// Six steps multiply small singular values by 3.25 each, and what was rounded with them. So the
// bound is relative to the inverses' own size.
void check_case(const Case& c) {
  const auto of = c.maximum == Maximum::kOwn ? reference::InverseMaximum::kOwn
                                             : reference::InverseMaximum::kShared;
  reference::NystromReference expected =
      reference::nystrom_attention({c.q, c.k, c.v}, c.landmarks, of).value();
  double largest = 1;
  for (double value : expected.pseudo_inverse.data) largest = std::max(largest, std::abs(value));
  expected.pseudo_inverse.shape = {c.q.dim(0) * c.q.dim(1), c.landmarks, c.landmarks};
  Tolerance tolerance = tolerance_for(DType::kF32, 1024);
  tolerance.absolute *= largest;
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const TensorMap outputs = run_poisoned(device, prepare(c));
    check_close(outputs.at("inverse"), expected.pseudo_inverse, tolerance);
    check_close(outputs.at("y"), expected.output, tolerance);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("nystrom_attention agrees with the reference for landmarks, widths and starts") {
    for (int64_t landmarks : {1, 2, 8, 31}) {
      Case c =
          make_case({2, 2, landmarks * 3, 16}, 16, landmarks, static_cast<uint32_t>(landmarks));
      check_case(c);
      c.maximum = Maximum::kOwn;
      check_case(c);
    }
    check_case(make_case({1, 3, 20, 7}, 11, 4, 5));
    check_case(make_case({1, 1, 9, 8}, 8, 9, 6));
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("nystrom_attention plans no matrix of all tokens by all landmarks, without aliasing") {
    const PreparedOperator op = prepare(make_case({1, 2, 512, 8}, 8, 16, 1));
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "attention_blocks__f32_f32_f32");
    check_no_aliasing(plan);
    for (const TensorDesc& t : op.graph.tensors()) {
      CHECK_MESSAGE(element_count(t.shape) <= 3 * 2 * 512 * 8, shape_text(t.shape));
    }
  }
}

}  // namespace vkformer::testing
