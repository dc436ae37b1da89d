// Precompiled character maps, made here in SentencePiece's layout, and the Nmt normalizer.
#include "text/precompiled.h"

#include <map>

#include "text/tokenizer_files.h"
#include "unicode/utf8.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

void append_word(std::string& bytes, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
}

std::string base64(const std::string& bytes) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = at; i < at + 3; ++i) {
      group = group << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += at + i > bytes.size() ? '=' : digits[group >> (18 - 6 * i) & 63];
    }
  }
  return text;
}

// The children of node n lie in the 256 places from 256 * (n + 1), each at the place of its byte. A
// leaf is at place 0.
std::string character_map(const std::map<std::string, std::string>& entries) {
  struct Node {
    std::map<unsigned char, size_t> next;
    uint32_t place = 0;
    int64_t value = -1;
  };
  std::vector<Node> nodes(1);
  std::string replacements;
  for (const auto& [from, to] : entries) {
    size_t node = 0;
    for (const char c : from) {
      const auto byte = static_cast<unsigned char>(c);
      if (!nodes[node].next.contains(byte)) {
        nodes[node].next[byte] = nodes.size();
        nodes.push_back({{}, static_cast<uint32_t>(256 * (node + 1) + byte)});
      }
      node = nodes[node].next[byte];
    }
    nodes[node].value = static_cast<int64_t>(replacements.size());
    replacements += to + '\0';
  }
  std::vector<uint32_t> units(256 * (nodes.size() + 1), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto children = static_cast<uint32_t>(256 * (i + 1));
    units[nodes[i].place] = (nodes[i].place ^ children) << 10 | (nodes[i].place & 0xFF) |
                            (nodes[i].value < 0 ? 0 : 0x100);
    if (nodes[i].value >= 0) units[children] = 0x80000000u | static_cast<uint32_t>(nodes[i].value);
  }
  std::string bytes;
  append_word(bytes, static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units) append_word(bytes, unit);
  return bytes + replacements;
}

nlohmann::json precompiled(const std::string& bytes) {
  return {{"type", "Precompiled"}, {"precompiled_charsmap", base64(bytes)}};
}

struct Normalized {
  std::string text;
  Ranges ranges;

  bool operator==(const Normalized&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Normalized& value) {
  out << '"' << value.text << '"';
  for (const auto& [begin, end] : value.ranges) out << ' ' << begin << '-' << end;
  return out;
}

Normalized normalize(const nlohmann::json& normalizer, const std::string& text) {
  const auto made = parse_normalizer(JsonRef(normalizer, "normalizer"));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  AlignedText aligned(decode_utf8(text, "text").value());
  const Status done = (*made)->apply(aligned);
  REQUIRE_MESSAGE(done.ok(), (done.ok() ? std::string() : done.error().message));
  Normalized out{encode_utf8(aligned.chars()), {}};
  for (size_t i = 0; i < aligned.size(); ++i) {
    const CharSpan range = aligned.original_range(i, i + 1);
    out.ranges.emplace_back(range.begin, range.end);
  }
  return out;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("precompiled: characters and clusters") {
    const auto map = precompiled(character_map({{"ﬁ", "fi"},
                                                {"\t", " "},
                                                {"\r\n", " "},
                                                {"e\u0301", "é"},
                                                {"\u200b", ""},
                                                {"ｶ", "カ"},
                                                {"㎏", "kg"}}));
    CHECK(normalize(map, "plain").text == "plain");
    CHECK(normalize(map, "").text.empty());
    CHECK(normalize(map, "ﬁn") == Normalized{"fin", {{0, 1}, {0, 1}, {1, 2}}});
    CHECK(normalize(map, "a\tb\r\nc") ==
          Normalized{"a b c", {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {5, 6}}});
    CHECK(normalize(map, "xe\u0301y") == Normalized{"xéy", {{0, 1}, {1, 2}, {3, 4}}});
    CHECK(normalize(map, "a\u200bb") == Normalized{"ab", {{0, 1}, {2, 3}}});
    CHECK(normalize(map, "ｶ5㎏").text == "カ5kg");
    CHECK(normalize(map, "\r").text == "\r");
    CHECK(normalize(map, "e").text == "e");
  }

  TEST_CASE("precompiled: the shortest match stands for a whole short cluster") {
    // The rule that published tokenizers are made with, odd as it is: "e" alone is mapped. So the
    // mark after it is swallowed, as long as both have fewer than 6 bytes.
    const auto map = precompiled(character_map({{"e", "E"}, {"e\u0301", "é"}, {"\u0301", "'"}}));
    CHECK(normalize(map, "e\u0301") == Normalized{"E", {{0, 1}}});
    CHECK(normalize(map, "e\u0301\u0302") == Normalized{"E", {{0, 1}}});
    CHECK(normalize(map, "e\u0301\u0302\u0303").text == "E'\u0302\u0303");
    CHECK(normalize(map, "ee").text == "EE");
    CHECK(normalize(map, "\u0301").text == "'");
    // NUL is no part of any entry.
    CHECK(normalize(map, std::string("\0e", 2)).text == std::string("\0E", 2));
  }

  TEST_CASE("precompiled: an empty trie maps nothing") {
    CHECK(normalize({{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAAA=="}}, "aé").text ==
          "aé");
  }

  TEST_CASE("precompiled: damaged maps are errors") {
    const auto fails = [](const nlohmann::json& text, const std::string& says) {
      const nlohmann::json file = {{"type", "Precompiled"}, {"precompiled_charsmap", text}};
      const auto made = parse_normalizer(JsonRef(file, "normalizer"));
      REQUIRE_FALSE(made.ok());
      CHECK(made.error().code == ErrorCode::kInvalidFile);
      CHECK_MESSAGE(made.error().message.find(says) != std::string::npos, made.error().message);
    };
    fails(nullptr, "precompiled_charsmap");
    fails(5, "string");
    fails("", "no room");
    fails("AAAA", "no room");
    fails("BAAAAAAAAAA", "base64");
    fails("B*AAAAAAAAA=", "base64");
    fails("B===", "base64");
    fails("CAAAAAAAAAA=", "2 units");
    fails(base64(std::string("\0\0\0\0\xff", 5)), "UTF-8");
    fails("/////wAAAAA=", "units");
  }

  TEST_CASE("precompiled: a map that leads astray is an error when it is followed, never a crash") {
    const std::string good = character_map({{"a", "b"}, {"é", "e"}, {"ﬁ", "fi"}});
    uint32_t state = 3;
    const auto draw = [&](size_t below) {
      state = state * 1664525 + 1013904223;
      return (state >> 8) % below;
    };
    int failures = 0;
    for (int round = 0; round < 2000; ++round) {
      std::string bytes = good;
      // Places with content are rare, so most changes go there.
      for (int i = 0; i < 4; ++i) {
        size_t at = draw(bytes.size());
        while (bytes[at] == 0 && at + 1 < bytes.size()) ++at;
        bytes[at] = static_cast<char>(draw(256));
      }
      const nlohmann::json file = precompiled(bytes);
      const auto made = parse_normalizer(JsonRef(file, "normalizer"));
      if (!made.ok()) {
        ++failures;
        continue;
      }
      AlignedText text(decode_utf8("abc é ﬁ a\u0301 \r\n 字", "text").value());
      const Status done = (*made)->apply(text);
      if (!done.ok()) {
        ++failures;
        CHECK(done.error().code != ErrorCode::kInternal);
      }
    }
    CHECK(failures > 100);
    CHECK(failures < 2000);
  }

  TEST_CASE("nmt: control characters go, special spaces become plain") {
    const nlohmann::json nmt = {{"type", "Nmt"}};
    CHECK(normalize(nmt, "a\x01\x7f\u008f b") == Normalized{"a b", {{0, 1}, {4, 5}, {5, 6}}});
    CHECK(normalize(nmt, "a\t\n\r\f\u200b\u200d\ufeff\ufffd\u2581z").text == "a         z");
    CHECK(normalize(nmt, "\u2028\u1680\u2029").text == "   ");
    CHECK(normalize(nmt, std::string("a\0b\x0b", 4)).text == std::string("a\0b", 3));
    CHECK(normalize(nmt, "plain é").text == "plain é");
  }
}
