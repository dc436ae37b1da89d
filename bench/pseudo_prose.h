// Prose without files: words of English shape by Zipf's law, and tokenizer files that know them.
// The same bytes on every machine.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace vkformer::bench {

// Distinct lower-case words, the most frequent first: common English ones, then words put together
// from syllables, short ones first.
std::vector<std::string> make_words(size_t count);

// Sentences of at least `bytes` bytes, with words as frequent as in English.
std::string make_prose(const std::vector<std::string>& words, size_t bytes);

// The merges that training byte pairs on `words` gives (Sennrich et al., 2016), with the
// frequencies make_prose() uses. A word's first symbol stands for the space before it, spelled
// `space`.
struct TrainedPairs {
  std::vector<std::string> symbols;         // single characters, then one per merge
  std::vector<std::pair<int, int>> merges;  // indices of symbols
  std::vector<double> frequencies;          // of symbols, when they were made
};
TrainedPairs train_pairs(const std::vector<std::string>& words, const std::string& space,
                         size_t symbols);

// Tokenizer files (JSON) of about `vocab_size` tokens for such prose.
std::string word_piece_file(const std::vector<std::string>& words, size_t vocab_size);
std::string byte_level_bpe_file(const std::vector<std::string>& words, size_t vocab_size);
std::string sentence_piece_bpe_file(const std::vector<std::string>& words, size_t vocab_size);
std::string unigram_file(const std::vector<std::string>& words, size_t vocab_size);

}  // namespace vkformer::bench
