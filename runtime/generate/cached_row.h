// What one row of the KV cache holds. If a text shares a prefix with an earlier one, only the
// tokens after that prefix are fed. No GPU here: only positions and tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vkformer {

// How far back a row can be taken. A layer with fewer lines than positions (a window, a context)
// writes new keys over old ones.
struct CacheReach {
  int64_t lines = 0;  // that every layer has at least
  int64_t ahead = 0;  // of them those beyond what one query sees
  int64_t back = -1;  // tokens that states can go back from the last one written; -1: any
};

class CachedRow {
 public:
  const std::vector<uint32_t>& tokens() const { return tokens_; }
  size_t size() const { return tokens_.size(); }

  // With how many of `tokens` the row may go on. These are as many as it holds of their beginning,
  // or none where keys that those would see were written over.
  size_t shared(std::span<const uint32_t> tokens, const CacheReach& reach) const;
  // Keeps the first `count` tokens. What follows them is written over later.
  void trim(size_t count);
  void append(uint32_t token) { tokens_.push_back(token); }
  // Says that keys of the positions before `end` were written, whether or not they are kept.
  void wrote(size_t end);
  void clear();

 private:
  std::vector<uint32_t> tokens_;  // by position
  size_t written_ = 0;            // positions that were written since the row was empty
};

}  // namespace vkformer
