#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace vkformer {

void AddedTokens::Matcher::add(std::u32string content, const Token& token) {
  if (content.empty()) return;
  may_start[content[0] & 0xFF] = true;
  entries.push_back({std::move(content), static_cast<int32_t>(tokens.size())});
  tokens.push_back(token);
}

void AddedTokens::Matcher::build() {
  std::reverse(entries.begin(), entries.end());  // the trie takes the last of equal texts
  trie = CharTrie(std::exchange(entries, {}));
}

const AddedTokens::Token* AddedTokens::Matcher::longest(std::u32string_view text, size_t begin,
                                                        size_t& end) const {
  const Token* found = nullptr;
  uint32_t node = CharTrie::root();
  for (size_t at = begin; at < text.size(); ++at) {
    const uint32_t code = trie.code_of(text[at]);
    if (code == 0) break;
    node = trie.next(node, code);
    if (node == CharTrie::kNoNode) break;
    const int32_t token = trie.value(node);
    if (token != CharTrie::kNoValue) {
      found = &tokens[static_cast<size_t>(token)];
      end = at + 1;
    }
  }
  return found;
}

Result<AddedTokens> AddedTokens::parse(const JsonRef& root, const TokenTable& table,
                                       const TextNormalizer* normalizer) {
  AddedTokens added;
  VKF_ASSIGN(const auto list, root.optional_member("added_tokens"));
  if (!list) return added;
  VKF_ASSIGN(const size_t count, list->array_size());
  for (size_t i = 0; i < count; ++i) VKF_CHECK(added.add(list->element(i), table, normalizer));
  added.original_.build();
  added.normalized_.build();
  return added;
}

Status AddedTokens::add(const JsonRef& json, const TokenTable& table,
                        const TextNormalizer* normalizer) {
  VKF_ASSIGN(const auto content_member, json.member("content"));
  VKF_ASSIGN(const auto content, content_member.text());
  VKF_ASSIGN(auto chars, content_member.code_points());
  VKF_ASSIGN(const auto id_member, json.member("id"));
  VKF_ASSIGN(const int64_t wide_id, id_member.integer(0, INT32_MAX));
  Token token;
  token.id = static_cast<int32_t>(wide_id);
  VKF_ASSIGN(token.single_word, json.boolean_or("single_word", false));
  VKF_ASSIGN(token.left_strip, json.boolean_or("lstrip", false));
  VKF_ASSIGN(token.right_strip, json.boolean_or("rstrip", false));
  VKF_ASSIGN(const bool special, json.boolean_or("special", false));
  VKF_ASSIGN(const bool in_normalized, json.boolean_or("normalized", !special));
  if (content.empty()) return {};

  for (const TokenTable* known : {&table, static_cast<const TokenTable*>(&table_)}) {
    const auto known_id = known->id_of(content);
    const std::string* known_token = known->token_of(token.id);
    if (known_id && *known_id != token.id) {
      return id_member.malformed("gives token [" + content + "] the id " +
                                 std::to_string(token.id) + ", but it has the id " +
                                 std::to_string(*known_id) + " already.");
    }
    if (known_token != nullptr && *known_token != content) {
      return id_member.malformed("gives token [" + content + "] the id " +
                                 std::to_string(token.id) + ", which token [" + *known_token +
                                 "] has already; ids must be unique.");
    }
  }
  if (!table.id_of(content) && !table_.id_of(content)) table_.add(content, token.id);
  first_id_ = std::min(first_id_, token.id);
  last_id_ = std::max(last_id_, token.id);
  if (special) special_ids_.insert(token.id);
  if (!in_normalized) {
    original_.add(std::move(chars), token);
    return {};
  }
  AlignedText text(std::move(chars));
  if (normalizer != nullptr) VKF_CHECK(normalizer->apply(text));
  std::string normalized = encode_utf8(text.chars());
  normalized_.add(std::move(text).release_chars(), token);
  if (normalized != content) normalized_tokens_[token.id] = std::move(normalized);
  return {};
}

std::vector<AddedSplit> AddedTokens::split(AlignedText text, const Matcher& matcher) {
  std::vector<AddedSplit> splits;
  const auto chars = text.chars();
  const auto push = [&](size_t begin, size_t end, std::optional<int32_t> id) {
    if (begin < end) splits.push_back({text.slice(begin, end), id});
  };
  size_t done = 0;  // everything before is in splits
  for (size_t at = 0; at < chars.size() && !matcher.tokens.empty();) {
    if (!matcher.may_start[chars[at] & 0xFF]) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at;
    const Token* token = matcher.longest(chars, begin, end);
    if (token == nullptr) {
      ++at;
      continue;
    }
    at = end;
    if (token->single_word &&
        ((begin > 0 && is_word(chars[begin - 1])) || (end < chars.size() && is_word(chars[end])))) {
      continue;
    }
    if (token->left_strip) {
      while (begin > done && is_white_space(chars[begin - 1])) --begin;
    }
    if (token->right_strip) {
      while (end < chars.size() && is_white_space(chars[end])) ++end;
    }
    push(done, begin, std::nullopt);
    push(begin, end, token->id);
    done = std::max(done, end);
  }
  if (splits.empty() && !text.empty()) {
    splits.push_back({std::move(text), std::nullopt});
  } else {
    push(done, chars.size(), std::nullopt);
  }
  return splits;
}

std::vector<AddedSplit> AddedTokens::split_original(AlignedText text) const {
  return split(std::move(text), original_);
}

std::vector<AddedSplit> AddedTokens::split_normalized(AlignedText text) const {
  return split(std::move(text), normalized_);
}

}  // namespace vkformer
