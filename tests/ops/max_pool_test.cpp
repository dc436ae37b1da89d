#include "ops/max_pool.h"

#include "checkpoint/temp_dir.h"
#include "support/operator_check.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("max_pool: windows outside the picture are refused") {
    const auto check = [](const Shape& x, const ConvWindow& window) {
      return check_max_pool({"x", DType::kF32, x}, {.window = window});
    };
    const auto pooled = check({2, 5, 7, 9}, {3, 3, 2, 2, 1, 1});
    REQUIRE(pooled.ok());
    CHECK(pooled->shape == Shape{2, 4 * 5, 5});
    CHECK_FALSE(check({2, 5, 7, 9}, {3, 3, 2, 2, 3, 1}).ok());
    CHECK_FALSE(check({2, 5, 7, 9}, {3, 3, 2, 2, 1, 1, 9, 5}).ok());
    const auto large = check({1, 1, 100, 100}, {80, 80});
    REQUIRE_FALSE(large.ok());
    CHECK(test::contains(large.error().message, "4096"));
  }
}

}  // namespace vkformer::testing
