#include "grammar/token_masks.h"

#include <algorithm>

#include "base/check.h"

namespace vkformer {
namespace {

// Sets that are kept, in bytes; beyond it all of them are dropped and made anew when needed.
constexpr size_t kMostInsideBytes = 32u << 20;
constexpr size_t kMostKeptBytes = 64u << 20;
// With more places than that, one walk for all of them is faster than one for each.
constexpr size_t kMostInsideItems = 8;

}  // namespace

TokenMasks::TokenMasks(std::shared_ptr<const CompiledGrammar> grammar,
                       std::shared_ptr<const GrammarTokens> tokens)
    : grammar_(std::move(grammar)),
      tokens_(std::move(tokens)),
      columns_(*grammar_),
      ends_(*grammar_),
      path_(tokens_->trie.max_depth() + 1),
      words_((tokens_->trie.vocab_size() + 31) / 32),
      start_(columns_.hold(columns_.start())) {}

Result<ColumnRef> TokenMasks::accept(const ColumnRef& column, std::string_view bytes) {
  columns_.forget();
  ParseColumn* at = column.get();
  for (size_t i = 0; i < bytes.size() && at != nullptr; ++i) {
    at = columns_.step(at, static_cast<uint8_t>(bytes[i]));
  }
  VKF_CHECK(columns_.status());
  return at == nullptr ? ColumnRef() : columns_.hold(at);
}

void TokenMasks::walk(ParseColumn* top, size_t begin, size_t end, std::vector<uint32_t>* exits) {
  const TokenTrie& trie = tokens_->trie;
  const auto nodes = trie.nodes();
  if (begin < end) path_[nodes[begin].depth - 1] = top;
  size_t exit_end = begin;
  for (size_t n = begin; n < end;) {
    const TokenTrie::Node& node = nodes[n];
    ParseColumn* column = columns_.step(path_[node.depth - 1], node.byte);
    if (column == nullptr) {
      n = node.skip;
      continue;
    }
    path_[node.depth] = column;
    for (const int32_t token : trie.tokens_at(n)) {
      words_[static_cast<size_t>(token) / 32] |= uint32_t{1} << (token % 32);
    }
    if (exits != nullptr && column->leaves() && n >= exit_end && trie.has_children(n)) {
      exits->push_back(static_cast<uint32_t>(n));
      exit_end = node.skip;
    }
    ++n;
  }
}

const TokenMasks::Inside& TokenMasks::inside_of(uint32_t state) {
  const auto found = inside_.find(state);
  if (found != inside_.end()) return found->second;
  std::vector<uint32_t> outer(words_.size());
  outer.swap(words_);
  Inside inside;
  walk(columns_.start_inside(state), 0, tokens_->trie.node_count(), &inside.exits);
  inside.tokens = TokenSet::of_bits(words_);
  words_.swap(outer);
  inside_bytes_ += inside.tokens.bytes() + inside.exits.size() * sizeof(uint32_t);
  return inside_.emplace(state, std::move(inside)).first->second;
}

void TokenMasks::walk_below(ParseColumn* column, size_t node) {
  const TokenTrie& trie = tokens_->trie;
  const TokenTrie::Node& top = trie.nodes()[node];
  // Any token of the subtree begins with the node's bytes.
  size_t below = node;
  while (trie.tokens_at(below).empty()) ++below;
  const std::string& bytes = trie.bytes_of(trie.tokens_at(below).front());
  for (uint32_t i = 0; i < top.depth && column != nullptr; ++i) {
    column = columns_.step(column, static_cast<uint8_t>(bytes[i]));
  }
  if (column != nullptr) walk(column, node + 1, top.skip, nullptr);
}

TokenSet TokenMasks::compute(ParseColumn* column) {
  std::fill(words_.begin(), words_.end(), 0);
  if (column->items().size() > kMostInsideItems) {
    walk(column, 0, tokens_->trie.node_count(), nullptr);
    return TokenSet::of_bits(words_);
  }
  std::vector<uint32_t> exits;
  for (const ParseItem& item : column->items()) {
    const Inside& inside = inside_of(item.state);
    inside.tokens.add_to(words_);
    exits.insert(exits.end(), inside.exits.begin(), inside.exits.end());
  }
  std::sort(exits.begin(), exits.end());
  uint32_t done = 0;  // nodes before it are walked
  for (const uint32_t node : exits) {
    if (node < done) continue;
    walk_below(column, node);
    done = tokens_->trie.nodes()[node].skip;
  }
  return TokenSet::of_bits(words_);
}

Result<std::span<const uint32_t>> TokenMasks::allowed(const ColumnRef& column) {
  columns_.forget();
  if (inside_bytes_ > kMostInsideBytes) {
    inside_.clear();
    inside_bytes_ = 0;
  }
  if (kept_bytes_ > kMostKeptBytes) {
    columns_.drop_tokens();
    kept_bytes_ = 0;
  }
  if (column->tokens == nullptr) {
    auto made = std::make_unique<const TokenSet>(compute(column.get()));
    if (!columns_.status()) {  // what the walk found inside is cut short, and must not stay
      inside_.clear();
      inside_bytes_ = 0;
    }
    VKF_CHECK(columns_.status());
    kept_bytes_ += made->bytes();
    column->tokens = std::move(made);
  }
  std::fill(words_.begin(), words_.end(), 0);
  column->tokens->add_to(words_);
  const bool may_end = column->may_end() && !tokens_->end_ids.empty();
  if (may_end) add_end_tokens();
  if (column->tokens->count() == 0 && !may_end) {
    return invalid_argument(
        column->may_end()
            ? "[grammar] The text is complete and nothing can follow it, but the vocabulary has no "
              "token that ends a text; name one."
            : "[grammar] No token of the vocabulary goes on from here, and the grammar cannot end "
              "here: the vocabulary lacks the characters that the grammar asks for.");
  }
  return std::span<const uint32_t>(words_);
}

Result<std::span<const uint32_t>> TokenMasks::allowed_within(const ColumnRef& column,
                                                             int64_t tokens) {
  const bool has_end = !tokens_->end_ids.empty();
  const auto room = static_cast<uint64_t>(std::max<int64_t>(tokens - (has_end ? 1 : 0), 0));
  VKF_ASSIGN(const auto words, allowed(column));
  // A byte puts the end off by what a rule takes to end, at most for each rule that it opens. Few
  // open more than one.
  const uint64_t jump = 2 * (ends_.longest() + 1) * tokens_->trie.max_depth();
  if (room >= ends_.of(*column) + jump || room >= column->furthest_end) return words;
  const uint64_t nearest = keep_soon_ended(column.get(), room);
  VKF_CHECK(columns_.status());
  if (!column->may_end()) return std::span<const uint32_t>(words_);
  if (nearest > room) std::fill(words_.begin(), words_.end(), 0);
  if (nearest > room && !has_end) {
    return invalid_argument(
        "[grammar] The text is complete, and what could follow it would not be in time.");
  }
  add_end_tokens();
  return std::span<const uint32_t>(words_);
}

uint64_t TokenMasks::keep_soon_ended(ParseColumn* column, uint64_t most) {
  const TokenTrie& trie = tokens_->trie;
  std::fill(words_.begin(), words_.end(), 0);
  uint64_t nearest = UINT64_MAX;
  uint64_t furthest = 0;
  path_[0] = column;
  for (size_t n = 0; n < trie.node_count();) {
    const TokenTrie::Node& node = trie.nodes()[n];
    ParseColumn* next = columns_.step(path_[node.depth - 1], node.byte);
    if (next == nullptr) {
      n = node.skip;
      continue;
    }
    path_[node.depth] = next;
    const auto tokens = trie.tokens_at(n++);
    if (tokens.empty()) continue;
    const uint64_t end = ends_.of(*next);
    furthest = std::max(furthest, end);
    if (end > most && end > nearest) continue;
    if (end < nearest && nearest > most) std::fill(words_.begin(), words_.end(), 0);
    nearest = std::min(nearest, end);
    for (const int32_t token : tokens) {
      words_[static_cast<size_t>(token) / 32] |= uint32_t{1} << (token % 32);
    }
  }
  column->furthest_end = furthest;
  return nearest;
}

std::span<const uint32_t> TokenMasks::ending() {
  std::fill(words_.begin(), words_.end(), 0);
  add_end_tokens();
  return words_;
}

void TokenMasks::add_end_tokens() {
  for (const TokenId id : tokens_->end_ids) {
    words_[static_cast<size_t>(id) / 32] |= uint32_t{1} << (id % 32);
  }
}

}  // namespace vkformer
