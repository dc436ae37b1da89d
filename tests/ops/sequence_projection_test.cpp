#include "ops/sequence_projection.h"

#include <optional>

#include "ops/score_terms.h"
#include "reference/sequence_projection.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using Matrices = SequenceProjectionAttrs::Matrices;

uint32_t word_of(int64_t value) {
  return static_cast<uint32_t>(value);
}

struct SequenceProjectionCase {
  int64_t batch = 2;
  int64_t heads = 3;
  int64_t keys = 21;
  int64_t width = 8;        // E
  int64_t value_width = 8;  // Ev
  int64_t projected = 6;    // P
  int64_t reach = 21;       // N
  bool per_head = false;
  bool masked = false;
};

struct SequenceProjectionProblem {
  Array k, v, e, f;
  std::optional<Tensor> mask;
};

SequenceProjectionProblem make_sequence_projection_problem(const SequenceProjectionCase& c) {
  const Shape matrix =
      c.per_head ? Shape{c.heads, c.projected, c.reach} : Shape{c.projected, c.reach};
  SequenceProjectionProblem p{random_array({c.batch, c.heads, c.keys, c.width}, 1),
                              random_array({c.batch, c.heads, c.keys, c.value_width}, 2),
                              random_array(matrix, 3),
                              random_array(matrix, 4),
                              {}};
  if (c.masked) p.mask = random_mask({c.batch, c.keys}, 5);
  return p;
}

SequenceProjectionAttrs sequence_projection_attrs(const SequenceProjectionCase& c) {
  const int64_t k = c.batch * c.heads * c.keys * c.width;
  return {
      .batch = word_of(c.batch),
      .heads = word_of(c.heads),
      .keys = word_of(c.keys),
      .head_width = word_of(c.width),
      .value_width = word_of(c.value_width),
      .projected = word_of(c.projected),
      .reach = word_of(c.reach),
      .matrices = c.per_head ? Matrices::kPerHead : Matrices::kShared,
      .k = separate_heads(word_of(c.heads), word_of(c.keys), word_of(c.width), 0),
      .v = separate_heads(word_of(c.heads), word_of(c.keys), word_of(c.value_width), word_of(k))};
}

PreparedOperator prepare_sequence_projection(const SequenceProjectionCase& c,
                                             const SequenceProjectionProblem& p) {
  PreparedOperator op;
  Array x = p.k;
  x.data.insert(x.data.end(), p.v.data.begin(), p.v.data.end());
  x.shape = {x.size()};
  SequenceProjectionInputs inputs{.x = op.bind("x", reference::to_tensor(x))};
  inputs.e = op.bind("e", reference::to_tensor(p.e));
  inputs.f = op.bind("f", reference::to_tensor(p.f));
  if (p.mask) {
    std::vector<uint8_t> kept(p.mask->bytes.size());
    std::memcpy(kept.data(), p.mask->bytes.data(), kept.size());
    inputs.mask = op.bind(
        "mask", word_tensor(pack_key_mask(kept, c.batch, c.keys), {c.batch, (c.keys + 31) / 32}));
  }
  const auto kv = add_sequence_projection(op.graph, inputs, sequence_projection_attrs(c));
  REQUIRE_MESSAGE(kv.ok(), kv.error().message);
  op.name_output(*kv, "kv");
  return op;
}

// (B, H, P, width) as `at` finds it in kv.
Tensor part_of(const Tensor& kv, const HeadLayout& at, const Shape& shape) {
  const auto values = kv.to_floats();
  REQUIRE(values.ok());
  std::vector<float> part;
  for (int64_t row = 0; row < shape[0] * shape[1] * shape[2]; ++row) {
    const int64_t unit = row / shape[2];
    const int64_t from = at.offset + unit / shape[1] * at.batch_stride +
                         unit % shape[1] * at.head_stride + row % shape[2] * at.row_stride;
    REQUIRE(from + shape[3] <= kv.count());
    part.insert(part.end(), values->begin() + from, values->begin() + from + shape[3]);
  }
  return Tensor::from_floats(shape, part);
}

void check_sequence_projection_problem(const SequenceProjectionCase& c,
                                       const SequenceProjectionProblem& p) {
  Array mask;
  if (p.mask) mask = reference::from_tensor(*p.mask).value();
  const Array* kept = p.mask ? &mask : nullptr;
  const auto k = reference::sequence_projection(p.k, p.e, kept);
  const auto v = reference::sequence_projection(p.v, p.f, kept);
  REQUIRE(k.ok());
  REQUIRE(v.ok());
  const PreparedOperator op = prepare_sequence_projection(c, p);
  const SequenceProjectionAttrs attrs = sequence_projection_attrs(c);
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, ", S=", c.keys, " P=", c.projected, " E=", c.width);
    auto outputs = run_poisoned(device, op);
    const Tensor& kv = outputs.at("kv");
    const Tolerance bound = tolerance_for(DType::kF32, 16 * c.keys);
    check_close(part_of(kv, projected_keys(attrs), k->shape), *k, bound);
    check_close(part_of(kv, projected_values(attrs), v->shape), *v, bound);
  }
}

void check_sequence_projection_case(const SequenceProjectionCase& c) {
  check_sequence_projection_problem(c, make_sequence_projection_problem(c));
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("sequence_projection over lengths") {
    for (int64_t keys : {1, 16, 17, 511, 512, 513, 1025}) {
      check_sequence_projection_case({.keys = keys, .reach = keys + 3});
      check_sequence_projection_case(
          {.keys = keys, .reach = keys, .per_head = true, .masked = true});
    }
  }

  TEST_CASE("sequence_projection over sizes and matrices") {
    for (int64_t width : {1, 33, 129, 256}) {
      check_sequence_projection_case({.width = width, .value_width = 5, .projected = 17});
      check_sequence_projection_case(
          {.width = 3, .value_width = width, .projected = 1, .masked = true});
    }
    check_sequence_projection_case({.keys = 33, .projected = 129, .reach = 40});
  }

  TEST_CASE("sequence_projection does not read masked keys, and hands on NaN of others") {
    SequenceProjectionCase c{.masked = true};
    SequenceProjectionProblem p = make_sequence_projection_problem(c);
    p.mask->bytes[4] = std::byte{0};
    p.mask->bytes[5] = std::byte{1};
    p.k[4 * c.width] = kNan;
    p.v[4 * c.value_width] = kInfinity;
    check_sequence_projection_problem(c, p);
    p.k[5 * c.width] = kNan;
    check_sequence_projection_problem(c, p);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("sequence_projection refuses inputs that do not fit") {
    const SequenceProjectionCase c;
    SequenceProjectionAttrs a = sequence_projection_attrs(c);
    const TensorDesc x = floats_desc({2 * 2 * 3 * 21 * 8});
    const TensorDesc matrix = floats_desc({6, 21});
    const std::string op = "sequence_projection";
    CHECK(check_sequence_projection(x, matrix, matrix, nullptr, a).ok());
    check_error(check_sequence_projection(floats_desc({9}), matrix, matrix, nullptr, a), op, "9");
    check_error(check_sequence_projection(x, floats_desc({5, 21}), matrix, nullptr, a), op,
                "(6, 21)");
    const TensorDesc mask{"mask", DType::kU32, {2, 2}};
    check_error(check_sequence_projection(x, matrix, matrix, &mask, a), op, "(2, 1)");
    a.matrices = Matrices::kPerHead;
    check_error(check_sequence_projection(x, matrix, matrix, nullptr, a), op, "(3, 6, 21)");
    a.reach = 20;
    check_error(check_sequence_projection(x, matrix, matrix, nullptr, a), op, "21 keys");
    a.projected = 0;
    check_error(check_sequence_projection(x, matrix, matrix, nullptr, a), op, "projected length");
  }

  TEST_CASE("sequence_projection plans its kernels without aliasing") {
    const SequenceProjectionCase c{.keys = 700, .reach = 700};
    const PreparedOperator op = prepare_sequence_projection(c, make_sequence_projection_problem(c));
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "linear_attention_state__f32_f32_f32");
    CHECK(plan.dispatches.size() == 4);
    check_no_aliasing(plan);
    const SequenceProjectionCase short_case;
    CHECK(plan_with_kernel(
              prepare_sequence_projection(short_case, make_sequence_projection_problem(short_case))
                  .graph,
              Tier::kBaseline, "linear_attention_state__f32_f32_f32")
              .dispatches.size() == 2);
  }
}

}  // namespace vkformer::testing
