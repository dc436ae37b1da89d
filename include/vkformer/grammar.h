// Grammar: texts that a model may write, given as GBNF or as a JSON schema, and the tokens that
// keep a text within it.
//
//   Grammar            what may be written
//   GrammarVocabulary  the tokens of a model
//   GrammarConstraint  both together: which tokens may come next
//   GrammarState       how far one text has come; cheap to copy, one for every beam or sequence
//
// Threading: grammars and vocabularies are immutable handles that threads may share. A constraint,
// with the states it gave, belongs to one thread at a time, which may be a worker thread while a
// GPU runs; nothing is global. Lifetime: a constraint keeps its grammar and vocabulary; states are
// of no use without their constraint.
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
  friend class GrammarConstraint;
  explicit Grammar(std::shared_ptr<const CompiledGrammar> compiled)
      : compiled_(std::move(compiled)) {}
  std::shared_ptr<const CompiledGrammar> compiled_;
};

class VKFORMER_API GrammarVocabulary {
 public:
  // The tokens of a tokenizer with ids below `size`, which is the width of the model's logits.
  // Special tokens are never allowed, but for `end_ids`, which are where a text may end.
  static Result<GrammarVocabulary> create(const Tokenizer& tokenizer, int64_t size,
                                          std::span<const int32_t> end_ids);
  // The same of the tokens' bytes by id; tokens without bytes are never allowed.
  static Result<GrammarVocabulary> from_bytes(std::span<const std::string> bytes,
                                              std::span<const int32_t> end_ids);

 private:
  friend class GrammarConstraint;
  explicit GrammarVocabulary(std::shared_ptr<const GrammarTokens> tokens)
      : tokens_(std::move(tokens)) {}
  std::shared_ptr<const GrammarTokens> tokens_;
};

class VKFORMER_API GrammarState {
 public:
  // Whether the text is complete as it is.
  bool may_end() const;
  // Whether a token has ended the text.
  bool has_ended() const { return has_ended_; }

 private:
  friend class GrammarConstraint;
  GrammarState(std::shared_ptr<ParseColumn> column, bool has_ended)
      : column_(std::move(column)), has_ended_(has_ended) {}
  std::shared_ptr<ParseColumn> column_;
  bool has_ended_;
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
  // The state behind a token, or behind a text that no token stands for. What the grammar does not
  // allow is an error.
  Result<GrammarState> accept(const GrammarState& state, int32_t token);
  Result<GrammarState> accept_text(const GrammarState& state, std::string_view text);
  // The tokens that may come next as bits, token t being bit t % 32 of word t / 32; those that end
  // a text where it may end, and nothing else once it has ended. Good until the next call. A state
  // that no token leads on from is an error.
  Result<std::span<const uint32_t>> allowed(const GrammarState& state);
  // The same where at most so many tokens may follow the next one, an end token included: only
  // those behind which that suffices, if every byte is a token; where none is, those that come
  // nearest.
  Result<std::span<const uint32_t>> allowed_within(const GrammarState& state, int64_t tokens);

 private:
  explicit GrammarConstraint(std::unique_ptr<TokenMasks> masks);
  std::unique_ptr<TokenMasks> masks_;
};

}  // namespace vkformer
