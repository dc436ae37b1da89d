// WordCache: the tokens of words that came before in the same call, bounded in size.
// Needs: CharSpan, TokenPiece.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/token_model.h"
#include "unicode/aligned_text.h"

namespace vkformer {

// Has the processor fetch what lies at an address that will be read soon.
inline void prefetch_memory(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

// Belongs to one call, so it needs no lock; it holds no text, only where words are in the text. A
// word has two places; the older of two is given up.
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

  // Starts fetching what find() will read of words after words[at], so that it need not wait.
  // Returns the hash of one of them that find() is not going to find, if there is one.
  // Precondition: called for every word, in order, before its find().
  std::optional<uint32_t> look_ahead(std::u32string_view text, std::span<const CharSpan> words,
                                     size_t at) {
    for (; hashed_ < words.size() && hashed_ <= at + kFar; ++hashed_) {
      const uint32_t hash = hash_of(text, words[hashed_]);
      hashes_[hashed_ % kRing] = hash;
      prefetch_memory(&sets_[hash & (sets_.size() - 1)]);
    }
    if (at + kNear >= words.size()) return std::nullopt;
    const uint32_t hash = hashes_[(at + kNear) % kRing];
    for (const Entry& entry : sets_[hash & (sets_.size() - 1)]) {
      if (entry.hash != hash) continue;
      prefetch_memory(text.data() + entry.begin);
      return std::nullopt;
    }
    return hash;
  }

  // Looks for words[at]. Precondition: the range is not empty.
  Slot find(std::u32string_view text, std::span<const CharSpan> words, size_t at) const {
    return find(text, words[at], hashes_[at % kRing]);
  }
  // Looks for a word under a hash that is hash_of() it, or made of that.
  Slot find(std::u32string_view text, CharSpan word, uint32_t hash) const {
    const uint32_t length = word.end - word.begin;
    if (length > kLongest) return {false, sets_.size(), 0, hash};
    const char32_t* chars = text.data() + word.begin;
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
    if (entry.pieces == kToken) {
      entry.begin = word.begin;
      pieces.push_back({static_cast<int32_t>(entry.first), word.begin, word.end});
      return;
    }
    for (uint32_t i = 0; i < entry.pieces; ++i) {
      TokenPiece piece = kept_[entry.first + i];
      piece.begin += word.begin;
      piece.end += word.begin;
      pieces.push_back(piece);
    }
    // The latest place is the likeliest to be in the processor's cache next time.
    entry.begin = word.begin;
  }

  // Remembers that pieces [first, ...) are the tokens of `word`.
  void store(const Slot& slot, CharSpan word, const std::vector<TokenPiece>& pieces, size_t first) {
    const size_t count = pieces.size() - first;
    if (slot.set == sets_.size() || kept_.size() + count >= kToken) return;
    auto& set = sets_[slot.set];
    set[1] = set[0];
    set[0] = {slot.hash, word.begin, word.end - word.begin, static_cast<uint32_t>(kept_.size()),
              static_cast<uint32_t>(count)};
    // Most words are one token.
    if (count == 1 && !pieces[first].surface && pieces[first].begin == word.begin &&
        pieces[first].end == word.end) {
      set[0].first = static_cast<uint32_t>(pieces[first].id);
      set[0].pieces = kToken;
      return;
    }
    for (size_t i = first; i < pieces.size(); ++i) {
      kept_.push_back(pieces[i]);
      kept_.back().begin -= word.begin;
      kept_.back().end -= word.begin;
    }
  }

  // Of the first characters of text[word).
  static uint32_t hash_of(std::u32string_view text, CharSpan word) {
    constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
    const char32_t* chars = text.data() + word.begin;
    const uint32_t length = std::min(word.end - word.begin, kLongest);
    uint64_t hash = length;
    uint32_t i = 0;
    for (; i + 2 <= length; i += 2) {
      hash = (hash ^ (chars[i] | static_cast<uint64_t>(chars[i + 1]) << 32)) * kMultiplier;
    }
    if (i < length) hash = (hash ^ chars[i]) * kMultiplier;
    return static_cast<uint32_t>((hash ^ hash >> 32) * kMultiplier >> 32);
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
    uint32_t first = 0;   // of kept_, or with kToken the token's id
    uint32_t pieces = 0;  // how many, or kToken
  };
  // One piece that covers the word.
  static constexpr uint32_t kToken = 0xFFFFFFFF;

  // How far ahead words are hashed, and how far ahead their entries are looked at.
  static constexpr size_t kFar = 8;
  static constexpr size_t kNear = 4;
  static constexpr size_t kRing = 16;

  std::array<uint32_t, kRing> hashes_{};  // of the words before hashed_, by index
  size_t hashed_ = 0;
  std::vector<std::array<Entry, kWays>> sets_;
  std::vector<TokenPiece> kept_;  // of words that are not one token; their places count from it
};

}  // namespace vkformer
