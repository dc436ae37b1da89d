#include "checkpoint/json_config.h"

#include <limits>

#include "checkpoint/temp_dir.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

JsonConfig parsed(std::string_view text) {
  auto config = JsonConfig::parse(text, "config.json");
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  return std::move(config).value();
}

// The result is an error that names the file and has every one of `parts` in its message.
template <class T>
void check_refused(const Result<T>& result, std::initializer_list<std::string_view> parts) {
  REQUIRE_FALSE(result.ok());
  const std::string message = result.error().message;
  CAPTURE(message);
  CHECK(contains(message, "[config.json]"));
  for (const std::string_view part : parts) {
    CAPTURE(part);
    CHECK(contains(message, part));
  }
}

template <class T>
void check_equal(const Result<T>& result, const T& expected) {
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  CHECK(*result == expected);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("json_config: values of every type") {
    const JsonConfig config =
        parsed(R"({"i": -7, "d": 1e-5, "b": true, "s": "gelu", "whole": 3, "n": null})");
    check_equal<int64_t>(config.get_int("i"), -7);
    check_equal<double>(config.get_double("d"), 1e-5);
    check_equal<double>(config.get_double("whole"), 3.0);
    check_equal<double>(config.get_double("i"), -7.0);
    check_equal<bool>(config.get_bool("b"), true);
    check_equal<std::string>(config.get_string("s"), "gelu");
    check_equal<int64_t>(config.get_int_or("i", 1), -7);
    check_equal<double>(config.get_double_or("d", 1.0), 1e-5);
    check_equal<bool>(config.get_bool_or("b", false), true);
    check_equal<std::string>(config.get_string_or("s", "relu"), "gelu");
    CHECK(config.has("i"));
    CHECK_FALSE(config.has("n"));
    CHECK_FALSE(config.has("absent"));
    CHECK(config.keys() == std::vector<std::string>{"b", "d", "i", "s", "whole"});
    CHECK(config.where() == "config.json");
  }

  TEST_CASE("json_config: null and missing keys have defaults, or are errors where required") {
    const JsonConfig config = parsed(R"({"n": null})");
    for (const std::string key : {"n", "absent"}) {
      check_equal<int64_t>(config.get_int_or(key, 5), 5);
      check_equal<double>(config.get_double_or(key, 0.5), 0.5);
      check_equal<bool>(config.get_bool_or(key, true), true);
      check_equal<std::string>(config.get_string_or(key, "x"), "x");
      check_equal<std::vector<int64_t>>(config.get_int_list_or(key, {1, 2}), {1, 2});
      check_equal<std::vector<double>>(config.get_double_list_or(key, {}), {});
      check_equal<std::vector<std::string>>(config.get_string_list_or(key, {"a"}), {"a"});
      check_equal<std::vector<std::vector<int64_t>>>(config.get_int_lists_or(key, {{3}}), {{3}});
      CHECK(config.object(key).status().ok());
      check_equal<int64_t>(config.object(key).get_int_or("x", 9), 9);
      check_refused(config.get_int(key), {"[" + key + "]", "missing"});
      check_refused(config.get_double(key), {"missing"});
      check_refused(config.get_bool(key), {"missing"});
      check_refused(config.get_string(key), {"missing"});
    }
  }

  TEST_CASE("json_config: a default never hides a value of the wrong type") {
    const JsonConfig config = parsed(R"({"k": "twelve", "l": [1, "x"], "t": true, "f": 1.5})");
    check_refused(config.get_int_or("k", 1), {"[k]", "the string [twelve]", "whole number"});
    check_refused(config.get_double_or("k", 1), {"[k]", "a number must be"});
    check_refused(config.get_bool_or("k", true), {"[k]", "true or false"});
    check_refused(config.get_string_or("f", ""), {"[f]", "the number 1.5"});
    check_refused(config.get_int_or("t", 0), {"[t]", "is true"});
    check_refused(config.get_int_or("l", 0), {"[l]", "a list of 2"});
    check_refused(config.get_int_list_or("l", {}), {"[l]", "element 1", "[x]"});
    check_refused(config.get_int_list_or("k", {}), {"[k]", "[twelve]"});
    check_refused(config.get_int_lists_or("l", {}), {"[l]", "element 0", "a list must be"});
    check_refused(config.get_int_lists_or("t", {}), {"[t]", "list of lists"});
  }

  TEST_CASE("json_config: integers must be whole and fit 64 bits, however written") {
    const JsonConfig config = parsed(
        R"({"e": 1e3, "p": 5.0, "f": 5.5, "max": 9223372036854775807, "min": -9223372036854775808,
            "above": 9223372036854775808, "huge": 1000000000000000019884624838656})");
    check_equal<int64_t>(config.get_int("e"), 1000);
    check_equal<int64_t>(config.get_int("p"), 5);
    check_equal<int64_t>(config.get_int("max"), std::numeric_limits<int64_t>::max());
    check_equal<int64_t>(config.get_int("min"), std::numeric_limits<int64_t>::min());
    check_refused(config.get_int("f"), {"[f]", "5.5"});
    check_refused(config.get_int("above"), {"9223372036854775808"});
    check_refused(config.get_int("huge"), {"[huge]"});
    check_equal<double>(config.get_double("huge"), 1e30);
  }

  TEST_CASE("json_config: lists, and single values as lists of one") {
    const JsonConfig config = parsed(
        R"({"one": 2, "many": [1, 2, 3], "none": [], "word": "a", "words": ["a", "b"],
            "lists": [[1, 2], [], [3]], "scales": [1, 0.5]})");
    check_equal<std::vector<int64_t>>(config.get_int_list_or("one", {}), {2});
    check_equal<std::vector<int64_t>>(config.get_int_list_or("many", {}), {1, 2, 3});
    check_equal<std::vector<int64_t>>(config.get_int_list_or("none", {7}), {});
    check_equal<std::vector<std::string>>(config.get_string_list_or("word", {}), {"a"});
    check_equal<std::vector<std::string>>(config.get_string_list_or("words", {}), {"a", "b"});
    check_equal<std::vector<double>>(config.get_double_list_or("scales", {}), {1.0, 0.5});
    check_equal<std::vector<std::vector<int64_t>>>(config.get_int_lists_or("lists", {}),
                                                   {{1, 2}, {}, {3}});
  }

  TEST_CASE("json_config: lists with a number each") {
    const JsonConfig config = parsed(
        R"({"b": [[[5, 7], -2.5], [[1], 3]], "none": [], "flat": [5, 7], "half": [[[5]]],
            "words": [[["a"], 1]], "text": [[[1], "x"]], "one": {"a": 1}})");
    using Lists = JsonConfig::WeightedLists;
    check_equal<Lists>(config.get_weighted_lists_or("b", {}), {{{5, 7}, -2.5}, {{1}, 3.0}});
    check_equal<Lists>(config.get_weighted_lists_or("none", {{{1}, 1.0}}), {});
    check_equal<Lists>(config.get_weighted_lists_or("absent", {{{1}, 1.0}}), {{{1}, 1.0}});
    check_refused(config.get_weighted_lists_or("flat", {}), {"[flat]", "element 0", "a pair"});
    check_refused(config.get_weighted_lists_or("half", {}), {"[half]", "element 0", "a pair"});
    check_refused(config.get_weighted_lists_or("words", {}), {"[words]", "element 0", "[a]"});
    check_refused(config.get_weighted_lists_or("text", {}), {"[text]", "a number must be"});
    check_refused(config.get_weighted_lists_or("one", {}), {"[one]", "list of pairs"});
  }

  TEST_CASE("json_config: nested objects name their whole path and keep their content alive") {
    JsonConfig inner;
    {
      const JsonConfig config = parsed(R"({"rope": {"scaling": {"factor": 8.0, "type": 3}}})");
      inner = config.object("rope").object("scaling");
    }
    check_equal<double>(inner.get_double("factor"), 8.0);
    check_refused(inner.get_string("type"), {"[rope.scaling.type]", "the number 3"});
    check_refused(inner.get_int("absent"), {"[rope.scaling.absent]", "missing"});
  }

  TEST_CASE("json_config: an object that is none reports so from every getter") {
    const JsonConfig wrong = parsed(R"({"rope": [1]})").object("rope");
    check_refused(wrong.status(), {"[rope]", "a list of 1", "an object must be"});
    check_refused(wrong.get_int_or("factor", 1), {"[rope]"});
    check_refused(wrong.get_int_list_or("factor", {}), {"[rope]"});
    check_refused(wrong.object("deeper").get_bool_or("x", true), {"[rope]"});
    CHECK_FALSE(wrong.has("factor"));
    CHECK(wrong.keys().empty());
  }

  TEST_CASE("json_config: an object made of nothing has no keys") {
    const JsonConfig empty;
    CHECK_FALSE(empty.has("a"));
    CHECK(empty.keys().empty());
    CHECK(empty.status().ok());
    check_equal<int64_t>(empty.get_int_or("a", 4), 4);
    CHECK_FALSE(empty.get_int("a").ok());
    CHECK(empty.object("a").status().ok());
  }

  TEST_CASE("json_config: text that is not a JSON object") {
    for (const std::string text : {"", " ", "{", "{]", "{\"a\":}", "{'a':1}", "{\"a\":NaN}",
                                   "{\"a\":1}}", "{\"a\":1} x", "{\"\xff\":1}", "{\"a\":1e999}"}) {
      CAPTURE(text);
      check_refused(JsonConfig::parse(text, "config.json"), {"not valid JSON near byte"});
    }
    check_refused(JsonConfig::parse("[1]", "config.json"), {"a list of 1", "an object must be"});
    check_refused(JsonConfig::parse("3", "config.json"), {"an object must be"});
    check_refused(JsonConfig::parse(std::string_view("{}\0{", 4), "config.json"), {"zero byte"});
    // What a message quotes stays UTF-8.
    check_refused(JsonConfig::parse("\xff\xfe", "config.json"), {"[?]"});
    check_refused(JsonConfig::parse("{\"\xc3\xa9\xed\xa0\x80", "config.json"), {"\xc3\xa9?"});
  }

  TEST_CASE("json_config: nesting is limited to 64 levels") {
    const auto nested = [](int levels) {
      return "{\"a\":" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
    };
    CHECK(JsonConfig::parse(nested(64), "config.json").ok());
    check_refused(JsonConfig::parse(nested(65), "config.json"), {"more than 64 levels"});
    check_refused(JsonConfig::parse("{\"a\":" + std::string(1000000, '['), "config.json"),
                  {"more than 64 levels"});
  }

  TEST_CASE("json_config: files") {
    const TempDir dir;
    const auto loaded = JsonConfig::load(dir.write("config.json", R"({"hidden_size": 64})"));
    REQUIRE(loaded.ok());
    check_equal<int64_t>(loaded->get_int("hidden_size"), 64);
    CHECK(loaded->where() == dir.file("config.json"));
    const auto missing = JsonConfig::load(dir.file("absent.json"));
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(contains(missing.error().message, dir.file("absent.json")));
    CHECK_FALSE(JsonConfig::load(dir.write("empty.json", "")).ok());
  }

  TEST_CASE("json_config: names that repeat are written out, up to a limit") {
    using Names = std::vector<std::string>;
    const JsonConfig config = parsed(
        R"({"a": [[["x", "y"], 2], [["z"], 1], [[], 5]], "many": [[["x", "y"], 3]],
            "huge": [[["x"], 9223372036854775807]], "less": [[["x"], -1]], "flat": ["x", 2],
            "number": [[[1], 2]], "count": [[["x"], "2"]], "text": "x"})");
    check_equal<Names>(config.get_repeated_names_or("a", {}, 5), {"x", "y", "x", "y", "z"});
    check_equal<Names>(config.get_repeated_names_or("none", {"w"}, 1), {"w"});
    check_refused(config.get_repeated_names_or("a", {}, 4), {"[a]", "element 1", "4 names"});
    check_refused(config.get_repeated_names_or("many", {}, 5), {"[many]", "3 times", "5 names"});
    check_refused(config.get_repeated_names_or("huge", {}, 100), {"[huge]", "9223372036854775807"});
    check_refused(config.get_repeated_names_or("less", {}, 100), {"[less]", "-1"});
    check_refused(config.get_repeated_names_or("flat", {}, 100), {"[flat]", "pair"});
    check_refused(config.get_repeated_names_or("number", {}, 100), {"[number]", "a string"});
    check_refused(config.get_repeated_names_or("count", {}, 100), {"[count]", "whole number"});
    check_refused(config.get_repeated_names_or("text", {}, 100), {"[text]", "list of pairs"});
  }
}
