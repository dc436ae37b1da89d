// TokenTable: token strings and ids, both ways. Needs: JsonRef.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "json/json_access.h"

namespace vkformer {

// Strings are found in a flat table of hashes with linear probing, ids by index where they are
// dense. Pointers it hands out stay good while it lives, moves included.
class TokenTable {
 public:
  TokenTable() = default;
  TokenTable(TokenTable&&) = default;
  TokenTable& operator=(TokenTable&&) = default;

  // Prepares for `count` tokens.
  void reserve(size_t count);
  // Adds a token. Precondition: neither the string nor the id is known, and id >= 0.
  void add(std::string token, int32_t id);
  std::optional<int32_t> id_of(std::string_view token) const;
  // The token of an id, or null.
  const std::string* token_of(int32_t id) const {
    const auto index = static_cast<size_t>(id);
    if (index < dense_.size()) return dense_[index];
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? nullptr : found->second;
  }
  // Whether the token of an id is `text`.
  bool is_token(int32_t id, std::string_view text) const {
    const auto index = static_cast<size_t>(id);
    if (index < short_.size() && short_[index].size <= kShortBytes) {
      return text == std::string_view(short_[index].text.data(), short_[index].size);
    }
    const std::string* token = token_of(id);
    return token != nullptr && *token == text;
  }
  // Appends the token of an id to a list, an empty one for an id that has none.
  void append_token(int32_t id, std::vector<std::string>& tokens) const {
    const auto index = static_cast<size_t>(id);
    if (index < short_.size() && short_[index].size <= kShortBytes) {
      // A copy of constant size, shortened: much faster than one of the true size.
      tokens.emplace_back(short_[index].text.data(), kShortBytes).resize(short_[index].size);
    } else {
      const std::string* token = token_of(id);
      tokens.push_back(token != nullptr ? *token : std::string());
    }
  }
  size_t size() const { return entries_.size(); }
  // Calls `see(const std::string& token, int32_t id) -> Status` for every token until one fails.
  template <class See>
  Status for_each(See see) const {
    for (const Entry& entry : entries_) VKF_CHECK(see(entry.token, entry.id));
    return {};
  }
  // One above the highest id, 0 without tokens.
  size_t id_limit() const { return id_limit_; }

 private:
  struct Entry {
    std::string token;
    int32_t id = 0;
  };
  // What fits into a std::string without an allocation.
  static constexpr size_t kShortBytes = 15;
  struct ShortToken {
    std::array<char, kShortBytes> text{};
    uint8_t size = 0xFF;  // for longer tokens and ids without one
  };
  struct Slot {
    uint32_t hash = 0;
    uint32_t entry = 0;  // index + 1; 0 for a free slot
  };

  void rebuild(size_t slots);
  void place(uint32_t hash, uint32_t entry);

  std::deque<Entry> entries_;
  std::vector<Slot> slots_;                                 // a power of two, at most half full
  std::vector<const std::string*> dense_;                   // by id
  std::vector<ShortToken> short_;                           // by id, as long as dense_
  std::unordered_map<int32_t, const std::string*> sparse_;  // ids beyond dense_
  size_t id_limit_ = 0;
};

// Reads {"token": id, ...}. Two tokens with one id are an error.
Result<TokenTable> parse_token_table(const JsonRef& json);

}  // namespace vkformer
