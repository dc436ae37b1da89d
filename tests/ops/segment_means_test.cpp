#include "ops/segment_means.h"

#include "ops/attention.h"
#include "reference/segment_means.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct SegmentMeansCase {
  Array x;  // (B, H, S, E)
  int64_t segments = 1;
};

SegmentMeansAttrs segment_means_attrs(const SegmentMeansCase& c) {
  const auto u = [](int64_t size) { return static_cast<uint32_t>(size); };
  SegmentMeansAttrs a{.batch = u(c.x.dim(0)),
                      .heads = u(c.x.dim(1)),
                      .tokens = u(c.x.dim(2)),
                      .segments = u(c.segments),
                      .head_width = u(c.x.dim(3))};
  a.x = separate_heads(a.heads, a.tokens, a.head_width, 0);
  a.y = separate_heads(a.heads, a.segments, a.head_width, 0);
  a.y_shape = {c.x.dim(0), c.x.dim(1), c.segments, c.x.dim(3)};
  return a;
}

PreparedOperator prepare_segment_means(const SegmentMeansCase& c, const SegmentMeansAttrs& attrs) {
  PreparedOperator op;
  const auto y = add_segment_means(op.graph, op.bind("x", reference::to_tensor(c.x)), attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_segment_means_case(const SegmentMeansCase& c) {
  const Array expected = reference::segment_means(c.x, c.segments).value();
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_segment_means(c, segment_means_attrs(c))).at("y"),
                expected, tolerance_for(DType::kF32, c.x.dim(2) / c.segments));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("segment_means keeps NaN and infinity inside their segment and column") {
    SegmentMeansCase c{random_array({1, 2, 8, 3}, 6), 4};
    c.x[0] = kNan;
    c.x[10] = kInfinity;
    check_segment_means_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("segment_means refuses segments that do not divide, and layouts outside x") {
    SegmentMeansCase c{random_array({1, 2, 10, 3}, 1), 5};
    SegmentMeansAttrs attrs = segment_means_attrs(c);
    const TensorDesc x = floats_desc(c.x.shape);
    attrs.segments = 4;
    check_error(check_segment_means(x, attrs), "segment_means", "10 tokens");
    attrs.segments = 0;
    check_error(check_segment_means(x, attrs), "segment_means", "segments is 0");
    attrs = segment_means_attrs(c);
    attrs.x.offset = 1;
    check_error(check_segment_means(x, attrs), "segment_means", "element 61");
    attrs = segment_means_attrs(c);
    attrs.y_shape = {1, 2, 5, 2};
    check_error(check_segment_means(x, attrs), "segment_means", "y reaches");
  }

  TEST_CASE("segment_means plans one dispatch, without aliasing") {
    const SegmentMeansCase c{random_array({1, 2, 10, 3}, 1), 5};
    const Plan plan = plan_with_kernel(prepare_segment_means(c, segment_means_attrs(c)).graph,
                                       Tier::kBaseline, "segment_means_column__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
