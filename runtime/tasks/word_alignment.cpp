#include "tasks/word_alignment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "text/tokenizer_engine.h"

namespace vkformer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD, of bytes that are no character
constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
// Signs that belong to the word after them, and to the word before them.
constexpr std::string_view kOpening = "\"'“¿([{-";
constexpr std::string_view kClosing = "\"'.。,，!！?？:：”)]}、";

void to_weights(std::span<double> row) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - most);
  for (double& value : row) value /= sum;
}

// Values of one head (tokens, frames): each frame's have mean 0 and deviation 1 over the tokens. A
// frame that all tokens attend to alike says nothing and gets zeros.
void normalize_frames(std::span<double> values, size_t tokens, size_t frames) {
  const auto count = static_cast<double>(tokens);
  for (size_t f = 0; f < frames; ++f) {
    double mean = 0, square = 0;
    for (size_t t = 0; t < tokens; ++t) mean += values[t * frames + f] / count;
    for (size_t t = 0; t < tokens; ++t) {
      const double off = values[t * frames + f] - mean;
      square += off * off / count;
    }
    const double deviation = std::sqrt(square);
    for (size_t t = 0; t < tokens; ++t) {
      double& value = values[t * frames + f];
      value = deviation > 0 ? (value - mean) / deviation : 0.0;
    }
  }
}

// The median of `width` neighbors of each value of a row, which is mirrored at its ends. A row no
// longer than half of that stays as it is.
void smooth(std::span<double> row, size_t width) {
  const size_t half = width / 2;
  if (row.size() <= half) return;
  const std::vector<double> given(row.begin(), row.end());
  const auto last = static_cast<std::ptrdiff_t>(row.size()) - 1;
  std::vector<double> near(width);
  for (size_t i = 0; i < row.size(); ++i) {
    for (size_t n = 0; n < width; ++n) {
      std::ptrdiff_t at =
          std::abs(static_cast<std::ptrdiff_t>(i + n) - static_cast<std::ptrdiff_t>(half));
      if (at > last) at = 2 * last - at;
      near[n] = given[static_cast<size_t>(at)];
    }
    const auto middle = near.begin() + static_cast<std::ptrdiff_t>(half);
    std::nth_element(near.begin(), middle, near.end());
    row[i] = *middle;
  }
}

// Where a cell of the table of sums is best entered from.
enum class Step : uint8_t { kBoth, kToken, kFrame };

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool has_sign(std::string_view signs, std::string_view text) {
  return signs.find(text) != std::string_view::npos;
}

// The pieces of tokens that are whole characters.
Result<std::vector<TokenWord>> whole_pieces(const TokenizerEngine& tokenizer,
                                            std::span<const TokenId> tokens) {
  VKF_ASSIGN(const std::string all, tokenizer.decode(tokens, SpecialTokens::kInclude));
  std::vector<TokenWord> pieces;
  size_t begin = 0, offset = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    VKF_ASSIGN(std::string text,
               tokenizer.decode(tokens.subspan(begin, i + 1 - begin), SpecialTokens::kInclude));
    const size_t broken = text.find(kReplacement);
    const bool whole = broken == std::string::npos ||
                       (offset + broken < all.size() &&
                        std::string_view(all).substr(offset + broken).starts_with(kReplacement));
    if (!whole && i + 1 < tokens.size()) continue;
    offset += text.size();
    pieces.push_back({std::move(text), begin, i + 1});
    begin = i + 1;
  }
  return pieces;
}

}  // namespace

std::vector<double> alignment_matrix(HeadScores scores, size_t width) {
  const size_t map = scores.tokens * scores.frames, heads = scores.heads();
  std::vector<double> mean(map, 0.0);
  for (size_t h = 0; h < heads; ++h) {
    const std::span<double> values = std::span(scores.values).subspan(h * map, map);
    for (size_t t = 0; t < scores.tokens; ++t) {
      to_weights(values.subspan(t * scores.frames, scores.frames));
    }
    normalize_frames(values, scores.tokens, scores.frames);
    for (size_t t = 0; t < scores.tokens; ++t) {
      smooth(values.subspan(t * scores.frames, scores.frames), width);
    }
    for (size_t i = 0; i < map; ++i) mean[i] += values[i] / static_cast<double>(heads);
  }
  return mean;
}

std::vector<size_t> first_frames(std::span<const double> costs, size_t tokens, size_t frames) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<Step> steps(tokens * frames, Step::kFrame);
  // Sums up to each frame of the token above and of this one; [0] precedes all frames.
  std::vector<double> above(frames + 1, kNever), sums(frames + 1);
  above[0] = 0;
  for (size_t t = 0; t < tokens; ++t) {
    sums[0] = kNever;
    for (size_t f = 0; f < frames; ++f) {
      const double both = above[f], token = above[f + 1], frame = sums[f];
      double least = frame;
      Step step = Step::kFrame;
      if (both < token && both < frame) {
        least = both;
        step = Step::kBoth;
      } else if (token < both && token < frame) {
        least = token;
        step = Step::kToken;
      }
      sums[f + 1] = least + costs[t * frames + f];
      steps[t * frames + f] = step;
    }
    std::swap(above, sums);
  }
  std::vector<size_t> first(tokens, 0);
  size_t t = tokens - 1, f = frames - 1;
  first[t] = f;
  while (t > 0 || f > 0) {
    // Costs that are no numbers say nothing of the way, which ends at the first cell all the same.
    const Step step = f == 0 ? Step::kToken : t == 0 ? Step::kFrame : steps[t * frames + f];
    if (step != Step::kFrame) --t;
    if (step != Step::kToken) --f;
    first[t] = f;
  }
  return first;
}

Result<std::vector<TokenWord>> words_of_tokens(const TokenizerEngine& tokenizer,
                                               std::span<const TokenId> tokens, WordBreaks breaks) {
  VKF_ASSIGN(std::vector<TokenWord> pieces, whole_pieces(tokenizer, tokens));
  if (breaks == WordBreaks::kCharacters) return pieces;
  std::vector<TokenWord> words;
  for (TokenWord& piece : pieces) {
    const bool begins =
        words.empty() || piece.text.starts_with(' ') || has_sign(kPunctuation, trimmed(piece.text));
    if (begins) {
      words.push_back(std::move(piece));
      continue;
    }
    words.back().text += piece.text;
    words.back().end = piece.end;
  }
  return words;
}

std::vector<TokenWord> merge_punctuation(std::vector<TokenWord> words) {
  if (words.empty()) return words;
  for (size_t i = words.size() - 1, next = i; i-- > 0;) {
    TokenWord& word = words[i];
    if (word.text.starts_with(' ') && has_sign(kOpening, trimmed(word.text))) {
      words[next].text = word.text + words[next].text;
      word.text.clear();
    } else {
      next = i;
    }
  }
  for (size_t i = 1, last = 0; i < words.size(); ++i) {
    TokenWord& word = words[i];
    if (!words[last].text.ends_with(' ') && has_sign(kClosing, word.text)) {
      words[last].text += word.text;
      word.text.clear();
    } else {
      last = i;
    }
  }
  std::erase_if(words, [](const TokenWord& word) { return trimmed(word.text).empty(); });
  for (TokenWord& word : words) word.text = std::string(trimmed(word.text));
  return words;
}

}  // namespace vkformer
