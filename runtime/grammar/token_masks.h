// TokenMasks: which tokens of a vocabulary may come next in a text of a grammar.
// Needs: CompiledGrammar, ParseColumns, TokenTrie, Result.
//
// Whether a token may come next is decided for all tokens in one walk through their tree. The walk
// omits the subtree below a byte that does not fit. Most of the answer depends on the innermost
// rule alone (Dong et al., 2024, "XGrammar"). It is computed once per state of the grammar,
// together with the nodes where the rule ends inside a token. Only their subtrees are walked again
// for each context, and the result is stored with the context's column.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/parse_columns.h"
#include "grammar/shortest_ends.h"
#include "grammar/token_set.h"
#include "grammar/token_trie.h"
#include "vkformer/result.h"
#include "vkformer/token.h"

namespace vkformer {

// What a model can say: the bytes of its tokens, and the tokens that end a text.
struct GrammarTokens {
  TokenTrie trie;
  std::vector<TokenId> end_ids;  // without bytes in the trie
};

class TokenMasks {
 public:
  TokenMasks(std::shared_ptr<const CompiledGrammar> grammar,
             std::shared_ptr<const GrammarTokens> tokens);

  ColumnRef start() const { return start_; }
  // The column after a token's text, or null where the grammar does not allow it.
  Result<ColumnRef> accept(const ColumnRef& column, std::string_view bytes);
  // The allowed tokens as bits, token t being bit t % 32 of word t / 32, end tokens where the text
  // may end. Good until the next call.
  Result<std::span<const uint32_t>> allowed(const ColumnRef& column);
  // The same where at most `tokens` tokens may follow the next one, as
  // GrammarConstraint::allowed_within describes it.
  Result<std::span<const uint32_t>> allowed_within(const ColumnRef& column, int64_t tokens);
  // Only the tokens that end a text.
  std::span<const uint32_t> ending();

  const GrammarTokens& tokens() const { return *tokens_; }

 private:
  // What a state allows wherever its rule began.
  struct Inside {
    TokenSet tokens;
    std::vector<uint32_t> exits;  // nodes where the rule ends and tokens go on
  };

  const Inside& inside_of(uint32_t state);
  TokenSet compute(ParseColumn* column);
  // Adds the tokens of the nodes from `begin` to `end`, which are children of `top`'s bytes, to
  // words_. With `exits`, appends the nodes where a rule of unknown origin ends inside tokens.
  void walk(ParseColumn* top, size_t begin, size_t end, std::vector<uint32_t>* exits);
  // Adds the tokens below a node.
  void walk_below(ParseColumn* column, size_t node);
  void add_end_tokens();
  // Keeps in words_ the tokens after which the text can end within `most` bytes. Without such
  // tokens, it keeps those after which the text can end soonest. Returns the bytes of the soonest.
  uint64_t keep_soon_ended(ParseColumn* column, uint64_t most);

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::shared_ptr<const GrammarTokens> tokens_;
  ParseColumns columns_;
  ShortestEnds ends_;
  std::unordered_map<uint32_t, Inside> inside_;
  size_t inside_bytes_ = 0;
  size_t kept_bytes_ = 0;           // of the sets that columns keep, and a few that are gone
  std::vector<ParseColumn*> path_;  // by depth in the tree
  std::vector<uint32_t> words_;     // (ceil(V / 32))
  ColumnRef start_;                 // made once, so that start() needs no memory
};

}  // namespace vkformer
