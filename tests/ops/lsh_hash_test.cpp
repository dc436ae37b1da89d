#include "ops/lsh_hash.h"

#include <optional>

#include "ops/attention.h"
#include "ops/score_terms.h"
#include "reference/lsh_hash.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct LshHashCase {
  Array x;          // (B, H, S, E)
  Array rotations;  // (H, E, R, C)
  std::vector<uint32_t> factors;
  std::optional<Tensor> mask;  // (B, S)
  LshHashAttrs::Offsets offsets = LshHashAttrs::Offsets::kRounds;
};

LshHashCase make_lsh_hash_case(const Shape& x, int64_t rounds, std::vector<uint32_t> factors,
                               uint32_t seed) {
  int64_t columns = 0;
  for (uint32_t factor : factors) columns += factor / 2;
  return {random_array(x, seed),
          random_array({x[1], x[3], rounds, columns}, seed + 1),
          std::move(factors),
          {},
          LshHashAttrs::Offsets::kRounds};
}

LshHashAttrs lsh_hash_attrs(const LshHashCase& c) {
  const auto u = [](int64_t size) { return static_cast<uint32_t>(size); };
  LshHashAttrs a{.batch = u(c.x.dim(0)),
                 .heads = u(c.x.dim(1)),
                 .tokens = u(c.x.dim(2)),
                 .head_width = u(c.x.dim(3)),
                 .rounds = u(c.rotations.dim(2)),
                 .factors = c.factors};
  a.x = separate_heads(a.heads, a.tokens, a.head_width, 0);
  a.offsets = c.offsets;
  return a;
}

PreparedOperator prepare_lsh_hash(const LshHashCase& c) {
  PreparedOperator op;
  LshHashInputs inputs;
  inputs.x = op.bind("x", reference::to_tensor(c.x));
  inputs.rotations = op.bind("rotations", reference::to_tensor(c.rotations));
  if (c.mask) {
    const int64_t batch = c.x.dim(0), tokens = c.x.dim(2);
    std::vector<uint8_t> kept(c.mask->bytes.size());
    std::memcpy(kept.data(), c.mask->bytes.data(), kept.size());
    inputs.mask = op.bind(
        "mask", word_tensor(pack_key_mask(kept, batch, tokens), {batch, (tokens + 31) / 32}));
  }
  const auto y = add_lsh_hash(op.graph, inputs, lsh_hash_attrs(c));
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

// Buckets are whole numbers and must be equal; the seeds leave no two rotations closer than what
// f32 tells apart.
void check_lsh_hash_case(const LshHashCase& c) {
  reference::LshHashOptions options;
  options.factors.assign(c.factors.begin(), c.factors.end());
  options.offsets = c.offsets == LshHashAttrs::Offsets::kRounds;
  Array mask;
  if (c.mask) {
    mask = reference::from_tensor(*c.mask).value();
    options.mask = &mask;
  }
  const Array expected = reference::lsh_hash(c.x, c.rotations, options).value();
  const std::vector<uint32_t> wanted(expected.data.begin(), expected.data.end());
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const Tensor y = run_poisoned(device, prepare_lsh_hash(c)).at("y");
    CHECK(y.shape == expected.shape);
    CHECK(words_of(y) == wanted);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("lsh_hash agrees with the reference for every length, width and number of buckets") {
    for (int64_t tokens : {1, 7, 63, 64, 65, 129}) {
      check_lsh_hash_case(
          make_lsh_hash_case({2, 2, tokens, 8}, 2, {8}, static_cast<uint32_t>(tokens)));
    }
    for (int64_t width : {1, 5, 16, 64}) {
      check_lsh_hash_case(
          make_lsh_hash_case({1, 3, 20, width}, 1, {6}, static_cast<uint32_t>(width)));
    }
    for (uint32_t buckets : {2u, 4u, 10u, 62u, 64u, 66u}) {
      check_lsh_hash_case(make_lsh_hash_case({1, 1, 40, 12}, 3, {buckets}, buckets));
    }
  }

  TEST_CASE("lsh_hash combines factors, and puts masked tokens into a bucket of their own") {
    LshHashCase c = make_lsh_hash_case({2, 2, 37, 9}, 2, {2, 4}, 3);
    check_lsh_hash_case(c);
    c.mask = random_mask({2, 37}, 4);
    check_lsh_hash_case(c);
    check_lsh_hash_case(make_lsh_hash_case({1, 2, 30, 9}, 2, {4, 2, 6, 2}, 5));
    c.offsets = LshHashAttrs::Offsets::kNone;
    check_lsh_hash_case(c);
  }

  TEST_CASE("lsh_hash gives ties to the first bucket, and NaN to its first column") {
    LshHashCase c = make_lsh_hash_case({1, 1, 4, 3}, 2, {8}, 6);
    for (int64_t e = 0; e < 3; ++e) c.x[e] = 0;
    c.x[3] = kNan;
    c.x[6] = kInfinity;
    // Two columns that are the same, and one that is their opposite.
    for (int64_t row = 0; row < 6; ++row) {
      c.rotations[row * 4 + 2] = c.rotations[row * 4 + 1];
      c.rotations[row * 4 + 3] = -c.rotations[row * 4 + 1];
    }
    check_lsh_hash_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("lsh_hash refuses buckets and rotations that do not fit") {
    const LshHashCase c = make_lsh_hash_case({1, 2, 10, 4}, 2, {8}, 1);
    const TensorDesc x = floats_desc(c.x.shape);
    LshHashAttrs attrs = lsh_hash_attrs(c);
    check_error(check_lsh_hash(x, floats_desc({2, 4, 2, 3}), attrs), "lsh_hash", "(2, 4, 2, 4)");
    attrs.factors = {7};
    check_error(check_lsh_hash(x, floats_desc({2, 4, 2, 3}), attrs), "lsh_hash", "is 7");
    attrs.factors = {};
    check_error(check_lsh_hash(x, floats_desc({2, 4, 2, 3}), attrs), "lsh_hash", "0 factors");
    attrs.factors = {2, 2, 2, 2, 2};
    check_error(check_lsh_hash(x, floats_desc({2, 4, 2, 5}), attrs), "lsh_hash", "5 factors");
    attrs.factors = {1u << 31, 1u << 31};
    check_error(check_lsh_hash(x, floats_desc({2, 4, 2, 5}), attrs), "lsh_hash", "limit");
    attrs = lsh_hash_attrs(c);
    attrs.x.offset = 1;
    check_error(check_lsh_hash(x, floats_desc(c.rotations.shape), attrs), "lsh_hash", "x reaches");
  }

  TEST_CASE("lsh_hash plans one dispatch, without aliasing") {
    const PreparedOperator op = prepare_lsh_hash(make_lsh_hash_case({1, 2, 10, 4}, 2, {8}, 1));
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "lsh_hash_token__f32_f32_u32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
