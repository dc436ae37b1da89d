#include "vkformer/grammar.h"

#include <algorithm>

#include "base/check.h"
#include "base/guarded.h"
#include "base/message.h"
#include "grammar/compiled_grammar.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/token_masks.h"

namespace vkformer {
namespace {

using CompiledPtr = std::shared_ptr<const CompiledGrammar>;

constexpr int64_t kMostTokens = 1 << 24;
constexpr const char* kNoMemory = "[grammar] Memory ran out; use a smaller grammar or vocabulary.";

Result<CompiledPtr> compiled(const GrammarTree& tree) {
  VKF_ASSIGN(CompiledGrammar made, CompiledGrammar::compile(tree));
  return std::make_shared<const CompiledGrammar>(std::move(made));
}

Result<std::shared_ptr<const GrammarTokens>> make_tokens(std::vector<std::string> bytes,
                                                         std::span<const int32_t> end_ids) {
  for (const int32_t id : end_ids) {
    if (id < 0 || static_cast<size_t>(id) >= bytes.size()) {
      return invalid_argument(message(
          {"[end_ids] has the token id ", id, ", but the vocabulary ends at ", bytes.size(), "."}));
    }
    bytes[static_cast<size_t>(id)].clear();
  }
  GrammarTokens tokens;
  tokens.trie = TokenTrie::build(std::move(bytes));
  tokens.end_ids.assign(end_ids.begin(), end_ids.end());
  return std::make_shared<const GrammarTokens>(std::move(tokens));
}

}  // namespace

Result<Grammar> Grammar::from_gbnf(std::string_view text, const std::string& root) {
  return guarded(kNoMemory, [&]() -> Result<Grammar> {
    VKF_ASSIGN(const GrammarTree tree, parse_gbnf(text, root));
    VKF_ASSIGN(CompiledPtr made, compiled(tree));
    return Grammar(std::move(made));
  });
}

Result<Grammar> Grammar::from_json_schema(std::string_view schema) {
  return guarded(kNoMemory, [&]() -> Result<Grammar> {
    VKF_ASSIGN(const GrammarTree tree, parse_json_schema(schema));
    VKF_ASSIGN(CompiledPtr made, compiled(tree));
    return Grammar(std::move(made));
  });
}

Result<Grammar> Grammar::any_json() {
  return guarded(kNoMemory, [&] { return from_json_schema("true"); });
}

Result<bool> Grammar::matches(std::string_view text) const {
  return guarded(kNoMemory, [&]() -> Result<bool> {
    ParseColumns columns(*compiled_);
    ColumnRef held;
    ParseColumn* at = columns.start();
    for (size_t i = 0; i < text.size() && at != nullptr; ++i) {
      if (i % 64 == 0) {
        held = columns.hold(at);
        columns.forget();
      }
      at = columns.step(at, static_cast<uint8_t>(text[i]));
    }
    VKF_CHECK(columns.status());
    return at != nullptr && at->may_end();
  });
}

Result<GrammarVocabulary> GrammarVocabulary::create(const Tokenizer& tokenizer, int64_t size,
                                                    std::span<const int32_t> end_ids) {
  return guarded(kNoMemory, [&]() -> Result<GrammarVocabulary> {
    if (size < 1 || size > kMostTokens) {
      return invalid_argument(
          message({"[size] is ", size, "; a vocabulary has from 1 to ", kMostTokens, " tokens."}));
    }
    std::vector<std::string> bytes;
    for (int32_t id = 0; id < size; ++id) {
      VKF_ASSIGN(std::string token, tokenizer.token_bytes(id));
      bytes.push_back(std::move(token));
    }
    VKF_ASSIGN(auto tokens, make_tokens(std::move(bytes), end_ids));
    return GrammarVocabulary(std::move(tokens));
  });
}

Result<GrammarVocabulary> GrammarVocabulary::from_bytes(std::span<const std::string> bytes,
                                                        std::span<const int32_t> end_ids) {
  return guarded(kNoMemory, [&]() -> Result<GrammarVocabulary> {
    if (bytes.empty() || bytes.size() > static_cast<size_t>(kMostTokens)) {
      return invalid_argument(message({"[bytes] has ", bytes.size(),
                                       " tokens; a vocabulary has from 1 to ", kMostTokens, "."}));
    }
    VKF_ASSIGN(auto tokens, make_tokens({bytes.begin(), bytes.end()}, end_ids));
    return GrammarVocabulary(std::move(tokens));
  });
}

bool GrammarState::may_end() const {
  return has_ended_ || column_->may_end();
}

GrammarConstraint::GrammarConstraint(std::unique_ptr<TokenMasks> masks)
    : masks_(std::move(masks)) {}
GrammarConstraint::GrammarConstraint(GrammarConstraint&&) noexcept = default;
GrammarConstraint& GrammarConstraint::operator=(GrammarConstraint&&) noexcept = default;
GrammarConstraint::~GrammarConstraint() = default;

Result<GrammarConstraint> GrammarConstraint::create(const Grammar& grammar,
                                                    const GrammarVocabulary& vocabulary) {
  return guarded(kNoMemory, [&]() -> Result<GrammarConstraint> {
    return GrammarConstraint(std::make_unique<TokenMasks>(grammar.compiled_, vocabulary.tokens_));
  });
}

GrammarState GrammarConstraint::start() {
  return GrammarState(masks_->start(), false);
}

Result<GrammarState> GrammarConstraint::accept(const GrammarState& state, int32_t token) {
  return guarded(kNoMemory, [&]() -> Result<GrammarState> {
    const GrammarTokens& tokens = masks_->tokens();
    const std::string name = "[token] " + std::to_string(token);
    if (token < 0 || static_cast<size_t>(token) >= tokens.trie.vocab_size()) {
      return invalid_argument(message(
          {name, " is not in the vocabulary, which ends at ", tokens.trie.vocab_size(), "."}));
    }
    const bool ends =
        std::find(tokens.end_ids.begin(), tokens.end_ids.end(), token) != tokens.end_ids.end();
    if (ends && state.may_end()) return GrammarState(state.column_, true);
    const std::string& bytes = tokens.trie.bytes_of(token);
    if (ends || state.has_ended_ || bytes.empty()) {
      return invalid_argument(name + (ends ? " ends the text where the grammar cannot."
                                      : state.has_ended_ ? " follows the end of the text."
                                                         : " has no text and is never allowed."));
    }
    auto next = accept_text(state, bytes);
    return next ? std::move(next) : next.error().with_context(name);
  });
}

Result<GrammarState> GrammarConstraint::accept_text(const GrammarState& state,
                                                    std::string_view text) {
  return guarded(kNoMemory, [&]() -> Result<GrammarState> {
    if (state.has_ended_ && !text.empty()) {
      return invalid_argument("[text] follows the end of the text.");
    }
    VKF_ASSIGN(ColumnRef column, masks_->accept(state.column_, text));
    if (column == nullptr) {
      return invalid_argument("[text] is nothing that the grammar allows here.");
    }
    return GrammarState(std::move(column), state.has_ended_);
  });
}

Result<std::span<const uint32_t>> GrammarConstraint::allowed(const GrammarState& state) {
  return guarded(kNoMemory, [&]() -> Result<std::span<const uint32_t>> {
    if (state.has_ended_) return masks_->ending();
    return masks_->allowed(state.column_);
  });
}

Result<std::span<const uint32_t>> GrammarConstraint::allowed_within(const GrammarState& state,
                                                                    int64_t tokens) {
  return guarded(kNoMemory, [&]() -> Result<std::span<const uint32_t>> {
    if (state.has_ended_) return masks_->ending();
    return masks_->allowed_within(state.column_, tokens);
  });
}

}  // namespace vkformer
