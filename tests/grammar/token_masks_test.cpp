#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

#include "grammar/gbnf.h"
#include "grammar/grammar_walk.h"
#include "grammar/naive_grammar.h"

using namespace vkformer;
using test::is_allowed;
using test::NaiveGrammar;

namespace {

// The last token ends a text, the one before has no text.
const std::vector<std::string>& small_tokens() {
  static const std::vector<std::string> tokens = {"a",
                                                  "b",
                                                  "c",
                                                  "aa",
                                                  "ab",
                                                  "ba",
                                                  "abc",
                                                  "bca",
                                                  "\xC3",
                                                  "\xA9",
                                                  "\xC3\xA9",
                                                  "+",
                                                  "(",
                                                  ")",
                                                  "a+",
                                                  "+a",
                                                  "(a",
                                                  "a)",
                                                  "))",
                                                  "((",
                                                  "1",
                                                  "12",
                                                  ",",
                                                  "a,b",
                                                  ",a,",
                                                  "\xE2\x82",
                                                  "\xAC",
                                                  "b\n",
                                                  "\n",
                                                  "a\xC3",
                                                  "\xA9"
                                                  "b",
                                                  "\xE2",
                                                  "\x82\xAC",
                                                  "aaa",
                                                  "\xF0\x9F",
                                                  "\x98\x80",
                                                  "x",
                                                  "xy",
                                                  "y",
                                                  "yx",
                                                  "",
                                                  ""};
  return tokens;
}

GrammarConstraint constraint_of(const Grammar& grammar, const std::vector<std::string>& tokens) {
  const std::array<TokenId, 1> end = {static_cast<TokenId>(tokens.size() - 1)};
  const auto vocabulary = GrammarVocabulary::from_bytes(tokens, end);
  REQUIRE(vocabulary.ok());
  auto made = GrammarConstraint::create(grammar, *vocabulary);
  REQUIRE(made.ok());
  return std::move(made).value();
}

Grammar grammar_of(const std::string& text) {
  auto made = Grammar::from_gbnf(text);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? text : text + ": " + made.error().message));
  return std::move(made).value();
}

// Compares every bit along random texts with what the naive matcher says. Returns how many states
// were compared.
int compare_with_naive(const std::string& text, std::mt19937& random, int walks, size_t longest) {
  const auto& tokens = small_tokens();
  const size_t end = tokens.size() - 1;
  const auto tree = parse_gbnf(text, "root");
  REQUIRE(tree.ok());
  NaiveGrammar naive(*tree);
  GrammarConstraint constraint = constraint_of(grammar_of(text), tokens);
  int compared = 0;
  for (int walk = 0; walk < walks; ++walk) {
    GrammarState state = constraint.start();
    std::string written;
    while (written.size() < longest) {
      std::vector<bool> expected(tokens.size());
      for (size_t i = 0; i < end; ++i) {
        expected[i] = !tokens[i].empty() && naive.begins(written + tokens[i]);
      }
      expected[end] = naive.matches(written);
      std::vector<size_t> choices;
      for (size_t i = 0; i < end; ++i) {
        if (expected[i]) choices.push_back(i);
      }
      const auto allowed = constraint.allowed(state);
      ++compared;
      if (!allowed.ok()) {  // the vocabulary has nothing that fits
        CHECK(choices.empty());
        CHECK_FALSE(expected[end]);
        break;
      }
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (is_allowed(*allowed, i) == expected[i]) continue;
        CAPTURE(text);
        CAPTURE(written);
        CAPTURE(tokens[i]);
        FAIL_CHECK("token " << i << " should be " << (expected[i] ? "allowed" : "forbidden"));
      }
      CHECK(state.may_end() == expected[end]);
      if (choices.empty()) break;
      const size_t chosen = choices[random() % choices.size()];
      auto next = constraint.accept(state, static_cast<TokenId>(chosen));
      REQUIRE(next.ok());
      state = *next;
      written += tokens[chosen];
    }
  }
  return compared;
}

// A random expression; `room` bounds its size.
std::string random_expression(std::mt19937& random, int room) {
  static const std::vector<std::string> leaves = {"\"a\"",
                                                  "\"ab\"",
                                                  "[a-c]",
                                                  "[^a]",
                                                  ".",
                                                  "\"\xC3\xA9\"",
                                                  "\"\"",
                                                  "one",
                                                  "two",
                                                  "root",
                                                  "[\xC3\xA8-\xE2\x82\xAC]",
                                                  "\"(\"",
                                                  "[x-y]+",
                                                  "one",
                                                  "two"};
  const auto pick = random() % 8;
  if (room <= 0 || pick < 3) return leaves[random() % leaves.size()];
  const std::string first = random_expression(random, room - 1);
  if (pick < 5) return first + " " + random_expression(random, room - 2);
  if (pick < 6) return "(" + first + " | " + random_expression(random, room - 2) + ")";
  static const std::vector<std::string> marks = {"?", "*", "+", "{2}", "{1,3}", "{0,2}", "{7,9}"};
  return "(" + first + ")" + marks[random() % marks.size()];
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("token masks: every bit is what a naive matcher says") {
    std::mt19937 random(1);
    for (const char* text : {
             "root ::= [ab]+ \"c\"?",
             "root ::= root \"+\" term | term\nterm ::= \"a\" | \"(\" root \")\"",
             "root ::= (item \",\")* item\nitem ::= [a-z]{1,3} | \"1\" \"2\"?",
             "root ::= .{1,5} \"x\"",
             "root ::= [^a-c]* [\xC3\xA0-\xE2\x82\xAC] \"b\"",
             "root ::= \"a\" root \"b\" | \"ab\" | \"\"",
             "root ::= root root | \"a\" | [\xF0\x9F\x98\x80]",
             "root ::= maybe root \"x\" | \"y\"\nmaybe ::= \"a\"?",
             "root ::= \"\xC3\xA9\" | \"\xE2\x82\xAC\" line*\nline ::= \"b\\n\" | \"a\" line",
         }) {
      CHECK(compare_with_naive(text, random, 12, 10) > 20);
    }
  }

  TEST_CASE("token masks: the same for random grammars") {
    std::mt19937 random(2);
    int grammars = 0;
    int states = 0;
    while (grammars < 150) {
      std::string text;
      for (const char* name : {"root", "one", "two"}) {
        text += std::string(name) + " ::= " + random_expression(random, 4) + "\n";
      }
      if (!Grammar::from_gbnf(text).ok()) continue;  // can never end
      ++grammars;
      states += compare_with_naive(text, random, 3, 5);
    }
    CHECK(states > 500);
  }

  TEST_CASE("token masks: states are values, and texts may go on from any of them") {
    const auto& tokens = small_tokens();
    GrammarConstraint constraint =
        constraint_of(grammar_of("root ::= (\"a\" \"b\"? \",\")+ \"x\""), tokens);
    const auto token = [&](const char* text) {
      return static_cast<TokenId>(std::find(tokens.begin(), tokens.end(), text) - tokens.begin());
    };
    const GrammarState start = constraint.start();
    const GrammarState a = *constraint.accept(start, token("a"));
    const GrammarState ab = *constraint.accept(a, token("b"));
    CHECK(constraint.accept(a, token(",")).ok());
    CHECK_FALSE(constraint.accept(ab, token("b")).ok());
    CHECK(constraint.accept(a, token("b")).ok());
    CHECK_FALSE(a.may_end());
    const GrammarState done = *constraint.accept_text(a, "b,a,x");
    CHECK(done.may_end());
    const auto last = constraint.allowed(done);
    REQUIRE(last.ok());
    CHECK(is_allowed(*last, tokens.size() - 1));
    CHECK_FALSE(is_allowed(*last, 0));
    const GrammarState ended = *constraint.accept(done, static_cast<TokenId>(tokens.size() - 1));
    CHECK(ended.has_ended());
    CHECK_FALSE(constraint.accept(ended, token("a")).ok());
    CHECK(is_allowed(*constraint.allowed(ended), tokens.size() - 1));
  }

  TEST_CASE("token masks: what cannot go on is a sentence") {
    const auto& tokens = small_tokens();
    GrammarConstraint constraint = constraint_of(grammar_of("root ::= \"a\" \"Q\""), tokens);
    const auto says = [](const auto& result, const char* text) {
      REQUIRE_FALSE(result.ok());
      CHECK_MESSAGE(result.error().message.find(text) != std::string::npos, result.error().message);
    };
    const GrammarState a = *constraint.accept(constraint.start(), 0);
    says(constraint.allowed(a), "the vocabulary lacks");
    says(constraint.accept(a, 1), "nothing that the grammar allows");
    says(constraint.accept(a, -1), "not in the vocabulary");
    says(constraint.accept(a, 5000), "not in the vocabulary");
    says(constraint.accept(a, static_cast<TokenId>(tokens.size() - 2)), "has no text");
    says(constraint.accept(a, static_cast<TokenId>(tokens.size() - 1)), "ends the text");
    const std::array<TokenId, 1> far = {99};
    says(GrammarVocabulary::from_bytes(tokens, far), "ends at");
    says(GrammarVocabulary::from_bytes({}, {}), "from 1 to");
  }

  TEST_CASE("token masks: a state outlives its constraint, and another one refuses it") {
    const auto& tokens = small_tokens();
    const Grammar grammar = grammar_of("root ::= \"ab\"");
    std::optional<GrammarConstraint> constraint = constraint_of(grammar, tokens);
    const GrammarState begun = *constraint->accept_text(constraint->start(), "a");
    const GrammarState done = *constraint->accept_text(begun, "b");
    constraint.reset();
    CHECK_FALSE(begun.may_end());
    CHECK(done.may_end());
    CHECK_FALSE(done.has_ended());
    GrammarConstraint other = constraint_of(grammar, tokens);
    const auto refuses = [](const auto& result) {
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().code == ErrorCode::kInvalidArgument);
      CHECK(result.error().message.find("another constraint") != std::string::npos);
    };
    refuses(other.accept(begun, 1));
    refuses(other.accept_text(begun, "b"));
    refuses(other.allowed(begun));
    refuses(other.allowed_within(begun, 3));
  }

  TEST_CASE("token masks: old columns are forgotten and held ones stay") {
    const auto& tokens = small_tokens();
    // Every count is its own column.
    GrammarConstraint constraint = constraint_of(
        grammar_of("root ::= item{0,10000}\nitem ::= \"a\" | \"(\" item \")\" | \"b\" [a-c]{0,50}"),
        tokens);
    std::mt19937 random(3);
    const GrammarState start = constraint.start();
    const GrammarState held = *constraint.accept_text(start, "((a)");
    for (int walk = 0; walk < 30; ++walk) {
      GrammarState state = held;
      for (int step = 0; step < 2000; ++step) {
        const TokenId token = static_cast<TokenId>(random() % 20);
        auto next = constraint.accept(state, token);
        if (next.ok()) state = *next;
      }
      REQUIRE(constraint.allowed(state).ok());
    }
    const auto allowed = constraint.allowed(held);
    REQUIRE(allowed.ok());
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool fits = !tokens[i].empty() && tokens[i][0] == ')';
      if (tokens[i] != "))") CHECK(is_allowed(*allowed, i) == fits);
    }
  }
}
