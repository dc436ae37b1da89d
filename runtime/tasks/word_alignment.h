// When the tokens of a decoder are said, by its cross-attention. A few heads of Whisper attend to
// the audio of the token that they predict. The times of words follow the reference implementation
// (Radford et al., 2022).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vkformer/result.h"
#include "vkformer/token.h"

namespace vkformer {

class TokenizerEngine;

// Scaled scores of cross-attention by head, token and frame, (heads, tokens, frames).
struct HeadScores {
  size_t tokens = 0;
  size_t frames = 0;
  std::vector<double> values;

  size_t heads() const { return values.size() / (tokens * frames); }
};

// Attention over the frames, normalized over the tokens, smoothed over the frames by a median of
// `width` (odd), and averaged over the heads: (tokens, frames).
std::vector<double> alignment_matrix(HeadScores scores, size_t width);

// The frame at which each token begins, on the path of dynamic time warping through costs
// (tokens, frames) that is least in sum. Tokens and frames are 1 or more.
std::vector<size_t> first_frames(std::span<const double> costs, size_t tokens, size_t frames);

// A word of a text, and its tokens [begin, end).
struct TokenWord {
  std::string text;
  size_t begin = 0;
  size_t end = 0;
};

enum class WordBreaks : uint8_t {
  kSpaces,      // words begin with spaces; signs of punctuation stand alone
  kCharacters,  // a language without spaces: each token that completes characters is a word
};

// The words of tokens without special ones.
Result<std::vector<TokenWord>> words_of_tokens(const TokenizerEngine& tokenizer,
                                               std::span<const TokenId> tokens, WordBreaks breaks);

// Puts signs of punctuation onto the words that they belong to, whose tokens, and so times, stay.
// Words without a letter that belong to no word stay words.
std::vector<TokenWord> merge_punctuation(std::vector<TokenWord> words);

}  // namespace vkformer
