// Grammar: texts that a model may write, given as GBNF or as a JSON schema, and the tokens that
// keep a text within it.
//
//   Grammar            what may be written
//   GrammarVocabulary  the tokens of a model
//   GrammarConstraint  both together: which tokens may come next
//   GrammarState       how far one text has come; cheap to copy, one for every beam or sequence
//
// Threading: grammars and vocabularies are immutable handles that threads may share. A constraint,
// with the states it gave, belongs to one thread at a time. That may be a worker thread while a GPU
// runs. Nothing is global. Lifetime: a constraint keeps its grammar and vocabulary, and states keep
// what they need of their constraint, so that they may outlive it. A state of another constraint is
// an error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "vkformer/export.h"
#include "vkformer/result.h"
#include "vkformer/tokenizer.h"

namespace vkformer {

class CompiledGrammar;
class ParseColumn;
class TokenMasks;
struct GrammarTokens;

class VKFORMER_API Grammar {
 public:
  // GBNF, the notation of llama.cpp. The whole text must match the rule `root`. Left recursion and
  // ambiguity are allowed; rules that can never end are an error.
  static Result<Grammar> from_gbnf(std::string_view text, const std::string& root = "root");
  // JSON that is valid for a JSON schema (docs/grammars.md says what is supported; all else is an
  // error that names keyword and place).
  static Result<Grammar> from_json_schema(std::string_view schema);
  // Any JSON value.
  static Result<Grammar> any_json();

  // Whether the grammar matches the whole text.
  Result<bool> matches(std::string_view text) const;

 private:
  friend struct HandleAccess;
  explicit Grammar(std::shared_ptr<const CompiledGrammar> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const CompiledGrammar> impl_;
};

class VKFORMER_API GrammarVocabulary {
 public:
  // The tokens of a tokenizer with ids below `size`, which is the width of the model's logits.
  // Special tokens are never allowed, but for `end_ids`, which are where a text may end.
  static Result<GrammarVocabulary> create(const Tokenizer& tokenizer, int64_t size,
                                          std::span<const TokenId> end_ids);
  // The same of the tokens' bytes by id; tokens without bytes are never allowed.
  static Result<GrammarVocabulary> from_bytes(std::span<const std::string> bytes,
                                              std::span<const TokenId> end_ids);

 private:
  friend struct HandleAccess;
  explicit GrammarVocabulary(std::shared_ptr<const GrammarTokens> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const GrammarTokens> impl_;
};

class VKFORMER_API GrammarState {
 public:
  // Whether the text is complete as it is.
  bool may_end() const;
  // Whether a token has ended the text.
  bool has_ended() const { return impl_.has_ended; }

 private:
  friend struct HandleAccess;
  struct Impl {
    std::shared_ptr<TokenMasks> masks;  // of the constraint that gave the state
    std::shared_ptr<ParseColumn> column;
    bool has_ended = false;
  };
  explicit GrammarState(Impl impl) : impl_(std::move(impl)) {}
  Impl impl_;
};

class VKFORMER_API GrammarConstraint {
 public:
  static Result<GrammarConstraint> create(const Grammar& grammar,
                                          const GrammarVocabulary& vocabulary);

  GrammarConstraint(GrammarConstraint&&) noexcept;
  GrammarConstraint& operator=(GrammarConstraint&&) noexcept;
  ~GrammarConstraint();

  // The state of the empty text.
  GrammarState start();
  // The state after a token, or after a text that no token stands for. What the grammar does not
  // allow is an error.
  Result<GrammarState> accept(const GrammarState& state, TokenId token);
  Result<GrammarState> accept_text(const GrammarState& state, std::string_view text);
  // The tokens that may come next as bits, token t being bit t % 32 of word t / 32. Those that end
  // a text are in it where it may end, and nothing else once it has ended. Good until the next
  // call. A state that no token leads on from is an error.
  Result<std::span<const uint32_t>> allowed(const GrammarState& state);
  // The same where at most this many tokens may follow the next one, an end token included. Only
  // those may come after which that suffices, if every byte is a token. Where none is, those come
  // that are nearest.
  Result<std::span<const uint32_t>> allowed_within(const GrammarState& state, int64_t tokens);

 private:
  friend struct HandleAccess;
  explicit GrammarConstraint(std::shared_ptr<TokenMasks> impl);
  std::shared_ptr<TokenMasks> impl_;
};

}  // namespace vkformer
