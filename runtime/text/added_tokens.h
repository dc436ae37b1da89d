// Added tokens: strings that are tokens of their own wherever they stand in a text, before any
// splitting. Needs: AlignedText, TextNormalizer, TokenTable.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "json/json_access.h"
#include "text/normalizers.h"
#include "text/token_model.h"
#include "unicode/aligned_text.h"
#include "unicode/char_trie.h"

namespace vkformer {

// A piece of a text: an added token, or the text between two of them.
struct AddedSplit {
  AlignedText text;
  std::optional<int32_t> id;
};

class AddedTokens {
 public:
  // Reads "added_tokens" (which may be absent). Ids must agree with the model's `table`.
  static Result<AddedTokens> parse(const JsonRef& root, const TokenTable& table,
                                   const TextNormalizer* normalizer);

  // Cuts out the tokens that are looked for in the text as given ("normalized": false).
  std::vector<AddedSplit> split_original(AlignedText text) const;
  // Cuts out the others, from a normalized text.
  std::vector<AddedSplit> split_normalized(AlignedText text) const;

  // Those that the model's vocabulary lacks.
  const TokenTable& table() const { return table_; }
  // The normalized string of a token that normalization changes, or null. It is what decoding such
  // a token gives.
  const std::string* normalized_token(int32_t id) const {
    const auto found = normalized_tokens_.find(id);
    return found == normalized_tokens_.end() ? nullptr : &found->second;
  }
  bool is_special(int32_t id) const { return special_ids_.contains(id); }
  // Whether an id lies among those of added tokens: false for most tokens of most texts, at no
  // cost.
  bool may_have(int32_t id) const { return id >= first_id_ && id <= last_id_; }

 private:
  struct Token {
    int32_t id = 0;
    bool single_word = false;
    bool left_strip = false;
    bool right_strip = false;
  };
  // Tokens by their characters; the longest one that starts at a place wins, and of equal ones the
  // first.
  struct Matcher {
    std::vector<Token> tokens;
    std::vector<CharTrie::Entry> entries;  // until build()
    CharTrie trie;
    // Whether a token starts with a character, by its low bits: most characters start none.
    std::array<bool, 256> may_start{};

    void add(std::u32string content, const Token& token);
    void build();
    // The longest token at `begin`, or null; `end` is set to where it ends.
    const Token* longest(std::u32string_view text, size_t begin, size_t& end) const;
  };

  Status add(const JsonRef& json, const TokenTable& table, const TextNormalizer* normalizer);
  static std::vector<AddedSplit> split(AlignedText text, const Matcher& matcher);

  Matcher original_;
  Matcher normalized_;
  TokenTable table_;
  std::unordered_map<int32_t, std::string> normalized_tokens_;
  std::unordered_set<int32_t> special_ids_;
  int32_t first_id_ = INT32_MAX;
  int32_t last_id_ = -1;
};

}  // namespace vkformer
