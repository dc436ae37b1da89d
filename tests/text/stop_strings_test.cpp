#include "vkformer/stop_strings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace vkformer {
namespace {

// A text in pieces of these sizes, one after the other and over again.
std::string cut(const std::string& text, const std::vector<std::string>& stops,
                const std::vector<size_t>& sizes, bool& stopped) {
  StopStrings strings(stops);
  std::string result;
  size_t at = 0;
  for (size_t i = 0; at < text.size(); ++i) {
    const size_t n = std::min(sizes[i % sizes.size()], text.size() - at);
    result += strings.push(text.substr(at, n));
    at += n;
  }
  stopped = strings.stopped();
  return result + strings.finish();
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("stop strings end a text wherever its pieces are cut") {
    const std::vector<std::string> stops = {"\n\n", "END", "aab", ""};
    const std::pair<std::string, std::string> texts[] = {{"one\n\ntwo", "one"},
                                                         {"one\ntwo", "one\ntwo"},
                                                         {"the ENEND", "the EN"},
                                                         {"aaab", "a"},
                                                         {"aaaa", "aaaa"},
                                                         {"", ""},
                                                         {"END", ""},
                                                         {"half an EN", "half an EN"}};
    for (const auto& [bound_text, expected] : texts) {
      const auto& text = bound_text;
      CAPTURE(text);
      for (const std::vector<size_t>& sizes : {std::vector<size_t>{1}, {2}, {3}, {1, 4}, {100}}) {
        bool stopped = false;
        CHECK(cut(text, stops, sizes, stopped) == expected);
        CHECK(stopped == (text != expected));
      }
    }
  }

  TEST_CASE("stop strings: the earliest one in a text, of random ones") {
    std::mt19937 engine(5);
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (int i = 0; i < 24; ++i) text += static_cast<char>('a' + engine() % 2);
      std::vector<std::string> stops(1 + engine() % 3);
      size_t first = std::string::npos;
      for (std::string& stop : stops) {
        for (size_t i = 0; i < 3 + engine() % 4; ++i) {
          stop += static_cast<char>('a' + engine() % 2);
        }
        first = std::min(first, text.find(stop));
      }
      bool stopped = false;
      const std::string got = cut(text, stops, {1 + engine() % 5, 1 + engine() % 3}, stopped);
      CHECK(stopped == (first != std::string::npos));
      bool again = false;
      CHECK(got == cut(text, stops, {1}, again));
      CHECK(got == cut(text, stops, {24}, again));
      CHECK(text.starts_with(got));
      if (!stopped) CHECK(got == text);
      for (const std::string& stop : stops) CHECK(got.find(stop) == std::string::npos);
    }
  }
}

}  // namespace vkformer
