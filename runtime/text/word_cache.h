// WordCache: the tokens of words that came before in the same call, bounded in size.
// Needs: CharSpan, TokenPiece.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <vector>

#include "text/aligned_text.h"
#include "text/token_model.h"

namespace vkformer {

// Belongs to one call, so it needs no lock; it holds no text and no tokens of its own, only where
// they are in the text and in the result. A word has two places; the older of two is given up.
class WordCache {
 public:
  // `words` is how many are expected.
  explicit WordCache(size_t words) : sets_(std::bit_ceil(std::clamp(words / 2, kLeast, kMost))) {}

  // Where a word is, or where it goes.
  struct Slot {
    bool found = false;
    size_t set = 0;
    uint32_t way = 0;  // of a found word
    uint32_t hash = 0;
  };

  // Has the processor fetch what find() will read, some words ahead of it.
  void prefetch(std::u32string_view text, CharSpan word) const {
#if defined(__GNUC__)
    const uint32_t length = std::min(word.end - word.begin, kLongest);
    const uint32_t hash = hash_of(text.data() + word.begin, length);
    __builtin_prefetch(&sets_[hash & (sets_.size() - 1)]);
#else
    (void)text;
    (void)word;
#endif
  }

  // Looks for text[word). Precondition: the range is not empty.
  Slot find(std::u32string_view text, CharSpan word) const {
    const uint32_t length = word.end - word.begin;
    if (length > kLongest) return {false, sets_.size(), 0, 0};
    const char32_t* chars = text.data() + word.begin;
    const uint32_t hash = hash_of(chars, length);
    Slot slot{false, hash & (sets_.size() - 1), 0, hash};
    for (uint32_t way = 0; way < kWays && !slot.found; ++way) {
      const Entry& entry = sets_[slot.set][way];
      if (entry.hash != hash || entry.length != length) continue;
      uint32_t same = 0;
      while (same < length && chars[same] == text[entry.begin + same]) ++same;
      slot.found = same == length;
      slot.way = way;
    }
    return slot;
  }

  // Appends the tokens of the found word again, moved to `word`.
  void repeat(const Slot& slot, CharSpan word, std::vector<TokenPiece>& pieces) {
    Entry& entry = sets_[slot.set][slot.way];
    const size_t first = pieces.size();
    const uint32_t moved = word.begin - entry.begin;
    for (uint32_t i = 0; i < entry.pieces; ++i) {
      TokenPiece piece = pieces[entry.first_piece + i];
      piece.begin += moved;
      piece.end += moved;
      pieces.push_back(piece);
    }
    // The latest place is the likeliest to be in the processor's cache next time.
    if (first > UINT32_MAX) return;
    entry.begin = word.begin;
    entry.first_piece = static_cast<uint32_t>(first);
  }

  // Remembers that pieces [first, end) are the tokens of `word`.
  void store(const Slot& slot, CharSpan word, size_t first, size_t end) {
    if (slot.set == sets_.size() || end > UINT32_MAX) return;
    auto& set = sets_[slot.set];
    set[1] = set[0];
    set[0] = {slot.hash, word.begin, word.end - word.begin, static_cast<uint32_t>(first),
              static_cast<uint32_t>(end - first)};
  }

 private:
  static constexpr uint32_t kWays = 2;
  // Sets, and characters of the longest word that is kept.
  static constexpr size_t kLeast = 8;
  static constexpr size_t kMost = 1 << 14;
  static constexpr uint32_t kLongest = 64;

  struct Entry {
    uint32_t hash = 0;
    uint32_t begin = 0;
    uint32_t length = 0;  // 0 for none
    uint32_t first_piece = 0;
    uint32_t pieces = 0;
  };

  static uint32_t hash_of(const char32_t* chars, uint32_t length) {
    uint64_t hash = length;
    for (uint32_t i = 0; i < length; ++i) hash = (hash ^ chars[i]) * 0x9E3779B97F4A7C15u;
    return static_cast<uint32_t>(hash >> 32);
  }

  std::vector<std::array<Entry, kWays>> sets_;
};

}  // namespace vkformer
