#include "ops/rotary_table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using ScalingKind = RotaryScalingKind;

RotaryScaling scaling_of(ScalingKind kind, double factor) {
  RotaryScaling s;
  s.kind = kind;
  s.factor = factor;
  return s;
}

// Within rounding of double.
void check_frequencies(const RotaryScaling& s, int64_t length, const std::vector<double>& wanted,
                       double scale) {
  const auto width = static_cast<int64_t>(2 * wanted.size());
  const auto f = rotary_frequencies(s, width, length);
  REQUIRE_MESSAGE(f.ok(), f.error().message);
  REQUIRE(f->radians.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    CHECK(std::abs(f->radians[i] - wanted[i]) <= 1e-13 * wanted[i]);
  }
  CHECK(f->scale == doctest::Approx(scale).epsilon(1e-13));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("rotary_frequencies gives stored ones as they are") {
    RotaryScaling s;
    s.frequencies = {0.75, 0.0, 0.125};
    CHECK(rotary_frequencies(s, 6, 9).value().radians == s.frequencies);
    check_error(rotary_frequencies(s, 8, 9), "rotary_table", "3 frequencies");
  }

  TEST_CASE("rotary_table holds cosines and sines of position times frequency") {
    const RotaryScaling s;
    const std::vector<float> table = rotary_table(s, {70, 6}).value();
    REQUIRE(table.size() == 70 * 6);
    for (size_t p = 0; p < 70; ++p) {
      for (size_t i = 0; i < 3; ++i) {
        const double angle =
            static_cast<double>(p) / std::pow(10000.0, 2.0 * static_cast<double>(i) / 6.0);
        CHECK(std::abs(table[p * 6 + i] - std::cos(angle)) < 1e-7);
        CHECK(std::abs(table[p * 6 + 3 + i] - std::sin(angle)) < 1e-7);
      }
    }
    const std::vector<int64_t> positions = {69, -3, 0};
    const auto rows = rotary_rows(rotary_frequencies(s, 6, 1).value(), positions);
    REQUIRE(rows.size() == 18);
    for (size_t i = 0; i < 6; ++i) CHECK(rows[i] == table[69 * 6 + i]);
    CHECK(rows[6 + 3] == doctest::Approx(-std::sin(3.0)));
    CHECK(rotary_table(s, {0, 6}).value().empty());
  }

  // The numbers of the next three come from transformers 5.12.1, modeling_rope_utils, run in
  // double.
  TEST_CASE("rotary_table scales linearly and dynamically as transformers does") {
    check_frequencies(scaling_of(ScalingKind::kLinear, 4), 5, {0.25, 0.025, 0.0025, 0.00025}, 1);
    RotaryScaling dynamic = scaling_of(ScalingKind::kDynamic, 4);
    dynamic.max_positions = 64;
    check_frequencies(dynamic, 40, {1.0, 0.1, 0.01, 0.001}, 1);
    check_frequencies(dynamic, 100,
                      {1.0, 0.06751063811791637, 0.004557686259088263, 0.00030769230769230776}, 1);
    check_frequencies(dynamic, 100, {1.0}, 1);
  }

  TEST_CASE("rotary_table scales by parts as transformers does: yarn and llama3") {
    RotaryScaling yarn = scaling_of(ScalingKind::kYarn, 4);
    yarn.original_positions = 1024;
    check_frequencies(yarn, 1,
                      {1.0, 0.31622776601683794, 0.08125000000000002, 0.019764235376052368,
                       0.004375, 0.0007905694150420947, 0.00025, 7.905694150420948e-05},
                      1.138629436111989);
    yarn.original_positions = 512;
    yarn.max_positions = 4096;
    yarn.factor.reset();
    yarn.truncate = false;
    yarn.beta_fast = 16;
    yarn.beta_slow = 2;
    yarn.mscale = 0.707;
    yarn.mscale_all_dim = 1.2;
    check_frequencies(yarn, 1,
                      {1.0, 0.31622776601683794, 0.07160846012284262, 0.007324997326294831, 0.00125,
                       0.00039528470752104737, 0.000125, 3.952847075210474e-05},
                      0.9179561730379721);
    RotaryScaling step = scaling_of(ScalingKind::kYarn, 8);  // the ramp has no width
    step.original_positions = 4;
    step.attention_factor = 1.5;
    check_frequencies(step, 1,
                      {1.0, 0.03952847075210474, 0.0125, 0.003952847075210474, 0.00125,
                       0.00039528470752104737, 0.000125, 3.952847075210474e-05},
                      1.5);
    RotaryScaling llama3 = scaling_of(ScalingKind::kLlama3, 8);
    llama3.theta = 500000.0;
    llama3.original_positions = 1024;
    check_frequencies(llama3, 1,
                      {1.0, 0.19392274474868576, 0.03760603093086393, 0.0013125693451919134,
                       0.00017677669529663688, 3.428102195952591e-05, 6.647869871181236e-06,
                       1.2891731721515574e-06},
                      1);
  }

  TEST_CASE("rotary_table takes longrope's divisors by the sequence's length") {
    RotaryScaling s;
    s.kind = ScalingKind::kLongrope;
    s.max_positions = 256;
    s.original_positions = 64;
    s.short_factor = {1.0, 1.1, 1.2, 1.3};
    s.long_factor = {1.0, 2.0, 4.0, 8.0};
    const double scale = 1.1547005383792517;
    check_frequencies(
        s, 64, {1.0, 0.09090909090909091, 0.008333333333333333, 0.0007692307692307692}, scale);
    check_frequencies(s, 65, {1.0, 0.05, 0.0025, 0.000125}, scale);
    s.attention_factor = 2.0;
    check_frequencies(s, 65, {1.0, 0.05, 0.0025, 0.000125}, 2.0);
    s.long_factor.pop_back();
    check_error(rotary_frequencies(s, 8, 65), "rotary_table", "3 numbers");
  }

  TEST_CASE("rotary_table's later rows belong to the length they are generated at") {
    RotaryScaling s = scaling_of(ScalingKind::kDynamic, 2);
    s.max_positions = 4;
    const std::vector<float> table = rotary_table(s, {9, 8, 6}).value();
    for (int64_t p = 0; p < 9; ++p) {
      const auto frequencies = rotary_frequencies(s, 8, std::max<int64_t>(6, p + 1)).value();
      const std::vector<float> row = rotary_rows(frequencies, std::vector<int64_t>{p});
      for (int64_t i = 0; i < 8; ++i) {
        CHECK(table[static_cast<size_t>(p * 8 + i)] == row[static_cast<size_t>(i)]);
      }
    }
  }

  TEST_CASE("rotary_table refuses sizes and numbers without sense") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const RotaryScaling s;
    check_error(rotary_table(s, {4, 7}), "rotary_table", "7");
    check_error(rotary_table(s, {4, 0}), "rotary_table", "0");
    check_error(rotary_table(s, {-1, 8}), "rotary_table", "-1 rows");
    check_error(rotary_table(s, {int64_t{1} << 60, 8}), "rotary_table", "268435456");
    RotaryScaling bad = s;
    bad.theta = nan;
    check_error(rotary_table(bad, {4, 8}), "rotary_table", "theta");
    for (const ScalingKind kind :
         {ScalingKind::kLinear, ScalingKind::kDynamic, ScalingKind::kYarn, ScalingKind::kLlama3}) {
      RotaryScaling scaled = scaling_of(kind, 0);
      scaled.max_positions = 8;
      check_error(rotary_table(scaled, {4, 8}), "rotary_table", "factor");
    }
    RotaryScaling absent;
    absent.kind = ScalingKind::kLinear;
    check_error(rotary_table(absent, {4, 8}), "rotary_table", "factor");
    absent.kind = ScalingKind::kYarn;
    check_error(rotary_table(absent, {4, 8}), "rotary_table", "factor");
    check_error(rotary_table(scaling_of(ScalingKind::kDynamic, 2), {4, 8}), "rotary_table",
                "max_position_embeddings");
    check_error(rotary_table(scaling_of(ScalingKind::kLlama3, 2), {4, 8}), "rotary_table",
                "original_max_position_embeddings");
    CHECK(rotary_scaling_from_name("su").value() == ScalingKind::kLongrope);
    check_error(rotary_scaling_from_name("mrope"), "rotary_table", "'mrope'");
  }
}

}  // namespace vkformer::testing
