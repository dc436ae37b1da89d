// Token models: words to tokens by a vocabulary. Needs: CharSpan, JsonRef, TokenTable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "json/json_access.h"
#include "text/token_table.h"
#include "unicode/aligned_text.h"

namespace vkformer {

// A token; [begin, end) are characters of the text it was found in. Tokens may share a character,
// as the bytes of one do.
struct TokenPiece {
  int32_t id = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  // Whether the token's string is the text [begin, end) itself and not the table's for this id.
  bool surface = false;
};

// Takes a model's tokens in blocks, so that they pass through fast memory on the way to where they
// are kept.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  // To be called between words.
  void pass_on() {
    if (pieces.size() >= kBlock) flush();
  }
  // Passes on and clears `pieces`.
  virtual void flush() = 0;

  std::vector<TokenPiece> pieces;  // not passed on yet

 private:
  static constexpr size_t kBlock = 512;
};

// A model. Immutable; threads may share it.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the tokens of every word to `sink`, in order. `words` are ranges of `text`, none empty.
  // All words of a text come in one call, so that caches and scratch memory live on the stack.
  virtual Status tokenize(std::u32string_view text, std::span<const CharSpan> words,
                          PieceSink& sink) const = 0;
  virtual const TokenTable& table() const = 0;
};

// Reads the file's "model" by the list in model_list.cpp.
Result<std::unique_ptr<TokenModel>> parse_token_model(const JsonRef& json);

// The kinds of model, one file each.
Result<std::unique_ptr<TokenModel>> parse_bpe_model(const JsonRef& json, int depth);
Result<std::unique_ptr<TokenModel>> parse_unigram_model(const JsonRef& json, int depth);
Result<std::unique_ptr<TokenModel>> parse_word_level_model(const JsonRef& json, int depth);
Result<std::unique_ptr<TokenModel>> parse_word_piece_model(const JsonRef& json, int depth);

}  // namespace vkformer
