#include "ops/sinusoidal_positions.h"

#include <cmath>

#include "reference/sinusoidal_positions.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

void check_sinusoidal_positions_case(const SinusoidalAttrs& attrs) {
  const auto table = sinusoidal_positions(attrs);
  REQUIRE(table.ok());
  reference::SinusoidalPositionsOptions options;
  options.length = attrs.length;
  options.width = attrs.width;
  options.offset = attrs.offset;
  if (attrs.layout == SinusoidalLayout::kHalves) {
    options.layout = reference::SinusoidLayout::kHalves;
  }
  if (attrs.spacing == SinusoidalSpacing::kHalfMinusOne) {
    options.spacing = reference::SinusoidSpacing::kHalfMinusOne;
  }
  check_close(Tensor::from_floats({attrs.length, attrs.width}, *table),
              reference::sinusoidal_positions(options).value(), {1e-7, 1e-7});
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("sinusoidal_positions agrees with the reference in every layout and spacing") {
    for (const auto layout : {SinusoidalLayout::kInterleaved, SinusoidalLayout::kHalves}) {
      for (const auto spacing :
           {SinusoidalSpacing::kTransformer, SinusoidalSpacing::kHalfMinusOne}) {
        for (int64_t width : {1, 2, 4, 5, 15, 24, 512})
          check_sinusoidal_positions_case({65, width, 2, layout, spacing});
      }
    }
  }

  TEST_CASE("sinusoidal_positions of an odd width has one sine more than cosines") {
    const double last = std::pow(10000.0, -4.0 / 5.0);
    const SinusoidalAttrs pairs{4, 5, 0, SinusoidalLayout::kInterleaved};
    const std::vector<float> paired = sinusoidal_positions(pairs).value();
    REQUIRE(paired.size() == 20);
    CHECK(paired[5 * 3 + 1] == doctest::Approx(std::cos(3.0)));
    CHECK(paired[5 * 3 + 4] == doctest::Approx(std::sin(3.0 * last)));
    const SinusoidalAttrs stacked{4, 5, 0, SinusoidalLayout::kHalves};
    const std::vector<float> halved = sinusoidal_positions(stacked).value();
    REQUIRE(halved.size() == 20);
    CHECK(halved[5 * 3 + 2] == doctest::Approx(std::sin(3.0 * last)));
    CHECK(halved[5 * 3 + 3] == doctest::Approx(std::cos(3.0)));
    CHECK(sinusoidal_positions({0, 8}).value().empty());
  }

  TEST_CASE("sinusoidal_positions in fairseq's spacing pads an odd width with a zero column") {
    for (const auto layout : {SinusoidalLayout::kInterleaved, SinusoidalLayout::kHalves}) {
      const SinusoidalAttrs attrs{4, 5, 0, layout, SinusoidalSpacing::kHalfMinusOne};
      const std::vector<float> table = sinusoidal_positions(attrs).value();
      REQUIRE(table.size() == 20);
      for (size_t p = 0; p < 4; ++p) CHECK(table[p * 5 + 4] == 0.0f);
      CHECK(table[5] == doctest::Approx(std::sin(1.0)));
    }
  }

  TEST_CASE("sinusoidal_positions refuses sizes without sense") {
    check_error(sinusoidal_positions({-1, 4}), "sinusoidal_positions", "-1 rows");
    check_error(sinusoidal_positions({int64_t{1} << 40, int64_t{1} << 40}), "sinusoidal_positions",
                "33554432");
  }
}

}  // namespace vkformer::testing
