// What a BPE model looks up for every character and word. It looks up tokens of one character, the
// pairs of characters that merges join across, and words that are one token. Needs: PairTable.
//
// Threading: immutable once filled.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/byte_pair_merger.h"
#include "text/word_cache.h"

namespace vkformer {

constexpr int32_t kNoToken = -1;

// A character as a token.
struct CharToken {
  int32_t id = kNoToken;
  uint16_t join_code = 0xFFFF;  // of the characters that the first merges join
};

// Tokens of one character, by code point: pages of 256.
class CharTokens {
 public:
  CharTokens() : pages_(1), common_joins_(kCommon) {}

  void add(char32_t c, int32_t id) {
    uint16_t& page = page_of_[c >> 8];
    if (page == 0) {
      page = static_cast<uint16_t>(pages_.size());
      pages_.emplace_back();
    }
    pages_[page][c & 0xFF].id = id;
  }
  // Precondition: a Unicode scalar value.
  const CharToken& find(char32_t c) const { return pages_[page_of_[c >> 8]][c & 0xFF]; }

  // Makes room for joins. Call it before add_join(), once.
  void reserve_joins(size_t pairs) { other_joins_.reserve(pairs); }
  // A merge has a left part that ends with `left` and a right part that starts with `right`.
  // Preconditions: both are tokens, no more distinct pairs than reserved.
  void add_join(char32_t left, char32_t right) {
    const uint16_t row = add_code(left);
    const uint16_t column = add_code(right);
    if (row < kCommon && column < kCommon) {
      common_joins_[row].set(column);
    } else {
      other_joins_.set(find(left).id, find(right).id, {});
    }
  }
  // Whether a merge may join across two characters. Precondition: both are tokens.
  bool joins(const CharToken& left, const CharToken& right) const {
    if (left.join_code < kCommon && right.join_code < kCommon) {
      return common_joins_[left.join_code].test(right.join_code);
    }
    return other_joins_.find(left.id, right.id) != nullptr;
  }

 private:
  // A bit per pair for that many characters: a table of all pairs would stay in no fast memory.
  static constexpr uint16_t kCommon = 256;

  uint16_t add_code(char32_t c) {
    CharToken& token = pages_[page_of_[c >> 8]][c & 0xFF];
    if (token.join_code >= kCommon && used_ < kCommon) token.join_code = used_++;
    return token.join_code;
  }

  std::array<uint16_t, 0x1100> page_of_{};  // page 0 is empty
  std::vector<std::array<CharToken, 256>> pages_;
  uint16_t used_ = 0;
  std::vector<std::bitset<kCommon>> common_joins_;
  PairTable other_joins_;  // by ids; the rules in it mean nothing
};

// Words that are one token, by WordCache::hash_of. Another word may have the same hash.
class WholeTokens {
 public:
  // Makes room for `count` words. Call it before add(), once.
  void reserve(size_t count) { slots_.assign(std::bit_ceil(2 * count + 1), Slot()); }
  // Precondition: no more words than reserved.
  void add(std::u32string_view word, int32_t id) {
    const uint32_t hash = WordCache::hash_of(word, {0, static_cast<uint32_t>(word.size())});
    size_t at = place_of(hash);
    while (slots_[at].id != kNoToken) at = next(at);
    slots_[at] = {hash, id};
  }
  void prefetch(uint32_t hash) const { prefetch_memory(&slots_[place_of(hash)]); }
  // The first id for which `is_word(id)` of those whose hash it is, or kNoToken.
  template <class IsWord>
  int32_t find(uint32_t hash, IsWord is_word) const {
    for (size_t at = place_of(hash); slots_[at].id != kNoToken; at = next(at)) {
      if (slots_[at].hash == hash && is_word(slots_[at].id)) return slots_[at].id;
    }
    return kNoToken;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t id = kNoToken;
  };

  size_t place_of(uint32_t hash) const { return hash & (slots_.size() - 1); }
  size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }

  std::vector<Slot> slots_ = std::vector<Slot>(1);  // a power of two, at most half full
};

}  // namespace vkformer
