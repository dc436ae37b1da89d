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
    CHECK(message({0.5, " ", 2.0F}) == "0.5 2");
  }

  TEST_CASE("real numbers of a message can be told from each other, and from zero") {
    CHECK(message({1e-12, " ", 1e-5F, " ", -1e-9}) == "1e-12 1e-05 -1e-09");
    CHECK(message({0.1, " ", 0.1F, " ", 1.0 / 3}) == "0.1 0.1 0.3333333333333333");
    CHECK(message({1e9, " ", 16777217.0, " ", 1e300}) == "1000000000 16777217 1e+300");
    CHECK(message({0.0001F, " ", 0.9999999999}) == "0.0001 0.9999999999");
    CHECK(message({0.0, " ", std::numeric_limits<double>::infinity(), " ",
                   -std::numeric_limits<float>::infinity()}) == "0 inf -inf");
    CHECK(message({std::numeric_limits<double>::quiet_NaN()}) == "nan");
    CHECK(number_text(std::numeric_limits<double>::max()) == "1.7976931348623157e+308");
    CHECK(number_text(std::numeric_limits<float>::denorm_min()) == "1e-45");
  }
}

}  // namespace vkformer::testing
