#include "ops/resize_grid.h"

#include "checkpoint/temp_dir.h"
#include "support/operator_check.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("resize_grid: grids that do not fit are refused") {
    const auto check = [](const Shape& x, const ResizeGridAttrs& attrs) {
      return check_resize_grid({"x", DType::kF32, x}, attrs);
    };
    const auto resized = check({2, 12, 5}, {3, 4, 6, 7});
    REQUIRE(resized.ok());
    CHECK(resized->shape == Shape{2, 42, 5});
    for (const ResizeGridAttrs& attrs : {ResizeGridAttrs{3, 5, 6, 7}, ResizeGridAttrs{3, 4, 0, 7},
                                         ResizeGridAttrs{3, 4, 6, 1u << 20}}) {
      const auto refused = check({2, 12, 5}, attrs);
      REQUIRE_FALSE(refused.ok());
      CHECK(test::contains(refused.error().message, "[resize_grid]"));
    }
    CHECK_FALSE(check({12, 5}, {3, 4, 6, 7}).ok());
    constexpr auto kHalves = ResizeGridAttrs::Corners::kHalves;
    CHECK(check({2, 15, 7}, {3, 5, 2, 3, kHalves})->shape == Shape{2, 6, 7});
    const auto wrong = check({2, 15, 7}, {3, 5, 1, 2, kHalves});
    REQUIRE_FALSE(wrong.ok());
    CHECK(test::contains(wrong.error().message, "leave 2x3"));
  }
}

}  // namespace vkformer::testing
