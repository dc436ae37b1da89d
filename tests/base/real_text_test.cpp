// Real numbers as text: without the standard library's function the result is the same.
#include "base/real_text.h"

#include <doctest/doctest.h>

#include <charconv>
#include <string>

using namespace vkformer;

TEST_SUITE("cpu") {
  TEST_CASE("real numbers: a stream reads what from_chars reads") {
    for (const std::string text : {"0",
                                   "-0",
                                   "1",
                                   "-1.5",
                                   "3.",
                                   ".5",
                                   "1e3",
                                   "1e+3",
                                   "1E-3",
                                   "1e",
                                   "1e+",
                                   "1.5e3x",
                                   "12,5",
                                   "0.1",
                                   "1.7976931348623157e308",
                                   "2.2250738585072014e-308",
                                   "123456789012345678901234567890",
                                   "",
                                   "-",
                                   ".",
                                   "-.",
                                   "e5",
                                   "+1",
                                   " 1",
                                   "x",
                                   "1e400",
                                   "-1e400",
                                   "1 2"}) {
      CAPTURE(text);
      const char* begin = text.data();
      const char* end = begin + text.size();
      double expected = 7;
      double found = 7;
      const auto right = std::from_chars(begin, end, expected);
      const auto read = read_real_by_stream(begin, end, found);
      CHECK(read.ec == right.ec);
      CHECK(read.ptr == right.ptr);
      CHECK(found == expected);
      double chosen = 7;
      CHECK(read_real(begin, end, chosen).ptr == right.ptr);
      CHECK(chosen == expected);
    }
  }
}
