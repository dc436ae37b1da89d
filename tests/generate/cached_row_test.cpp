#include "generate/cached_row.h"

#include <doctest/doctest.h>

namespace vkformer::testing {
namespace {

using TokenWords = std::vector<uint32_t>;

CachedRow row_of(const TokenWords& tokens, size_t drafted = 0) {
  CachedRow row;
  for (uint32_t token : tokens) row.append(token);
  row.wrote(tokens.size() + drafted);
  return row;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a row goes on from where a text parts from its own") {
    const CacheReach all{.lines = 100, .ahead = 0};
    const CachedRow row = row_of({4, 5, 6, 7});
    CHECK(row.shared(TokenWords{4, 5, 9}, all) == 2);
    CHECK(row.shared(TokenWords{4, 5, 6, 7, 8}, all) == 4);
    CHECK(row.shared(TokenWords{4}, all) == 1);
    CHECK(row.shared(TokenWords{5, 5}, all) == 0);
    CHECK(row.shared(TokenWords{}, all) == 0);
    CHECK(CachedRow().shared(TokenWords{4}, all) == 0);
  }

  TEST_CASE("a row whose keys were written over goes back only so far") {
    // A window of 4 keys in 7 lines: 3 ahead.
    const CacheReach reach{.lines = 7, .ahead = 3};
    const TokenWords tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const TokenWords six(tokens.begin(), tokens.begin() + 6);
    const TokenWords five(tokens.begin(), tokens.begin() + 5);
    CHECK(row_of({1, 2, 3, 4, 5, 6, 7}).shared(TokenWords{1, 2}, reach) == 2);
    // The query at 6 sees positions 3 to 6; position 10 took the line of 3, position 9 that of 2.
    CHECK(row_of(tokens).shared(six, reach) == 6);
    CHECK(row_of(tokens).shared(five, reach) == 0);
    CHECK(row_of(tokens, 1).shared(six, reach) == 0);
    CachedRow row = row_of(tokens);
    row.trim(6);
    CHECK(row.size() == 6);
    CHECK(row.shared(six, reach) == 6);
    row.trim(0);
    CHECK(row.size() == 0);
    for (uint32_t token : five) row.append(token);
    row.wrote(5);
    CHECK(row.shared(TokenWords{1}, reach) == 1);
  }
}

}  // namespace vkformer::testing
