// Random texts of a grammar, written token by token as a model would. Needs: doctest.
#pragma once

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "vkformer/grammar.h"

namespace vkformer::test {

// Tokens of several characters, of parts of characters, and that cross the borders of JSON. The
// last one ends a text.
inline std::vector<std::string> walk_tokens() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
  for (const char* token : {"\": ",
                            "\", \"",
                            "{\"",
                            "\"}",
                            "\"]",
                            "},",
                            "}]",
                            "],",
                            "[[",
                            "{}",
                            "[]",
                            "\":{\"",
                            "true",
                            "tr",
                            "ue",
                            "fal",
                            "false,",
                            "null",
                            "null}",
                            "-1",
                            "0.5",
                            "12",
                            "345",
                            "e+1",
                            ", ",
                            ",\n",
                            "\n  ",
                            "\n    ",
                            "\\\"",
                            "\\n",
                            "\\u00",
                            "\\ud83d",
                            "\\ude00",
                            "name",
                            "\"name\":",
                            "id",
                            "value",
                            "on",
                            "off",
                            "a\xC3",
                            "\xA9z",
                            "\xE2\x82",
                            "\xF0\x9F\x98\x80",
                            "aaaa",
                            "ab",
                            "20",
                            "-0",
                            "00",
                            "19",
                            ":",
                            "T1",
                            "Z\""}) {
    tokens.push_back(token);
  }
  tokens.push_back("");
  return tokens;
}

inline bool is_allowed(std::span<const uint32_t> words, size_t token) {
  return (words[token / 32] >> (token % 32) & 1) != 0;
}

// One text. After `hurry` tokens it takes what ends things wherever it can.
inline std::string random_text(GrammarConstraint& constraint,
                               const std::vector<std::string>& tokens, std::mt19937& random,
                               int hurry) {
  GrammarState state = constraint.start();
  std::string text;
  for (int step = 0;; ++step) {
    REQUIRE(step < 20000);
    const auto allowed = constraint.allowed(state);
    REQUIRE_MESSAGE(allowed.ok(), (allowed.ok() ? text : text + ": " + allowed.error().message));
    std::vector<size_t> choices;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (is_allowed(*allowed, i)) choices.push_back(i);
    }
    REQUIRE_FALSE(choices.empty());
    size_t chosen = choices[random() % choices.size()];
    if (step > hurry && random() % 4 != 0) {
      const size_t end = tokens.size() - 1;
      for (const size_t closing :
           {size_t{':'}, size_t{'0'}, size_t{']'}, size_t{'}'}, size_t{'"'}, end}) {
        if (is_allowed(*allowed, closing)) chosen = closing;
      }
    }
    auto next = constraint.accept(state, static_cast<int32_t>(chosen));
    REQUIRE_MESSAGE(next.ok(), (next.ok() ? text : text + ": " + next.error().message));
    state = *next;
    if (state.has_ended()) return text;
    text += tokens[chosen];
  }
}

}  // namespace vkformer::test
