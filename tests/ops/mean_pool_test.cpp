#include "ops/mean_pool.h"

#include <optional>

#include "ops/score_terms.h"
#include "reference/mean_pool.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct MeanPoolCase {
  Array x;  // (B, T, D)
  std::optional<Tensor> mask;
  bool normalize = false;
};

PreparedOperator prepare_mean_pool(const MeanPoolCase& c) {
  const int64_t batch = c.x.dim(0);
  const int64_t tokens = c.x.dim(1);
  PreparedOperator op;
  TensorId mask = kNoTensor;
  if (c.mask) {
    std::vector<uint8_t> kept(c.mask->bytes.size());
    if (!kept.empty()) std::memcpy(kept.data(), c.mask->bytes.data(), kept.size());
    mask = op.bind("mask",
                   word_tensor(pack_key_mask(kept, batch, tokens), {batch, (tokens + 31) / 32}));
  }
  const MeanPoolAttrs attrs{.normalize = c.normalize ? MeanPoolAttrs::Normalize::kOn
                                                     : MeanPoolAttrs::Normalize::kOff};
  const auto y = add_mean_pool(op.graph, op.bind("x", reference::to_tensor(c.x)), mask, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_mean_pool_case(const MeanPoolCase& c) {
  reference::MeanPoolOptions options;
  options.normalize = c.normalize;
  Array mask;
  if (c.mask) {
    mask = reference::from_tensor(*c.mask).value();
    options.mask = &mask;
  }
  const Array expected = reference::mean_pool(c.x, options).value();
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_mean_pool(c)).at("y"), expected,
                tolerance_for(DType::kF32, std::max(c.x.dim(1), c.x.dim(2))));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("mean_pool leaves masked tokens out even if they are NaN; no token gives zeros") {
    MeanPoolCase c{random_array({3, 5, 9}, 1), random_mask({3, 5}, 2, 1.0), true};
    c.mask->bytes[1] = std::byte{0};
    c.x[9] = kNan;
    for (size_t t = 5; t < 10; ++t) c.mask->bytes[t] = std::byte{0};
    check_mean_pool_case(c);
    c.normalize = false;
    c.x[2 * 45 + 4] = kInfinity;
    check_mean_pool_case(c);
    c.x[2 * 45 + 5] = kNan;
    check_mean_pool_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("mean_pool knows its ways to pool by name") {
    CHECK(pool_kind_from_name("weighted_mean").value() == PoolKind::kWeightedMean);
    CHECK(pool_kind_from_name("mean").value() == PoolKind::kMean);
    check_error(pool_kind_from_name("median"), "mean_pool", "median");
    check_error(pool_kind_from_name("first"), "mean_pool", "mean_sqrt_length");
  }

  TEST_CASE("mean_pool refuses inputs that do not fit") {
    const TensorDesc x = floats_desc({2, 40, 8});
    check_error(check_mean_pool(floats_desc({2, 8})), "mean_pool", "(2, 8)");
    check_error(check_mean_pool(floats_desc({1, 2, 3, 4})), "mean_pool", "(B, T, D)");
    check_error(check_mean_pool_mask(x, {"mask", DType::kU32, {2, 1}}), "mean_pool", "(2, 2)");
    check_error(check_mean_pool_mask(x, {"mask", DType::kU8, {2, 2}}), "mean_pool", "U8");
  }

  TEST_CASE("mean_pool plans one dispatch of the tier's kernel, without aliasing") {
    const PreparedOperator op =
        prepare_mean_pool({random_array({2, 40, 8}, 1), random_mask({2, 40}, 1)});
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "mean_pool_row__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
    plan_with_kernel(op.graph, Tier::kSubgroup, "mean_pool_row__f32_none_f32_subgroup");
  }
}

}  // namespace vkformer::testing
