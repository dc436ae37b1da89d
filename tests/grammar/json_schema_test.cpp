#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <random>

#include "grammar/grammar_walk.h"
#include "grammar/schema_check.h"

using namespace vkformer;
using test::Json;

namespace {

Grammar schema_grammar(const std::string& schema) {
  auto made = Grammar::from_json_schema(schema);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? schema : schema + ": " + made.error().message));
  return std::move(made).value();
}

bool allows(const Grammar& grammar, std::string_view text) {
  const auto result = grammar.matches(text);
  REQUIRE(result.ok());
  return *result;
}

void check_refused(const std::string& schema, const std::string& says) {
  CAPTURE(schema);
  const auto made = Grammar::from_json_schema(schema);
  REQUIRE_FALSE(made.ok());
  CHECK_MESSAGE(made.error().message.find(says) != std::string::npos, made.error().message);
  CHECK(made.error().message.back() == '.');
}

const std::vector<const char*> kSchemas = {
    "true",
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
        "id": {"type": "integer", "minimum": 1, "maximum": 5000},
        "tags": {"type": "array", "items": {"enum": ["a", "b\"c", "é", 1, null]}, "maxItems": 3}},
        "required": ["id"], "additionalProperties": false})",
    R"({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"},
        "c": {"type": "number", "exclusiveMinimum": 0, "maximum": 1.25}},
        "additionalProperties": {"type": ["integer", "string"]}, "maxProperties": 5})",
    R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object",
        "properties": {"value": {"type": "integer"}, "children": {"type": "array",
        "items": {"$ref": "#/$defs/tree"}, "maxItems": 3}}, "required": ["value", "children"]}}})",
    R"({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "on"}, "x": {"type": "integer"}},
         "required": ["kind", "x"]},
        {"type": "object", "properties": {"kind": {"const": "off"}, "y": {"format": "date"}},
         "required": ["kind"], "additionalProperties": false},
        {"type": "string", "format": "date-time"}, {"type": "integer", "exclusiveMaximum": -17}]})",
    R"({"allOf": [{"type": "object", "properties": {"a": {"type": "string", "minLength": 2}},
        "required": ["a"]}, {"properties": {"a": {"maxLength": 4}, "b": {"type": "number",
        "minimum": -2.5, "exclusiveMaximum": 10}}, "required": ["b"]}]})",
    R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string",
        "pattern": "^[a-z]{2,4}(-[0-9]+)?$"}], "items": {"type": "boolean"}, "minItems": 1,
        "maxItems": 5})",
    R"({"type": "array", "items": {"anyOf": [{"type": "string", "pattern": "on|^off$"},
        {"type": "integer", "minimum": -30, "maximum": 119}]}, "minItems": 2, "maxItems": 9})",
    R"({"type": "object", "properties": {"t": {"type": "string", "format": "time"},
        "u": {"format": "uuid"}, "p": {"type": "string", "pattern": "^\\w+\\s\\d{2,}[!#-~]\\.?$"},
        "n": {"enum": [1.5, -2, "x", [1, {"k": []}]]}}, "required": ["p", "extra"]})",
    R"({"type": "number", "minimum": 0.125, "exclusiveMaximum": 1234.5})",
    R"({"type": ["integer", "null"], "exclusiveMinimum": -1000, "maximum": 999999})",
    R"({"type": "object", "properties": {"o": {"type": "object"}, "l": {"type": "array"}},
        "required": ["o"], "additionalProperties": true})",
    R"({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "properties": {"a": {"type": "string"}, "b": {"maximum": 3, "type": "number"}}})",
    R"({"type": "string", "minLength": 1, "maxLength": 40})",
};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("json schema: 10,000 random texts parse and are valid") {
    const auto tokens = test::walk_tokens();
    const std::array<TokenId, 1> end = {static_cast<TokenId>(tokens.size() - 1)};
    const auto vocabulary = GrammarVocabulary::from_bytes(tokens, end);
    REQUIRE(vocabulary.ok());
    std::mt19937 random(7);
    // For validators of other languages: one line a text, the schema's number in front.
    const char* path = std::getenv("VKFORMER_TEST_WALKS");
    std::ofstream file;
    if (path != nullptr) file.open(path);
    int texts = 0;
    for (size_t s = 0; s < kSchemas.size(); ++s) {
      const Json schema = Json::parse(kSchemas[s]);
      const test::SchemaCheck checker(schema);
      auto constraint = GrammarConstraint::create(schema_grammar(kSchemas[s]), *vocabulary);
      REQUIRE(constraint.ok());
      if (file.is_open()) file << Json({s, schema, nullptr}).dump() << "\n";
      for (int i = 0; i < 720; ++i, ++texts) {
        const std::string text =
            test::random_text(*constraint, tokens, random, static_cast<int>(random() % 60));
        const Json value = Json::parse(text, nullptr, false);
        CHECK_MESSAGE(!value.is_discarded(), text);
        CHECK_MESSAGE(checker.holds(schema, value), (std::string(kSchemas[s]) + ": " + text));
        if (file.is_open()) file << Json({s, nullptr, text}).dump() << "\n";
      }
    }
    CHECK(texts > 10000);
  }

  TEST_CASE("json schema: any JSON") {
    const auto made = Grammar::any_json();
    REQUIRE(made.ok());
    for (const char* text : {"0", "-1.5e+10", "\"\"", "\"\\u00e9\\ud83d\\ude00\\n\"", "[]", "{}",
                             "[1,[2, {\"a\":null}]]", "{\"a\": true,\n  \"b\":[\n\tfalse ]}"}) {
      CHECK_MESSAGE(allows(*made, text), text);
    }
    for (const char* text :
         {"", "01", "1.", ".5", "+1", "1e999", "\"\\ud800\"", "\"\\x\"", "[1,]", "{\"a\" : 1}",
          "{a:1}", "nul", " 1", "1 ", "\"\n\"", "[1 ,2]", "--1"}) {
      CHECK_FALSE_MESSAGE(allows(*made, text), text);
    }
  }

  TEST_CASE("json schema: patterns match as regular expressions do") {
    const auto pattern = [](const std::string& text) {
      return schema_grammar(Json({{"type", "string"}, {"pattern", text}}).dump());
    };
    const auto fits = [](const Grammar& made, const std::string& text) {
      return allows(made, Json(text).dump());
    };
    const Grammar anywhere = pattern("b+|^x");
    for (const char* text : {"b", "abba", "x", "xyz", "\"b\\"}) CHECK(fits(anywhere, text));
    for (const char* text : {"", "a", "yx"}) CHECK_FALSE(fits(anywhere, text));
    const Grammar escaped = pattern("^[\"\\\\/\n\\x41\\u00e9-\\u00ef]+?\\.(?:a|bc)*$");
    for (const char* text : {"\".", "\\/\nA\xC3\xA9.abca"}) CHECK(fits(escaped, text));
    for (const char* text : {".", "A", "B.", "A.b", "A.ab"}) CHECK_FALSE(fits(escaped, text));
    const Grammar classes = pattern("^\\D\\W\\S[^\\d\\s-]{2}.$");
    CHECK(fits(classes, "a-xyz1"));
    CHECK(fits(classes, "\xE2\x82\xAC!9ab\xC3\xA9"));
    for (const char* text : {"1-xyz1", "aaxyz1", "a- yz1", "a-xy-1", "a-xyz\n"}) {
      CHECK_FALSE(fits(classes, text));
    }
  }

  TEST_CASE("json schema: integers between bounds are exactly those") {
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
      int64_t low = static_cast<int64_t>(random() % 2600) - 1300;
      int64_t high = static_cast<int64_t>(random() % 2600) - 1300;
      if (low > high) std::swap(low, high);
      const Grammar made =
          schema_grammar(R"({"type": "integer", "minimum": )" + std::to_string(low) +
                         R"(, "maximum": )" + std::to_string(high) + "}");
      for (int64_t value = -1400; value <= 1400; value += value % 7 == 0 ? 1 : 3) {
        CHECK(allows(made, std::to_string(value)) == (low <= value && value <= high));
      }
      CHECK(allows(made, std::to_string(low)));
      CHECK(allows(made, std::to_string(high)));
      CHECK_FALSE(allows(made, "-0"));
      CHECK_FALSE(allows(made, "00"));
    }
    const Grammar wide = schema_grammar(R"({"type": "integer", "minimum": 2000000000000000})");
    CHECK(allows(wide, "2000000000000000"));
    CHECK_FALSE(allows(wide, "1999999999999999"));
  }

  TEST_CASE("json schema: decimals between bounds are exactly those") {
    std::mt19937 random(6);
    for (int round = 0; round < 80; ++round) {
      double low = (static_cast<int>(random() % 4001) - 2000) / 100.0;
      double high = (static_cast<int>(random() % 4001) - 2000) / 100.0;
      if (low > high) std::swap(low, high);
      const bool low_out = random() % 2 == 0;
      const bool high_out = random() % 2 == 0;
      Json schema = {{"type", "number"}};
      schema[low_out ? "exclusiveMinimum" : "minimum"] = low;
      schema[high_out ? "exclusiveMaximum" : "maximum"] = high;
      const auto made = Grammar::from_json_schema(schema.dump());
      if (!made.ok()) {
        CHECK(low == high);
        CHECK((low_out || high_out));
        continue;
      }
      for (int i = 0; i < 200; ++i) {
        const int64_t hundredths = static_cast<int64_t>(random() % 4401) - 2200;
        const double value = static_cast<double>(hundredths) / 100.0;
        std::string text = Json(value).dump();
        if (value == 0) text = "0.0";
        const bool fits =
            (low_out ? value > low : value >= low) && (high_out ? value < high : value <= high);
        CHECK_MESSAGE(allows(*made, text) == fits, (schema.dump() + ": " + text));
        CHECK_MESSAGE(allows(*made, text + "00") == fits, (schema.dump() + ": " + text + "00"));
      }
    }
  }

  TEST_CASE("json schema: properties keep their order, and others their names") {
    const Grammar made = schema_grammar(
        R"({"properties": {"a": true, "ab": true, "b": true}, "required": ["ab"],
            "additionalProperties": {"type": "integer"}})");
    for (const char* text : {R"({"ab":1})", R"({"a":1,"ab":[]})", R"({"ab":1,"b":{}})",
                             R"({"a":1,"ab":2,"b":3,"c":4,"abc":5,"":6})", R"({"ab":1,"aa":2})"}) {
      CHECK_MESSAGE(allows(made, text), text);
    }
    for (const char* text :
         {"{}", R"({"a":1})", R"({"ab":1,"a":2})", R"({"ab":1,"c":"x"})", R"({"ab":1,"ab":2})",
          R"({"c":1,"ab":2})", R"({"ab":1,"\u0061":"x"})", "1"}) {
      CHECK_FALSE_MESSAGE(allows(made, text), text);
    }
  }

  TEST_CASE("json schema: what is not supported is named with its place") {
    check_refused(R"({"type": "object", "properties": {"a": {"not": {}}}})",
                  "[not] at #/properties/a");
    check_refused(R"({"patternProperties": {}})", "[patternProperties] at #");
    check_refused(R"({"type": "array", "uniqueItems": true})", "[uniqueItems] at #");
    check_refused(R"({"type": "integer", "multipleOf": 3})", "[multipleOf] at #");
    check_refused(R"({"type": "string", "format": "email"})", "is 'email'; date, time");
    check_refused(R"({"type": "string", "pattern": "(?=a)b"})", "group other than");
    check_refused(R"({"type": "string", "pattern": "a\\bc"})", "escape that is not supported");
    check_refused(R"({"type": "string", "pattern": "a$b"})", "^ or $ elsewhere");
    check_refused(R"({"type": "string", "pattern": "^a*$", "maxLength": 3})", "stands beside");
    check_refused(R"({"type": "text"})", "not a JSON type");
    check_refused(R"({"$ref": "other.json"})", "refers to 'other.json'");
    check_refused(R"({"$ref": "#/$defs/none"})", "does not have");
    check_refused(R"({"$ref": "#"})", "can never end");
    check_refused(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
                  "can never end");
    check_refused(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
                  "alternatives 0 and 1");
    check_refused(R"({"anyOf": []})", "at least one schema");
    check_refused(R"({"type": "string", "minLength": 5, "maxLength": 2})", "can never end");
    check_refused(R"({"type": "integer", "minimum": 3, "maximum": 2})", "can never end");
    check_refused(R"({"enum": []})", "can never end");
    check_refused(R"({"enum": ["a"], "minLength": 2})", "is next to enum");
    check_refused(R"({"type": "object", "minProperties": 2})", "[minProperties] at #");
    check_refused(R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})", "two schemas");
    check_refused(R"({"type": "array", "items": [{}]})", "prefixItems");
    check_refused(R"({"type": "number", "minimum": 1e300})", "[minimum]");
    check_refused(R"([1])", "a schema is an object, true or false");
    check_refused(R"({"type": "object)", "not valid JSON");
    check_refused("false", "can never end");
    std::string deep;
    for (int i = 0; i < 70; ++i) deep += R"({"items":)";
    check_refused(deep, "deeper than the limit of 64");
  }

  TEST_CASE("json schema: combinations without end or of exponential size are refused") {
    check_refused(R"({"oneOf": [{"type": "null"}, {"$ref": "#"}]})", "refers to itself");
    std::string levels = R"({"$ref": "#/$defs/a0", "$defs": {"a15": {"type": "integer"})";
    for (int i = 0; i < 15; ++i) {
      levels += ", \"a" + std::to_string(i) + R"(": {"allOf": [)";
      for (int k = 0; k < 10; ++k) {
        levels += (k > 0 ? "," : "") + (R"({"$ref": "#/$defs/a)" + std::to_string(i + 1)) + "\"}";
      }
      levels += "]}";
    }
    check_refused(levels + "}}", "more than the limit of 2000000 steps");
    std::string list = R"({"allOf": [{"items": {"type": "integer"}})";
    for (int i = 0; i < 20000; ++i) list += R"(, {"items": {}})";
    check_refused(list + "]}", "more than 32 schemas");
    std::string names = R"({"type": "object", "required": ["a")";
    for (int i = 0; i < 20000; ++i) names += ",\"n" + std::to_string(i) + "\"";
    check_refused(names + "]}", "names 20001 properties; the limit is 1000");
    check_refused(R"({"type": "object", "required": ["a", "a"], "minProperties": 2})",
                  "[minProperties] at #");
    std::string doubled = R"({"type": "integer"})";
    for (int i = 0; i < 20; ++i) {
      doubled = R"({"anyOf": [{"required": ["a"]}, {"minProperties": 0}], "properties": {"a": )" +
                doubled + "}}";
    }
    check_refused(doubled, "the limit of");
  }

  TEST_CASE("json schema: a oneOf may refer to itself where its alternatives are apart") {
    const Grammar sums = schema_grammar(R"({"oneOf": [{"type": "number"}, {"type": "object",
        "properties": {"left": {"$ref": "#"}, "op": {"const": "+"}}, "required": ["left", "op"],
        "additionalProperties": false}]})");
    CHECK(allows(sums, R"({"left":{"left":1,"op":"+"},"op":"+"})"));
    CHECK_FALSE(allows(sums, R"({"left":{"left":"1","op":"+"},"op":"+"})"));
  }

  TEST_CASE("json schema: hostile schemas end soon") {
    for (const char* schema : {
             R"({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {}]}}})",
             R"({"$ref": "#/a", "type": "object", "a": {"$ref": "#"}})",
             R"({"type": "string", "maxLength": 9000000000000000})",
             R"({"type": "array", "items": {"type": "array", "maxItems": 4000}, "maxItems": 4000})",
             R"({"type": "string", "pattern": "((a{0,2000}){0,2000}){0,2000}"})",
             R"({"type": "string", "pattern": "(a|b)*a(a|b){200}"})",
             R"({"type": "string", "pattern": "(((a?){0,60}){0,60}){0,60}b"})",
         }) {
      const auto made = Grammar::from_json_schema(schema);
      if (!made.ok()) CHECK(made.error().message.back() == '.');
    }
    std::string schema = R"({"type": "object", "properties": {)";
    for (int i = 0; i < 900; ++i) {
      schema += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + R"(": {"type": "integer"})";
    }
    const Grammar wide = schema_grammar(schema + R"(}, "additionalProperties": true})");
    CHECK(allows(wide, R"({"p7":1,"p899":2,"q":3})"));
    CHECK_FALSE(allows(wide, R"({"p8":1,"p7":2})"));
  }
}
