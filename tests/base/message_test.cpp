// Sentences of texts and numbers.
#include "base/message.h"

#include <doctest/doctest.h>

#include <concepts>
#include <cstdint>
#include <limits>

namespace vkformer::testing {
namespace {

enum Unscoped : uint8_t { kNine = 9 };

// What would be a number that nobody means.
static_assert(!std::constructible_from<MessagePart, char>);
static_assert(!std::constructible_from<MessagePart, bool>);
static_assert(!std::constructible_from<MessagePart, Unscoped>);

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a message has its texts and numbers one behind the other") {
    const std::string name = "x";
    CHECK(message({"[", name, std::string_view("] "), uint8_t{7}, -3}) == "[x] 7-3");
    CHECK(message({}).empty());
    CHECK(message({""}).empty());
  }

  TEST_CASE("numbers of a message are whole at both ends of their types") {
    CHECK(message({std::numeric_limits<uint64_t>::max()}) == "18446744073709551615");
    CHECK(message({std::numeric_limits<int64_t>::min()}) == "-9223372036854775808");
    CHECK(message({0.5, " ", 2.0F}) == "0.500000 2.000000");
  }
}

}  // namespace vkformer::testing
