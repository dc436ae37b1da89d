// Attention by cooperative matrices: every unit that the device lists, forced, against the
// double-precision reference; its table; and the self-check that stands before its use.
#include "ops/attention_units.h"

#include "base/half.h"
#include "driver/matrix_units.h"
#include "ops/attention_cases.h"
#include "ops/blocks_run.h"
#include "params/score_kinds.h"
#include "reference/multi_head_attention.h"
#include "support/matrix_units.h"

namespace vkformer::testing {
namespace {

constexpr KernelId kUnitsKernel = KernelId::attention_units__f32_f32_f32_matrix;
constexpr KernelId kInUnitsKernel = KernelId::attention_units_nv__f32_f32_f32_matrix2;

// The device as GPUs with one of its units only, and if it has VK_NV_cooperative_matrix2, without.
std::vector<DeviceCaps> units_gpus(const VulkanDevice& device) {
  std::vector<DeviceCaps> list;
  for (const MatrixUnit& unit : device.caps().matrix_units) {
    DeviceCaps caps = device.caps();
    caps.device_class = DeviceClass::kDiscrete;
    caps.matrix_units = {unit};
    if (caps.matrix2()) list.push_back(caps);
    caps.has_matrix2 = false;
    list.push_back(caps);
  }
  return list;
}

KernelId kernel_on(const DeviceCaps& caps) {
  const MatrixUnit& unit = caps.matrix_units[0];
  return caps.matrix2() && unit.n == unit.k ? kInUnitsKernel : kUnitsKernel;
}

std::string text_of(const DeviceCaps& caps) {
  return units_text(caps.matrix_units) + (caps.matrix2() ? " with matrix2" : "");
}

float as_half(float value) {
  return float_from_half(half_from_float(value));
}

// Elements that a half can hold become one, so that their products are exact on both sides.
void round_inputs(AttentionProblem& p) {
  for (Tensor* tensor : {&p.q, &p.k, &p.v}) {
    std::vector<float> values = *tensor->to_floats();
    for (float& value : values) {
      if (std::abs(value) <= 65504.0f) value = as_half(value);
    }
    *tensor = Tensor::from_floats(tensor->shape, values);
  }
}

AttentionProblem make_half_problem(const AttentionCase& c) {
  AttentionProblem p = make_problem(c);
  round_inputs(p);
  return p;
}

Tensor run_units(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps,
                 const PreparedOperator& op) {
  return run_kernel(device, caps, op, kernel_on(caps), Precision::kF16);
}

void check_attention_units_problem(const AttentionCase& c, const AttentionProblem& p,
                                   double magnitude = 1) {
  const auto device = units_device();
  if (!device) return;
  const Array expected = reference_outputs(c, p).output;
  Tolerance tolerance = tolerance_for(DType::kF16, c.keys + c.head_width);
  tolerance.absolute *= magnitude;
  for (const DeviceCaps& caps : units_gpus(*device)) {
    INFO(c.text(), " by ", text_of(caps));
    check_close(run_units(device, caps, prepare_attention(c, p)), expected, tolerance);
  }
}

void check_attention_units_case(const AttentionCase& c) {
  check_attention_units_problem(c, make_half_problem(c));
}

// Words of row `row` of the first head.
std::vector<uint32_t> row_words(const Tensor& y, size_t row) {
  const size_t width = static_cast<size_t>(y.shape.back());
  const std::vector<uint32_t> words = words_of(y);
  return {words.begin() + static_cast<std::ptrdiff_t>(row * width),
          words.begin() + static_cast<std::ptrdiff_t>((row + 1) * width)};
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("attention by matrix units over lengths around units, tiles and workgroups") {
    for (const int64_t queries : {9, 16, 17, 31, 33, 65}) {
      for (const int64_t keys : {1, 31, 32, 33, 97}) {
        check_attention_units_case(
            {.queries = queries, .keys = keys, .head_width = 32, .value_width = 32});
      }
    }
  }

  TEST_CASE("attention by matrix units over head widths, which may differ for values") {
    constexpr int64_t kHeadWidths[][2] = {{33, 47}, {64, 64}, {100, 36}, {32, 128}, {128, 128}};
    for (const auto& [head_width, value_width] : kHeadWidths) {
      check_attention_units_case({.batch = 2,
                                  .heads = 6,
                                  .kv_heads = 3,
                                  .queries = 21,
                                  .keys = 45,
                                  .head_width = head_width,
                                  .value_width = value_width});
    }
  }

  TEST_CASE("attention by matrix units with every mask and bias, alone and together") {
    for (const uint32_t terms : {0u, 1u, 2u, 4u, 8u, 15u}) {
      AttentionCase c{.batch = 2,
                      .heads = 2,
                      .kv_heads = 1,
                      .queries = 37,
                      .keys = 70,
                      .head_width = 32,
                      .value_width = 32,
                      .terms = terms};
      check_attention_units_case(c);
      c.masks.causal = true;
      check_attention_units_case(c);
      c.masks.causal_offset = 33;
      c.masks.window_left = 5;
      check_attention_units_case(c);
    }
  }

  TEST_CASE("attention by matrix units with windows that leave tiles and rows empty") {
    AttentionCase c{.queries = 133, .keys = 133, .head_width = 32, .value_width = 32};
    c.masks.causal = true;
    c.masks.window_left = 3;
    check_attention_units_case(c);
    c.masks.causal_offset = -100;
    check_attention_units_case(c);
    c.masks.causal_offset = 5000;
    check_attention_units_case(c);
    c.masks.causal_offset = -5000;
    check_attention_units_case(c);
    c.masks.causal = false;
    c.masks.causal_offset = 0;
    c.masks.window_right = 40;
    check_attention_units_case(c);
  }

  TEST_CASE("attention by matrix units: a query without an allowed key gives zeros") {
    AttentionCase c{.queries = 11,
                    .keys = 40,
                    .head_width = 32,
                    .value_width = 32,
                    .terms = AttentionCase::kKeyMask};
    AttentionProblem p = make_half_problem(c);
    std::fill(p.key_mask->bytes.begin(), p.key_mask->bytes.end(), std::byte{0});
    set_element(p.v, 3, kNan);
    set_element(p.k, 5, kInfinity);
    check_attention_units_problem(c, p);
  }

  TEST_CASE("attention by matrix units: NaN and infinity reach the rows that see them only") {
    for (const float special : {kNan, kInfinity, -kInfinity}) {
      for (const int place : {0, 1, 2}) {
        AttentionCase c{.queries = 50, .keys = 50, .head_width = 32, .value_width = 32};
        c.masks.causal = true;
        AttentionProblem p = make_half_problem(c);
        // Element 2 of token 37 of q, k or v.
        set_element(place == 0 ? p.q : place == 1 ? p.k : p.v, 37 * 32 + 2, special);
        INFO("special ", special, " in ", place);
        check_attention_units_problem(c, p);
      }
    }
  }

  TEST_CASE("attention by matrix units multiplies what is beyond f16 as f32") {
    const auto device = units_device();
    if (!device) return;
    const AttentionCase c{
        .queries = 40, .keys = 70, .head_width = 40, .value_width = 36, .scale = 1e-6f};
    const AttentionProblem plain = make_half_problem(c);
    AttentionProblem p = plain;
    set_element(p.q, 7 * 40 + 39, 2e6f);
    set_element(p.k, 66 * 40 + 3, -3e6f);
    check_attention_units_problem(c, p);
    set_element(p.v, 69 * 36 + 35, 1e30f);
    set_element(p.v, 2 * 36, -65520.0f);
    check_attention_units_problem(c, p, 1e28);
    // Queries that meet nothing of that size have the bits that they had.
    for (const DeviceCaps& caps : units_gpus(*device)) {
      p = plain;
      set_element(p.q, 7 * 40 + 39, 2e6f);
      const Tensor wide = run_units(device, caps, prepare_attention(c, p));
      const Tensor narrow = run_units(device, caps, prepare_attention(c, plain));
      for (const size_t row : {0u, 6u, 8u, 39u}) {
        CHECK(row_words(wide, row) == row_words(narrow, row));
      }
    }
  }

  TEST_CASE("attention by matrix units with temperatures, large scores and a soft cap") {
    for (const float temperature : {1e-3f, 1e3f}) {
      check_attention_units_case({.queries = 9,
                                  .keys = 66,
                                  .head_width = 32,
                                  .value_width = 32,
                                  .temperature = temperature});
    }
    check_attention_units_case(
        {.queries = 9, .keys = 66, .head_width = 32, .value_width = 32, .spread = 30.0f});
    const auto device = units_device();
    if (!device) return;
    const AttentionCase c{.queries = 20, .keys = 35, .head_width = 32, .value_width = 32};
    const AttentionProblem p = make_half_problem(c);
    reference::AttentionOptions options;
    options.softcap = 0.4;
    const auto expected =
        reference::attention_weights(*reference::from_tensor(p.q), *reference::from_tensor(p.k),
                                     *reference::from_tensor(p.v), options);
    REQUIRE(expected.ok());
    for (const DeviceCaps& caps : units_gpus(*device)) {
      check_close(run_units(device, caps, prepare_attention(c, p, 0.4f)), expected->output,
                  tolerance_for(DType::kF16, 67));
    }
  }

  TEST_CASE("a row of attention by matrix units has the same bits whatever else there is") {
    const auto device = units_device();
    if (!device) return;
    AttentionCase c{.queries = 70, .keys = 70, .head_width = 32, .value_width = 32};
    c.masks.causal = true;
    c.masks.window_left = 40;
    const AttentionProblem all = make_half_problem(c);
    for (const DeviceCaps& caps : units_gpus(*device)) {
      const Tensor whole = run_units(device, caps, prepare_attention(c, all));
      for (const int64_t tokens : {9, 16, 35, 69}) {
        AttentionCase fewer = c;
        fewer.queries = fewer.keys = tokens;
        AttentionProblem p = all;
        for (Tensor* tensor : {&p.q, &p.k, &p.v}) {
          tensor->shape[2] = tokens;
          tensor->bytes.resize(static_cast<size_t>(tokens) * 32 * 4);
        }
        const Tensor part = run_units(device, caps, prepare_attention(fewer, p));
        for (size_t row = 0; row < static_cast<size_t>(tokens); ++row) {
          CAPTURE(row);
          CHECK(row_words(part, row) == row_words(whole, row));
        }
      }
    }
  }

  TEST_CASE("attention whose matrix units compute wrongly fails its self-check and is left out") {
    const auto device = units_device();
    if (!device) return;
    for (const bool matrix2 : {false, true}) {
      if (matrix2 && !device->caps().matrix2()) continue;
      CAPTURE(matrix2);
      check_self_check(
          matrix2 ? kInUnitsKernel : kUnitsKernel, 16384,
          [](const DeviceCaps& caps) {
            const AttentionCase c{.queries = 20, .keys = 20, .head_width = 32, .value_width = 32};
            const PreparedOperator op = prepare_attention(c, make_half_problem(c));
            const auto plan = make_plan(op.graph, caps, Precision::kF16);
            REQUIRE(plan.ok());
            return plan->dispatches.at(0).kernel;
          },
          [&](DeviceCaps& caps) { caps.has_matrix2 = matrix2; });
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("attention of halves takes matrix units on GPUs that have them, the largest first") {
    const DeviceCaps caps = caps_with_units({{16, 8, 8}, {16, 16, 16}, {16, 8, 16}});
    const auto pick = [&](const DeviceCaps& on, auto change) {
      AttentionCase c{.queries = 200, .keys = 200, .head_width = 64, .value_width = 64};
      AttentionAttrs a = make_attrs(c, no_score_terms());
      Precision precision = Precision::kF16;
      change(a, precision);
      return attention_units(on, a, precision);
    };
    using A = AttentionAttrs;
    const auto same = [](A&, Precision&) {};
    CHECK(pick(caps, same) == AttentionUnits{{16, 16, 16}, 4, 2});
    CHECK(pick(caps, [](A& a, Precision&) { a.queries = 20; })->subgroups == 2);
    CHECK(pick(caps, [](A& a, Precision&) { a.queries = 9; })->subgroups == 1);
    DeviceCaps second = caps;
    second.has_matrix2 = true;
    CHECK(pick(second, same) == AttentionUnits{{16, 16, 16}, 4, 1, true});
    second.matrix_units = {{16, 8, 16}};
    CHECK_FALSE(pick(second, same)->in_units);
    CHECK_FALSE(pick(caps, [](A& a, Precision&) { a.queries = 8; }));
    CHECK_FALSE(pick(caps, [](A&, Precision& p) { p = Precision::kF32; }));
    CHECK_FALSE(pick(caps, [](A& a, Precision&) { a.head_width = 129; }));
    CHECK_FALSE(pick(caps, [](A& a, Precision&) { a.value_width = 31; }));
    CHECK_FALSE(pick(caps, [](A& a, Precision&) { a.relative.kinds = VKF_RELATIVE_KEYS; }));
    CHECK_FALSE(pick(caps, [](A& a, Precision&) { a.report = A::Report::kVisitedKeys; }));
    CHECK_FALSE(pick(caps, [](A& a, Precision&) { a.terms.flags |= VKF_TERM_DOCUMENTS; }));
    second = caps;
    second.has_matrix2 = true;
    second.demoted = {KernelId::attention_units_nv__f32_f32_f32_matrix2};
    CHECK(pick(second, same) == AttentionUnits{{16, 16, 16}, 4, 2});
    second.demoted.push_back(KernelId::attention_units__f32_f32_f32_matrix);
    CHECK_FALSE(pick(second, same));
    DeviceCaps other = caps;
    other.tier = Tier::kFp16;
    CHECK_FALSE(pick(other, same));
    other = caps;
    other.device_class = DeviceClass::kSoftware;
    CHECK_FALSE(pick(other, same));
    // Fewer queries share a tile of keys where shared memory holds no more of them.
    other = caps;
    other.limits.max_shared_bytes = 28672;
    CHECK(pick(other, same)->subgroups == 2);
    other.limits.max_shared_bytes = 1024;
    CHECK_FALSE(pick(other, same));
    other = caps;
    other.limits.max_invocations = 64;
    CHECK(pick(other, same)->subgroups == 2);
    CHECK_FALSE(pick(caps_with_units({{64, 64, 64}, {3, 3, 3}, {0, 0, 0}, {16, 16, 0}}), same));
  }

  TEST_CASE("attention by matrix units: every lane of every subgroup has a part of a row") {
    for (const uint32_t subgroup : {4u, 8u, 16u, 32u, 64u}) {
      for (const MatrixUnit& unit :
           {MatrixUnit{16, 16, 16}, {8, 8, 16}, {8, 16, 16}, {16, 8, 8}, {8, 8, 8}, {32, 8, 16}}) {
        DeviceCaps caps = caps_with_units({unit});
        caps.unit_lanes = subgroup;
        const AttentionCase c{.queries = 99, .keys = 70, .head_width = 96, .value_width = 80};
        const AttentionAttrs a = make_attrs(c, no_score_terms());
        const auto units = attention_units(caps, a, Precision::kF16);
        REQUIRE(units);
        Dispatch d;
        d.set_constants(attention_units_spec(caps, a, *units));
        const auto fields = d.constants_as<AttentionUnitsConstants>();
        CHECK(fields.local_size == fields.subgroups * subgroup);
        CHECK(units->rows() == fields.subgroups * unit.m);
        const uint32_t step = subgroup / units->parts;
        CHECK(step * units->parts == subgroup);
        CHECK(unit.m % step == 0);
      }
    }
  }
}

}  // namespace vkformer::testing
