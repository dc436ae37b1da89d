#include "grammar/gbnf.h"

#include <doctest/doctest.h>

#include "vkformer/grammar.h"

using namespace vkformer;

namespace {

Grammar grammar(const std::string& text) {
  auto made = Grammar::from_gbnf(text);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return std::move(made).value();
}

bool matches(const Grammar& made, std::string_view text) {
  const auto result = made.matches(text);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? std::string() : result.error().message));
  return *result;
}

void check_error(const std::string& text, const std::string& says) {
  CAPTURE(text);
  const auto made = Grammar::from_gbnf(text);
  REQUIRE_FALSE(made.ok());
  CHECK_MESSAGE(made.error().message.find(says) != std::string::npos, made.error().message);
  CHECK(made.error().message.back() == '.');
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gbnf: literals, classes, groups and repetitions") {
    const Grammar made = grammar(R"(
# a comment
root ::= "a" [b-d]+ ("x" | "yz")? [^0-9\]]{2} .{1,2} # another
)");
    CHECK(matches(made, "abbQQ!"));
    CHECK(matches(made, "accyz\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80!"));
    CHECK(matches(made, "abxqq\n"));
    CHECK_FALSE(matches(made, "axqqq"));
    CHECK_FALSE(matches(made, "ab0q!"));
    CHECK_FALSE(matches(made, "ab]x!"));
    CHECK_FALSE(matches(made, "abQQ"));
    CHECK_FALSE(matches(made, "abqqqqqq"));
    CHECK_FALSE(matches(made, "abqq\xC3"));
    CHECK_FALSE(matches(made, "abqq\x80"));
  }

  TEST_CASE("gbnf: escapes stand for characters") {
    const Grammar made =
        grammar(R"(root ::= "\n\t\r\"\\\x41\xe9\u20AC\U0001F600" [\]\-\^\x00-\x1f])");
    const std::string text = "\n\t\r\"\\A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
    for (const char* end : {"]", "-", "^", "\x1f"}) CHECK(matches(made, text + end));
    CHECK(matches(made, text + std::string(1, '\0')));
    CHECK_FALSE(matches(made, text + "a"));
  }

  TEST_CASE("gbnf: a rule goes on over lines inside brackets and at bars") {
    const Grammar made =
        grammar("root ::= (\n  \"a\"\n  b # why not\n  )\n  | \"c\" |\n \"d\"\n\nb ::=\n  \"b\"");
    for (const char* text : {"ab", "c", "d"}) CHECK(matches(made, text));
    CHECK_FALSE(matches(made, "a"));
  }

  TEST_CASE("gbnf: repetitions count") {
    const Grammar made = grammar(R"(root ::= "ab"{2} "c"{0,3} [d]{2,} ("e" "f"){10,12} "g"{0})");
    const std::string ef = "efefefefefefefefefef";
    CHECK(matches(made, "ababdd" + ef));
    CHECK(matches(made, "ababcccdddd" + ef + "efef"));
    CHECK_FALSE(matches(made, "ababccccdd" + ef));
    CHECK_FALSE(matches(made, "ababd" + ef));
    CHECK_FALSE(matches(made, "ababdd" + ef + "efefef"));
    CHECK_FALSE(matches(made, "ababdd" + ef.substr(2)));
    CHECK_FALSE(matches(made, "ababdd" + ef + "g"));
  }

  TEST_CASE("gbnf: left recursion, hidden left recursion, cycles and ambiguity") {
    const Grammar sums = grammar(
        "root ::= root \"+\" term | term\n"
        "term ::= term \"*\" factor | factor\n"
        "factor ::= [0-9] | \"(\" root \")\"");
    CHECK(matches(sums, "1+2*3*(4+5)+6"));
    CHECK_FALSE(matches(sums, "1+"));
    CHECK_FALSE(matches(sums, "1+(2"));
    const Grammar hidden = grammar("root ::= maybe root \"x\" | \"y\"\nmaybe ::= \"m\"?");
    CHECK(matches(hidden, "yxx"));
    CHECK(matches(hidden, "mmyxx"));
    CHECK_FALSE(matches(hidden, "mmmyxx"));
    const Grammar cycle = grammar("root ::= root | other | \"a\"\nother ::= root | \"b\"");
    CHECK(matches(cycle, "a"));
    CHECK(matches(cycle, "b"));
    CHECK_FALSE(matches(cycle, "ab"));
    const Grammar ambiguous = grammar("root ::= root root | \"a\" | \"\"");
    CHECK(matches(ambiguous, ""));
    CHECK(matches(ambiguous, std::string(60, 'a')));
    CHECK_FALSE(matches(ambiguous, "ab"));
  }

  TEST_CASE("gbnf: right recursion takes constant space") {
    const Grammar list = grammar("root ::= \"a\" root | \"a\"");
    CHECK(matches(list, std::string(300000, 'a')));
    const Grammar nested = grammar("root ::= \"(\" root \")\" | \"x\"");
    CHECK(matches(nested, std::string(2000, '(') + "x" + std::string(2000, ')')));
    CHECK_FALSE(matches(nested, std::string(2000, '(') + "x" + std::string(1999, ')')));
    const auto too_deep = nested.matches(std::string(3000000, '('));
    REQUIRE_FALSE(too_deep.ok());
    CHECK(too_deep.error().message.find("nests too deeply") != std::string::npos);
  }

  TEST_CASE("gbnf: impossible grammars are refused by a sentence") {
    check_error("", "[root] is not a rule");
    check_error("start ::= \"a\"", "[root] is not a rule");
    check_error("root ::= \"a\" root", "[root] (line 1, column 1) can never end");
    check_error("root ::= \"a\" | b\nb ::= c\nc ::= b \"x\"",
                "[b] (line 2, column 1) can never end");
    check_error("root ::= item", "[item] is used in line 1, column 14");
    check_error("root ::= \"a\"\nroot ::= \"b\"",
                "defined in line 1, column 1 and again in line 2");
    check_error("root ::= \"a", "line 1, column 12: a literal has no closing quote");
    check_error("root ::= [a", "no closing bracket");
    check_error("root ::= [z-a]", "ends before it begins");
    check_error("root ::= []", "holds no character");
    check_error("root ::= [^\\x00-\\U0010FFFF]", "holds no character");
    check_error("root ::= \"\\q\"", "unknown escape");
    check_error("root ::= \"\\ud800\"", "no Unicode character");
    check_error("root ::= \"\\u12\"", "needs 4 hexadecimal digits");
    check_error("root ::= ( \"a\"", "expected ')'");
    check_error("root ::= \"a\" )", "expected the rule's end, but found ')'");
    check_error("root = \"a\"", "expected ::=");
    check_error("root ::= * \"a\"", "nothing in front");
    check_error("root ::= \"a\"{3,2}", "impossible");
    check_error("root ::= \"a\"{}", "expected a number");
    check_error("root ::= \"a\"{1,99999}", "beyond the limit of 10000");
    check_error("root ::= \"a\"{2", "expected '}'");
    check_error("root ::= <think>", "not supported");
    std::string stacked = "root ::= \"a\"";
    for (int i = 0; i < 100000; ++i) stacked += "{1}";
    check_error(stacked, "more than the limit of 10 repetitions");
    check_error("root ::= \"a\"" + std::string(100000, '+'), "more than the limit of 10");
    check_error("root ::= \"a\" ; \"b\"", "found ';'");
    check_error(std::string("root ::= \"\xFF\""), "not valid UTF-8");
    check_error("root ::= " + std::string(200, '(') + "\"a\"" + std::string(200, ')'),
                "nest deeper");
  }
}
