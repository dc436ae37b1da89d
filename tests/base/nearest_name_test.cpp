#include "base/nearest_name.h"

#include <doctest/doctest.h>

#include <vector>

using vkformer::nearest_name;

TEST_SUITE("cpu") {
  TEST_CASE("nearest name: the fewest edits win, the first of equal ones") {
    const std::vector<std::string> known = {"attention_mask", "input_ids", "position_ids",
                                            "token_type_ids"};
    CHECK(nearest_name("attention_masks", known) == "attention_mask");
    CHECK(nearest_name("inputs_id", known) == "input_ids");
    CHECK(nearest_name("ids", known) == "input_ids");
    CHECK(nearest_name("tokentypeids", known) == "token_type_ids");
    CHECK(nearest_name("", known) == "input_ids");
    CHECK(nearest_name("input_ids", known) == "input_ids");
    const std::vector<std::string> equal = {"ab", "ac"};
    CHECK(nearest_name("a", equal) == "ab");
    CHECK(nearest_name("x", {}).empty());
  }

  TEST_CASE("nearest name: names of any length are compared by their beginnings") {
    const std::vector<std::string> known = {std::string(1 << 16, 'a'), "b"};
    CHECK(nearest_name(std::string(1 << 20, 'b'), known) == "b");
    CHECK(nearest_name(std::string(1 << 20, 'a'), known) == known[0]);
  }
}
