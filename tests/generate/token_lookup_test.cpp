#include "generate/token_lookup.h"

#include <doctest/doctest.h>

namespace vkformer::testing {

using TokenWords = std::vector<uint32_t>;

TEST_SUITE("cpu") {
  TEST_CASE("what followed the same words is the draft") {
    CHECK(look_up_tokens(TokenWords{1, 2, 3, 4, 1, 2}, 3, 2) == TokenWords{3, 4});
    CHECK(look_up_tokens(TokenWords{1, 2, 3, 4, 1, 2}, 3, 9) == TokenWords{3, 4, 1, 2});
    CHECK(look_up_tokens(TokenWords{7, 7, 7}, 4, 3) == TokenWords{7});
    CHECK(look_up_tokens(TokenWords{1, 2, 3}, 3, 3).empty());
    CHECK(look_up_tokens(TokenWords{1}, 3, 3).empty());
    CHECK(look_up_tokens(TokenWords{}, 3, 3).empty());
    CHECK(look_up_tokens(TokenWords{1, 1}, 0, 3).empty());
    CHECK(look_up_tokens(TokenWords{1, 1}, 3, 0).empty());
  }

  TEST_CASE("more agreement is better, then the later place") {
    // 5 2 agrees on two tokens, the later 2 on one.
    CHECK(look_up_tokens(TokenWords{5, 2, 8, 6, 2, 9, 5, 2}, 3, 1) == TokenWords{8});
    CHECK(look_up_tokens(TokenWords{5, 2, 8, 6, 2, 9, 5, 2}, 1, 1) == TokenWords{9});
    CHECK(look_up_tokens(TokenWords{3, 8, 3, 9, 3}, 2, 1) == TokenWords{9});
  }
}

}  // namespace vkformer::testing
