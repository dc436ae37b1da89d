#include "vkformer/grammar.h"

#include <algorithm>

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "grammar/compiled_grammar.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/token_masks.h"

namespace vkformer {
namespace {

using CompiledPtr = std::shared_ptr<const CompiledGrammar>;

constexpr int64_t kMostTokens = 1 << 24;
constexpr const char* kGrammarTooLarge =
    "[grammar] Memory ran out; use a smaller grammar or vocabulary.";

Result<CompiledPtr> compiled(const GrammarTree& tree) {
  VKF_ASSIGN(CompiledGrammar made, CompiledGrammar::compile(tree));
  return std::make_shared<const CompiledGrammar>(std::move(made));
}

Result<std::shared_ptr<const GrammarTokens>> make_tokens(std::vector<std::string> bytes,
                                                         std::span<const TokenId> end_ids) {
  for (const TokenId id : end_ids) {
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

GrammarState make_state(std::shared_ptr<TokenMasks> masks, ColumnRef column, bool has_ended) {
  using Impl = std::decay_t<decltype(HandleAccess::impl(std::declval<GrammarState>()))>;
  return HandleAccess::make<GrammarState>(Impl{std::move(masks), std::move(column), has_ended});
}

// A state's column means nothing to another constraint.
Status check_owner(const GrammarState& state, const std::shared_ptr<TokenMasks>& masks) {
  if (HandleAccess::impl(state).masks == masks) return {};
  return invalid_argument(
      "[state] is of another constraint. Give one that start, accept or accept_text of this "
      "constraint returned.");
}

}  // namespace

Result<Grammar> Grammar::from_gbnf(std::string_view text, const std::string& root) {
  return guarded(kGrammarTooLarge, [&]() -> Result<Grammar> {
    VKF_ASSIGN(const GrammarTree tree, parse_gbnf(text, root));
    VKF_ASSIGN(CompiledPtr made, compiled(tree));
    return HandleAccess::make<Grammar>(std::move(made));
  });
}

Result<Grammar> Grammar::from_json_schema(std::string_view schema) {
  return guarded(kGrammarTooLarge, [&]() -> Result<Grammar> {
    VKF_ASSIGN(const GrammarTree tree, parse_json_schema(schema));
    VKF_ASSIGN(CompiledPtr made, compiled(tree));
    return HandleAccess::make<Grammar>(std::move(made));
  });
}

Result<Grammar> Grammar::any_json() {
  return guarded(kGrammarTooLarge, [&] { return from_json_schema("true"); });
}

Result<bool> Grammar::matches(std::string_view text) const {
  return guarded(kGrammarTooLarge, [&]() -> Result<bool> {
    ParseColumns columns(*impl_);
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
                                                    std::span<const TokenId> end_ids) {
  return guarded(kGrammarTooLarge, [&]() -> Result<GrammarVocabulary> {
    if (size < 1 || size > kMostTokens) {
      return invalid_argument(
          message({"[size] is ", size, "; a vocabulary has from 1 to ", kMostTokens, " tokens."}));
    }
    std::vector<std::string> bytes;
    for (TokenId id = 0; id < size; ++id) {
      VKF_ASSIGN(std::string token, tokenizer.token_bytes(id));
      bytes.push_back(std::move(token));
    }
    VKF_ASSIGN(auto tokens, make_tokens(std::move(bytes), end_ids));
    return HandleAccess::make<GrammarVocabulary>(std::move(tokens));
  });
}

Result<GrammarVocabulary> GrammarVocabulary::from_bytes(std::span<const std::string> bytes,
                                                        std::span<const TokenId> end_ids) {
  return guarded(kGrammarTooLarge, [&]() -> Result<GrammarVocabulary> {
    if (bytes.empty() || bytes.size() > static_cast<size_t>(kMostTokens)) {
      return invalid_argument(message({"[bytes] has ", bytes.size(),
                                       " tokens; a vocabulary has from 1 to ", kMostTokens, "."}));
    }
    VKF_ASSIGN(auto tokens, make_tokens({bytes.begin(), bytes.end()}, end_ids));
    return HandleAccess::make<GrammarVocabulary>(std::move(tokens));
  });
}

bool GrammarState::may_end() const {
  return impl_.has_ended || impl_.column->may_end();
}

GrammarConstraint::GrammarConstraint(std::shared_ptr<TokenMasks> impl) : impl_(std::move(impl)) {}
GrammarConstraint::GrammarConstraint(GrammarConstraint&&) noexcept = default;
GrammarConstraint& GrammarConstraint::operator=(GrammarConstraint&&) noexcept = default;
GrammarConstraint::~GrammarConstraint() = default;

Result<GrammarConstraint> GrammarConstraint::create(const Grammar& grammar,
                                                    const GrammarVocabulary& vocabulary) {
  return guarded(kGrammarTooLarge, [&]() -> Result<GrammarConstraint> {
    return HandleAccess::make<GrammarConstraint>(
        std::make_shared<TokenMasks>(HandleAccess::impl(grammar), HandleAccess::impl(vocabulary)));
  });
}

GrammarState GrammarConstraint::start() {
  return make_state(impl_, impl_->start(), false);
}

Result<GrammarState> GrammarConstraint::accept(const GrammarState& state, TokenId token) {
  return guarded(kGrammarTooLarge, [&]() -> Result<GrammarState> {
    VKF_CHECK(check_owner(state, impl_));
    const GrammarTokens& tokens = impl_->tokens();
    const std::string name = "[token] " + std::to_string(token);
    if (token < 0 || static_cast<size_t>(token) >= tokens.trie.vocab_size()) {
      return invalid_argument(message(
          {name, " is not in the vocabulary, which ends at ", tokens.trie.vocab_size(), "."}));
    }
    const bool ends =
        std::find(tokens.end_ids.begin(), tokens.end_ids.end(), token) != tokens.end_ids.end();
    if (ends && state.may_end()) return make_state(impl_, HandleAccess::impl(state).column, true);
    const std::string& bytes = tokens.trie.bytes_of(token);
    if (ends || state.has_ended() || bytes.empty()) {
      return invalid_argument(name + (ends ? " ends the text where the grammar cannot."
                                      : state.has_ended() ? " follows the end of the text."
                                                          : " has no text and is never allowed."));
    }
    auto next = accept_text(state, bytes);
    return next ? std::move(next) : next.error().with_context(name);
  });
}

Result<GrammarState> GrammarConstraint::accept_text(const GrammarState& state,
                                                    std::string_view text) {
  return guarded(kGrammarTooLarge, [&]() -> Result<GrammarState> {
    VKF_CHECK(check_owner(state, impl_));
    if (state.has_ended() && !text.empty()) {
      return invalid_argument("[text] follows the end of the text.");
    }
    VKF_ASSIGN(ColumnRef column, impl_->accept(HandleAccess::impl(state).column, text));
    if (column == nullptr) {
      return invalid_argument("[text] is nothing that the grammar allows here.");
    }
    return make_state(impl_, std::move(column), state.has_ended());
  });
}

Result<std::span<const uint32_t>> GrammarConstraint::allowed(const GrammarState& state) {
  return guarded(kGrammarTooLarge, [&]() -> Result<std::span<const uint32_t>> {
    VKF_CHECK(check_owner(state, impl_));
    if (state.has_ended()) return impl_->ending();
    return impl_->allowed(HandleAccess::impl(state).column);
  });
}

Result<std::span<const uint32_t>> GrammarConstraint::allowed_within(const GrammarState& state,
                                                                    int64_t tokens) {
  return guarded(kGrammarTooLarge, [&]() -> Result<std::span<const uint32_t>> {
    VKF_CHECK(check_owner(state, impl_));
    if (state.has_ended()) return impl_->ending();
    return impl_->allowed_within(HandleAccess::impl(state).column, tokens);
  });
}

}  // namespace vkformer
