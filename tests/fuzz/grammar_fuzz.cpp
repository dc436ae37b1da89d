// Fuzz target: grammars and JSON schemas: a byte that says which, the grammar, a zero byte and a
// text to match.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/token_masks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = input.find('\0');
  const std::string_view source = input.substr(0, cut);
  const std::string_view text = cut == input.npos ? "" : input.substr(cut + 1);
  const auto tree =
      data[0] % 2 == 0 ? vkformer::parse_gbnf(source, "root") : vkformer::parse_json_schema(source);
  if (!tree.ok()) return 0;
  auto grammar = vkformer::CompiledGrammar::compile(*tree);
  if (!grammar.ok()) return 0;
  auto tokens = std::make_shared<vkformer::GrammarTokens>();
  tokens->trie = vkformer::TokenTrie::build({"a", "ab", "{", "\"", "\xC3", "\xA9", "1", "", " "});
  tokens->end_ids = {7};
  vkformer::TokenMasks masks(
      std::make_shared<const vkformer::CompiledGrammar>(std::move(grammar).value()), tokens);
  vkformer::ColumnRef column = masks.start();
  for (size_t i = 0; i < text.size() && column != nullptr; ++i) {
    const auto allowed = masks.allowed(column);
    auto next = masks.accept(column, text.substr(i, 1));
    if (!next.ok()) break;
    // A byte that is its own token goes on exactly where its token is allowed.
    const size_t token = std::string_view(
                             "a.{\".\xA9"
                             "1. ")
                             .find(text[i]);
    if (allowed.ok() && token != std::string_view::npos && text[i] != '.') {
      if (((*allowed)[0] >> token & 1) != (*next != nullptr)) __builtin_trap();
    }
    column = *next;
  }
  return 0;
}
