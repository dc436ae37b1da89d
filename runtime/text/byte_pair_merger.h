// Byte-pair merging (Sennrich et al., 2016, "Neural Machine Translation of Rare Words with Subword
// Units"). It is the merge rules of a BPE model and how they join a word's symbols. Needs: nothing.
//
// Threading: PairTable is immutable once filled; a MergeScratch belongs to one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vkformer {

// Two neighboring symbols become `id`; of all pairs in a word the one of the lowest rank goes
// first, and of equal ones the leftmost.
struct MergeRule {
  uint32_t rank = 0;
  int32_t id = 0;
};

// Rules by pair of ids, in one flat table with linear probing.
class PairTable {
 public:
  // Makes room for `pairs` entries. Call it before set(), once.
  void reserve(size_t pairs);
  // Sets the rule of a pair; a later one replaces an earlier one. Preconditions: ids of 0 or more,
  // no more distinct pairs than reserved.
  void set(int32_t left, int32_t right, MergeRule rule);
  // The rule of a pair, or null.
  const MergeRule* find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = place_of(key);; at = (at + 1) & mask_) {
      if (entries_[at].key == key) return &entries_[at].rule;
      if (entries_[at].key == kEmpty) return nullptr;
    }
  }

 private:
  // No key: ids are 31 bits wide.
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Entry {
    uint64_t key = kEmpty;
    MergeRule rule;
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  // Fibonacci hashing (Knuth, volume 3, 6.4): the high bits of a product are well mixed.
  size_t place_of(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_) & mask_;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(1);  // a power of two, never full
  size_t mask_ = 0;
  int shift_ = 63;
};

// A symbol of a word: a token and how much of the word it covers, in a unit that the caller
// chooses.
struct MergeSymbol {
  int32_t id = 0;
  uint32_t length = 0;
};

// Working memory of merge_symbols, kept from word to word.
class MergeScratch {
 public:
  // The symbols of the word: put them here, merge, and read them here.
  std::vector<MergeSymbol> symbols;

  // Applies `rules` until none applies: n log n in the number of symbols.
  void merge(const PairTable& rules);
  // The same result, faster for short words. Precondition: tokens of one id have one length, so
  // that no two merges at a place can make the same token.
  void merge_short(const PairTable& rules);

 private:
  struct Link {
    int32_t previous = -1;
    int32_t next = -1;
  };
  // A merge that was possible when it was queued.
  struct Candidate {
    uint32_t rank = 0;
    uint32_t at = 0;
    int32_t id = 0;

    // For a heap whose top is the lowest rank, leftmost first.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void queue(const PairTable& rules, uint32_t left, uint32_t right);

  std::vector<Link> links_;
  std::vector<Candidate> heap_;
  std::vector<MergeRule> pairs_;
};

}  // namespace vkformer
