// Small files that ask for much: refused early, by limits that the messages state.
#include <cstring>
#include <string>

#include "audio/wav.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/json_config.h"
#include "checkpoint/safetensors.h"
#include "doctest/doctest.h"
#include "grammar/compiled_grammar.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "image/picture.h"
#include "vkformer/grammar.h"
#include "vkformer/tokenizer.h"

using namespace vkformer;

namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

// A safetensors file of that header, without data.
std::string with_header(const std::string& header) {
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return file + header;
}

template <class T>
void check_refused(const Result<T>& result, const std::string& part) {
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code != ErrorCode::kInternal);
  CHECK_MESSAGE(result.error().message.find(part) != std::string::npos, result.error().message);
}

std::string repeated(const std::string& part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("shapes that overflow, headers that claim gigabytes, tensors without end") {
    check_refused(
        SafetensorsFile::from_bytes(
            bytes_of(with_header(
                R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})")),
            "bomb"),
        "[a]");
    std::string claims(8, '\xff');
    check_refused(SafetensorsFile::from_bytes(bytes_of(claims), "bomb"), "header");
    claims = with_header("{}");
    claims[4] = 4;  // 16 GiB of header in a file of ten bytes
    check_refused(SafetensorsFile::from_bytes(bytes_of(claims), "bomb"), "header");
    std::string many = "{";
    for (int i = 0; i <= 1 << 18; ++i) {
      many += (i > 0 ? ",\"" : "\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    }
    check_refused(SafetensorsFile::from_bytes(bytes_of(with_header(many + "}")), "bomb"),
                  "more than 262144 tensors");
  }

  TEST_CASE("JSON of any depth") {
    const std::string deep = repeated("{\"a\":", 100000) + "1" + repeated("}", 100000);
    check_refused(JsonConfig::parse(deep, "bomb"), "64");
    check_refused(Tokenizer::parse(deep), "64");
    check_refused(parse_json_schema(deep), "limit");
    check_refused(
        SafetensorsFile::from_bytes(
            bytes_of(with_header("{\"__metadata__\":" + repeated("[", 100000) + "}")), "bomb"),
        "");
  }

  TEST_CASE("an index of very many shards opens no file that is not there") {
    std::string index = R"({"weight_map":{)";
    for (int i = 0; i < 100000; ++i) {
      const std::string number = std::to_string(i);
      index += (i > 0 ? ",\"t" : "\"t") + number + "\":\"s" + number + ".safetensors\"";
    }
    index += "}}";
    MemoryFiles files;
    files["model.safetensors.index.json"] = std::as_bytes(std::span(index));
    check_refused(Checkpoint::open_store(*make_memory_store(files, "bomb")), "s0.safetensors");
  }

  TEST_CASE("pictures and sounds that claim gigabytes") {
    std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x10\x06\0\0\0",
                    29);
    check_refused(decode_picture(std::as_bytes(std::span(png)), "bomb"), "bomb");
    std::string bmp("BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\0\x30\0\0\xc9\x09\0\0\1\0\x18", 29);
    bmp += std::string(25, '\0');
    check_refused(decode_picture(std::as_bytes(std::span(bmp)), "bomb"), "take 92344320 bytes");
    // A frame of 65,535 x 512 pixels in one component, and a scan of a byte.
    const std::string jpeg(
        "\xff\xd8\xff\xc2\0\x0b\x08\xff\xff\x02\0\1\1\x11\0\xff\xda\0\x08\1\1\0\0\0\0\0\xff\xd9",
        28);
    check_refused(decode_picture(std::as_bytes(std::span(jpeg)), "bomb"), "claims 33553920 pixels");
    const std::string pnm = "P6 2000000000 2000000000 255\n";
    check_refused(decode_picture(std::as_bytes(std::span(pnm)), "bomb"), "PNM");
    std::string wav(
        "RIFF\xf0\xff\xff\xff"
        "WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\xf0\xff\xff\xff",
        44);
    const auto sound = decode_wav(std::as_bytes(std::span(wav)), "bomb");
    CHECK((!sound.ok() || sound->samples.size() < 16));
  }

  TEST_CASE("grammars: nesting, repetition and alternation without end") {
    const auto compiled = [](const std::string& text) -> Result<CompiledGrammar> {
      auto tree = parse_gbnf(text, "root");
      if (!tree.ok()) return tree.error();
      return CompiledGrammar::compile(*tree);
    };
    check_refused(compiled("root ::= " + repeated("(", 5000) + "\"a\"" + repeated(")", 5000)),
                  "nest deeper than the limit of 100");
    check_refused(compiled("root ::= \"a\"{1,999999999}"), "limit of 10000");
    check_refused(compiled("root ::= \"a\"{99999999999999999999}"), "limit of 10000");
    check_refused(compiled("root ::= \"a\"" + repeated("*", 1000)), "limit of 10");
    // What is shared is made once, so this one is small.
    const auto nested = compiled("root ::= (((\"a\"{0,1000}){0,1000}){0,1000}){0,1000}");
    if (!nested.ok()) check_refused(nested, "limit");
    // 2^40 texts in 41 rules: small as an automaton, or refused, but never written out.
    std::string doubling = "root ::= r0\n";
    for (int i = 0; i < 40; ++i) {
      const std::string next = "r" + std::to_string(i + 1);
      doubling += "r" + std::to_string(i) + " ::= " + next + " " + next + " | " + next + "\n";
    }
    const auto doubled = compiled(doubling + "r40 ::= \"a\"\n");
    if (!doubled.ok()) check_refused(doubled, "limit");
    std::string alternatives = "root ::= ";
    for (int i = 0; i < 20000; ++i) alternatives += "\"w" + std::to_string(i) + "\" | ";
    CHECK(compiled(alternatives + "\"end\"").ok());
    check_refused(parse_gbnf(std::string((4u << 20) + 1, ' '), "root"), "limit");
  }

  TEST_CASE("grammars: left recursion and ambiguity end") {
    for (const char* text :
         {"root ::= root \"a\" | \"a\"", "root ::= root root | \"a\"",
          "root ::= root root | \"a\" | \"\"", "root ::= x\nx ::= y x | \"a\"\ny ::= x | \"\"",
          "root ::= root root root | \"a\" | root"}) {
      CAPTURE(std::string(text));
      const auto grammar = Grammar::from_gbnf(text);
      REQUIRE_MESSAGE(grammar.ok(), grammar.error().message);
      const auto matched = grammar->matches(std::string(61, 'a'));
      if (matched.ok()) CHECK(*matched);
      if (!matched.ok()) check_refused(matched, "limit");
      const auto other = grammar->matches(std::string(20, 'a') + "b");
      CHECK((!other.ok() || !*other));
    }
    check_refused(Grammar::from_gbnf("root ::= root"), "");
    check_refused(Grammar::from_gbnf("root ::= a b\na ::= b a\nb ::= a b"), "");
  }

  TEST_CASE("schemas that refer to others exponentially often") {
    std::string schema = R"({"$defs":{"d0":{"type":"null"})";
    for (int i = 1; i < 64; ++i) {
      const std::string one = R"({"$ref":"#/$defs/d)" + std::to_string(i - 1) + "\"}";
      schema += ",\"d" + std::to_string(i) + R"(":{"allOf":[{"anyOf":[)" + one + "," + one +
                R"(]},{"anyOf":[)" + one + "," + one + "]}]}";
    }
    const auto refused = parse_json_schema(schema + R"(},"$ref":"#/$defs/d63"})");
    if (!refused.ok()) check_refused(refused, "deeper than 32 levels");
    CHECK_FALSE(Grammar::from_json_schema(R"({"$ref":"#"})").ok());
  }
}
