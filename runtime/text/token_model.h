// Token models: a word to tokens by a vocabulary. Needs: JsonRef.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/json_access.h"

namespace vkformer {

// A token of a word; [begin, end) are code points of the word. Tokens may share a character, as the
// bytes of one do.
struct TokenPiece {
  int32_t id = 0;
  std::string token;
  uint32_t begin = 0;
  uint32_t end = 0;
};

// Token strings and ids, both ways.
class TokenTable {
 public:
  TokenTable() = default;
  TokenTable(TokenTable&&) = default;
  TokenTable& operator=(TokenTable&&) = default;

  // Adds a token. Precondition: neither the string nor the id is known.
  void add(std::string token, int32_t id);
  std::optional<int32_t> id_of(std::string_view token) const;
  // The token of an id, or null.
  const std::string* token_of(int32_t id) const;
  size_t size() const { return ids_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  // Points at the keys above, which stay where they are.
  std::unordered_map<int32_t, const std::string*> tokens_;
};

// Reads {"token": id, ...}. Two tokens with one id are an error.
Result<TokenTable> parse_token_table(const JsonRef& json);

// A model. Immutable; threads may share it.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // The tokens of one word. Precondition: `word` is not empty.
  virtual Result<std::vector<TokenPiece>> tokenize(std::u32string_view word) const = 0;
  virtual const TokenTable& table() const = 0;
};

// Reads the file's "model" by the list in model_list.cpp.
Result<std::unique_ptr<TokenModel>> parse_token_model(const JsonRef& json);

// The kinds of model, one file each.
Result<std::unique_ptr<TokenModel>> parse_word_level_model(const JsonRef& json, int depth);

}  // namespace vkformer
