#include "json/json_tree.h"

#include <doctest/doctest.h>

namespace vkformer {
namespace {

std::string text_of(const std::string& json) {
  const auto tree = parse_json_tree(json, "doc");
  REQUIRE_MESSAGE(tree.ok(), tree.error().message);
  REQUIRE(tree->is_string());
  return tree->text;
}

std::string refusal(const std::string& json) {
  const auto tree = parse_json_tree(json, "doc");
  REQUIRE_FALSE(tree.ok());
  return tree.error().message;
}

bool says(const std::string& message, const char* part) {
  return message.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("json trees: escapes of strings") {
    CHECK(text_of(R"("\"\\\/\b\f\n\r\t")") == "\"\\/\b\f\n\r\t");
    CHECK(text_of(R"("\u0041\u00e9\u20AC")") == "A\xC3\xA9\xE2\x82\xAC");
    // A pair of surrogates is one character.
    CHECK(text_of(R"("\ud83d\ude00")") == "\xF0\x9F\x98\x80");
    CHECK(says(refusal(R"("\ud83d")"), "surrogate"));
    CHECK(says(refusal(R"("\ud83d\u0041")"), "surrogate"));
    CHECK(says(refusal(R"("\ude00")"), "surrogate"));
    CHECK(says(refusal(R"("\u12g4")"), "four digits"));
    CHECK(says(refusal(R"("\u12)"), "four digits"));
    CHECK(says(refusal(R"("\x41")"), "unknown escape"));
  }

  TEST_CASE("json trees: numbers keep their kind and their range") {
    const auto tree =
        parse_json_tree("[0, -7, 2.5, 1e3, 9223372036854775807, 92233720368547758070]", "doc");
    REQUIRE_MESSAGE(tree.ok(), tree.error().message);
    REQUIRE(tree->items.size() == 6);
    using Type = JsonTree::Type;
    CHECK(tree->items[0].type == Type::kInteger);
    CHECK(tree->items[1].integer == -7);
    CHECK(tree->items[2].type == Type::kNumber);
    CHECK(tree->items[2].number == 2.5);
    CHECK(tree->items[3].type == Type::kNumber);
    CHECK(tree->items[3].number == 1000);
    CHECK(tree->items[4].integer == INT64_MAX);
    CHECK(tree->items[5].type == Type::kNumber);
    CHECK(says(refusal("1e999"), "out of range"));
    for (const char* wrong : {"-", "1.", "1e", "+1", ".5", "nul", ""}) {
      CAPTURE(wrong);
      CHECK(says(refusal(wrong), "doc"));
    }
  }

  TEST_CASE("json trees: of members with one key the last counts, at the first one's place") {
    const auto tree = parse_json_tree(R"({"a": 1, "b": 2, "a": [3]})", "doc");
    REQUIRE_MESSAGE(tree.ok(), tree.error().message);
    REQUIRE(tree->members.size() == 2);
    CHECK(tree->members[0].first == "a");
    CHECK(tree->find("a")->items.front().integer == 3);
    CHECK(says(refusal(R"({"a" 1})"), "':'"));
    CHECK(says(refusal(R"({a: 1})"), "name of a member"));
    CHECK(says(refusal("[1 2]"), "','"));
    CHECK(says(refusal("[1] 2"), "doc"));
  }
}

}  // namespace vkformer
