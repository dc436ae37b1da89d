// The byte alphabet, the steps of type ByteLevel, and the decoders of byte-pair files.
#include "text/byte_level.h"

#include <nlohmann/json.hpp>
#include <set>

#include "text/tokenizer_files.h"
#include "unicode/utf8.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

// A file with a token per byte, and merges of spaces (up to three), of " a" and of "ab".
json byte_level_file(const std::string& pre_tokenizer, const std::string& post_processor) {
  json file = json::parse(tokenizer_json({}));
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[encode_utf8(std::u32string(1, byte_level_char(static_cast<uint8_t>(byte))))] = byte;
  }
  const std::string space = "\u0120";
  const std::vector<std::pair<std::string, std::string>> merges = {
      {space, space}, {space + space, space}, {"a", "b"}, {space, "a"}, {"\u00C3", "\u00A9"}};
  for (const auto& [left, right] : merges) {
    const int id = static_cast<int>(vocab.size());
    vocab[left + right] = id;
  }
  file["model"] = {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}};
  file["pre_tokenizer"] = json::parse(pre_tokenizer);
  file["post_processor"] = json::parse(post_processor);
  file["decoder"] = {{"type", "ByteLevel"}};
  return file;
}

std::string byte_level(const char* prefix, const char* trim, const char* regex = "true") {
  return std::string(R"({"type": "ByteLevel", "add_prefix_space": )") + prefix +
         R"(, "trim_offsets": )" + trim + R"(, "use_regex": )" + regex + "}";
}

Tokenizer parsed(const json& file) {
  auto made = Tokenizer::parse(file.dump());
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return std::move(made).value();
}

Strings decoded_pieces(const std::string& decoder, const Strings& tokens) {
  const json document = json::parse(decoder);
  const auto made = parse_decoder(JsonRef(document, "decoder"));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  const auto out = (*made)->decode(tokens);
  REQUIRE(out.ok());
  return *out;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("byte level: every byte has a visible character of its own") {
    std::set<char32_t> chars;
    for (int i = 0; i < 256; ++i) {
      const auto byte = static_cast<uint8_t>(i);
      const char32_t c = byte_level_char(byte);
      chars.insert(c);
      CHECK(byte_level_byte(c) == byte);
    }
    CHECK(chars.size() == 256);
    CHECK(*chars.begin() == U'!');
    CHECK(*chars.rbegin() == 0x143);
    CHECK(byte_level_char(' ') == 0x120);
    CHECK(byte_level_char('\n') == 0x10A);
    CHECK(byte_level_char('a') == U'a');
    CHECK(byte_level_char(0xAD) == 0x143);
    for (const char32_t c : {U' ', U'\0', U'\u00A0', U'\u00AD', U'\u0144', U'\U0010FFFF'}) {
      CHECK_FALSE(byte_level_byte(c).has_value());
    }
  }

  TEST_CASE("byte level: the tokens of one character all have its range") {
    const Tokenizer tokenizer = parsed(byte_level_file(byte_level("false", "true"), "null"));
    const Encoding encoding = encoded(tokenizer, "a\u4E2D\u00E9\U0001F600 \u00E9");
    CHECK(encoding.tokens == Strings{"a", "\u00E4", "\u00B8", "\u0143", "\u00C3\u00A9", "\u00F0",
                                     "\u0141", "\u013A", "\u0122", "\u0120", "\u00C3\u00A9"});
    CHECK(ranges_of(encoding) == Ranges{{0, 1},
                                        {1, 2},
                                        {1, 2},
                                        {1, 2},
                                        {2, 3},
                                        {3, 4},
                                        {3, 4},
                                        {3, 4},
                                        {3, 4},
                                        {4, 5},
                                        {5, 6}});
    CHECK(tokenizer.decode(encoding.ids).value() == "a\u4E2D\u00E9\U0001F600 \u00E9");
  }

  TEST_CASE("byte level: trimmed ranges") {
    // What the tokenizers library gives, by (prefix space of the pre-tokenizer, of the processor).
    struct Row {
      const char* added;
      const char* assumed;
      const char* text;
      Strings tokens;
      Ranges ranges;
    };
    const std::string g = "\u0120";
    const Row rows[] = {
        {"false",
         "false",
         "   ab  a ",
         {g + g, g, "ab", g, g + "a", g},
         {{2, 2}, {3, 3}, {3, 5}, {6, 6}, {7, 8}, {9, 9}}},
        {"false", "false", "  a", {g, g + "a"}, {{1, 1}, {2, 3}}},
        {"false", "true", "  a", {g, g + "a"}, {{0, 0}, {2, 3}}},
        {"false", "true", " a", {g + "a"}, {{0, 2}}},
        {"false", "true", "     ", {g + g, g + g + g}, {{2, 2}, {5, 5}}},
        {"true", "false", "ab a", {g, "ab", g + "a"}, {{1, 1}, {0, 2}, {3, 4}}},
        {"true", "true", "ab a", {g, "ab", g + "a"}, {{0, 0}, {0, 2}, {3, 4}}},
        {"true", "true", " a", {g + "a"}, {{0, 2}}},
    };
    for (const Row& row : rows) {
      CAPTURE(row.text);
      CAPTURE(row.added);
      CAPTURE(row.assumed);
      const Tokenizer tokenizer =
          parsed(byte_level_file(byte_level(row.added, "true"), byte_level(row.assumed, "true")));
      const Encoding encoding = encoded(tokenizer, row.text);
      CHECK(encoding.tokens == row.tokens);
      CHECK(ranges_of(encoding) == row.ranges);
    }
    const Tokenizer untrimmed =
        parsed(byte_level_file(byte_level("false", "true"), byte_level("false", "false")));
    CHECK(ranges_of(encoded(untrimmed, "  a")) == Ranges{{0, 1}, {1, 3}});
  }

  TEST_CASE("byte level: trimming counts white space of any kind at both ends") {
    Encoding encoding;
    for (const char* token :
         {"\u0120\u2003a\u0120", "\u00E9", "a\u0120", "\u0120\u0120", "", "~"}) {
      encoding.tokens.push_back(token);
      encoding.offsets.push_back({10, 14});
    }
    trim_byte_level_offsets(encoding, PrefixSpace::kAdded);
    CHECK(ranges_of(encoding) ==
          Ranges{{12, 13}, {10, 14}, {10, 13}, {12, 12}, {10, 14}, {10, 14}});
  }

  TEST_CASE("byte level: without the regular expression nothing is cut") {
    json file = byte_level_file(byte_level("false", "true", "false"), "null");
    // Joins across what the pattern would cut.
    file["model"]["vocab"]["b!"] = 300;
    file["model"]["merges"].push_back(json::array({"b", "!"}));
    CHECK(encoded(parsed(file), "b! \u00E9").tokens == Strings{"b!", "\u0120", "\u00C3\u00A9"});
    file["pre_tokenizer"]["use_regex"] = true;
    CHECK(encoded(parsed(file), "b!").tokens == Strings{"b", "!"});
  }

  TEST_CASE("byte level: after a Split by a known pattern, a prefix space for every word") {
    const std::string pre_tokenizer =
        R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex":
          "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
          "behavior": "Isolated", "invert": false}, )" +
        byte_level("true", "true", "false") + "]}";
    const Tokenizer tokenizer = parsed(byte_level_file(pre_tokenizer, "null"));
    const Encoding encoding = encoded(tokenizer, "a1 a");
    CHECK(encoding.tokens == Strings{"\u0120a", "\u0120", "1", "\u0120a"});
    CHECK(ranges_of(encoding) == Ranges{{0, 1}, {1, 2}, {1, 2}, {2, 4}});
  }

  TEST_CASE("byte level: as a normalizer") {
    json file = byte_level_file("null", "null");
    file["normalizer"] = {{"type", "ByteLevel"}};
    const Encoding ascii = encoded(parsed(file), "  ab");
    CHECK(ascii.tokens == Strings{"\u0120\u0120", "ab"});
    CHECK(ranges_of(ascii) == Ranges{{0, 2}, {2, 4}});
    const Encoding wide = encoded(parsed(file), "\u00E9\u20AC");
    CHECK(wide.tokens == Strings{"\u00C3\u00A9", "\u00E2", "\u0124", "\u00AC"});
    CHECK(ranges_of(wide) == Ranges{{0, 1}, {1, 2}, {1, 2}, {1, 2}});
    CHECK(encoded(parsed(file), "").ids.empty());
  }

  TEST_CASE("byte level: settings of another type are refused") {
    json file = byte_level_file(byte_level("false", "true"), "null");
    file["pre_tokenizer"]["add_prefix_space"] = "no";
    const auto made = Tokenizer::parse(file.dump());
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().message.find("pre_tokenizer.add_prefix_space]") != std::string::npos);
  }

  TEST_CASE("byte level decoder: bytes that are not UTF-8") {
    const std::string decoder = R"({"type": "ByteLevel"})";
    const auto text = [](std::initializer_list<int> bytes) {
      std::u32string chars;
      for (const int byte : bytes) chars.push_back(byte_level_char(static_cast<uint8_t>(byte)));
      return encode_utf8(chars);
    };
    const std::string bad = "\uFFFD";
    CHECK(decoded_pieces(decoder, {text({0xC3}), text({0xA9})}) == Strings{"\u00E9"});
    // The longest start of a character is one error (Unicode, table 3-8).
    CHECK(decoded_pieces(decoder, {text({0x61, 0xF1, 0x80, 0x80, 0xE1, 0x80, 0xC2, 0x62})}) ==
          Strings{"a" + bad + bad + bad + "b"});
    CHECK(decoded_pieces(decoder, {text({0x80, 0xBF, 0xC0, 0xAF, 0xFF})}) ==
          Strings{bad + bad + bad + bad + bad});
    // Overlong, a surrogate, above U+10FFFF.
    CHECK(decoded_pieces(decoder, {text({0xE0, 0x80, 0x80})}) == Strings{bad + bad + bad});
    CHECK(decoded_pieces(decoder, {text({0xED, 0xA0, 0x80})}) == Strings{bad + bad + bad});
    CHECK(decoded_pieces(decoder, {text({0xF4, 0x90, 0x80, 0x80})}) ==
          Strings{bad + bad + bad + bad});
    CHECK(decoded_pieces(decoder, {text({0xF0, 0x9F, 0x98})}) == Strings{bad});
    // Characters outside of the alphabet leave a token as it is.
    CHECK(decoded_pieces(decoder, {"\u0120a", "<x y>", "\u0120\u4E2D"}) ==
          Strings{" a<x y>\u0120\u4E2D"});
    CHECK(decoded_pieces(decoder, {}) == Strings{""});
  }

  TEST_CASE("byte fallback decoder") {
    const std::string decoder = R"({"type": "ByteFallback"})";
    const std::string bad = "\uFFFD";
    CHECK(decoded_pieces(decoder, {"<0xe2>", "<0x82>", "<0xAC>", "a", "<0xff>", "<0x41>", "b"}) ==
          Strings{"\u20AC", "a", bad, bad, "b"});
    CHECK(decoded_pieces(decoder, {"<0x4>", "<0x041>", "<0xG1>", "0x41", "<0x-1>"}) ==
          Strings{"<0x4>", "<0x041>", "<0xG1>", "0x41", "<0x-1>"});
    CHECK(decoded_pieces(decoder, {"x", "<0x41>", "<0x42>"}) == Strings{"x", "AB"});
    CHECK(decoded_pieces(decoder, {"<0xC3>"}) == Strings{bad});
    CHECK(decoded_pieces(decoder, {}).empty());
  }

  TEST_CASE("BPE decoder: the suffix becomes a space, but for the last token's") {
    CHECK(decoded_pieces(R"({"type": "BPEDecoder", "suffix": "</w>"})",
                         {"ab</w>", "cd</w></w>e", "f</w>"}) == Strings{"ab ", "cd  e", "f"});
    CHECK(decoded_pieces(R"({"type": "BPEDecoder", "suffix": ""})", {"a\u00E9", "b"}) ==
          Strings{" a \u00E9 ", "b"});
    CHECK(decoded_pieces(R"({"type": "BPEDecoder"})", {}).empty());
  }
}
