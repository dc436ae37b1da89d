// Word scanners: the regular expressions by which well-known byte-pair tokenizers cut a text into
// words. They are written out by hand because a general matcher is too slow for them. Needs:
// CharSpan.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "unicode/aligned_text.h"

namespace vkformer {

enum class WordPattern : uint8_t { kGpt2, kLlama3, kQwen2 };

// The pattern that a file spells as `regex`, if it is one of them.
std::optional<WordPattern> find_word_pattern(std::string_view regex);
// How a file spells the pattern.
std::string_view word_pattern_regex(WordPattern pattern);

// Appends every match, in order. The matches cover the text.
void scan_words(WordPattern pattern, std::u32string_view text, std::vector<CharSpan>& words);

}  // namespace vkformer
