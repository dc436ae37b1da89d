#include "text/token_table.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace vkformer {
namespace {

// Ids up to this many times the number of tokens are found by index.
constexpr size_t kDenseFactor = 2;
constexpr size_t kDenseSlack = 1024;

// Eight bytes at a time, multiplied and folded (the scheme of Vaneev's komihash and Wang's wyhash).
uint32_t hash_bytes(std::string_view text) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  uint64_t state = 0x243F6A8885A308D3u ^ text.size();
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    state = (state ^ word) * kMultiplier;
    state ^= state >> 32;
  }
  uint64_t tail = 0;
  if (at < text.size()) std::memcpy(&tail, text.data() + at, text.size() - at);
  state = (state ^ tail) * kMultiplier;
  state ^= state >> 29;
  state *= kMultiplier;
  return static_cast<uint32_t>(state >> 32);
}

}  // namespace

void TokenTable::reserve(size_t count) {
  dense_.resize(std::max(dense_.size(), kDenseFactor * count + kDenseSlack), nullptr);
  short_.resize(dense_.size());
  size_t slots = 16;
  while (slots < 2 * count) slots *= 2;
  if (slots > slots_.size()) rebuild(slots);
}

void TokenTable::rebuild(size_t slots) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  for (const Slot& slot : old) {
    if (slot.entry != 0) place(slot.hash, slot.entry);
  }
}

void TokenTable::place(uint32_t hash, uint32_t entry) {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].entry != 0) at = (at + 1) & mask;
  slots_[at] = {hash, entry};
}

void TokenTable::add(std::string token, int32_t id) {
  const uint32_t hash = hash_bytes(token);
  if (slots_.size() < 2 * (entries_.size() + 1)) rebuild(std::max<size_t>(16, 2 * slots_.size()));
  entries_.push_back({std::move(token), id});
  place(hash, static_cast<uint32_t>(entries_.size()));
  const std::string* kept = &entries_.back().token;
  const auto index = static_cast<size_t>(id);
  if (index < dense_.size()) {
    dense_[index] = kept;
    if (kept->size() <= kShortBytes) {
      std::copy(kept->begin(), kept->end(), short_[index].text.begin());
      short_[index].size = static_cast<uint8_t>(kept->size());
    }
  } else {
    sparse_.emplace(id, kept);
  }
  id_limit_ = std::max(id_limit_, index + 1);
}

std::optional<int32_t> TokenTable::id_of(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const uint32_t hash = hash_bytes(token);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].entry != 0; at = (at + 1) & mask) {
    if (slots_[at].hash != hash) continue;
    const Entry& entry = entries_[slots_[at].entry - 1];
    if (entry.token == token) return entry.id;
  }
  return std::nullopt;
}

Result<TokenTable> parse_token_table(const JsonRef& json) {
  if (!json.node().is_object()) return json.wrong_type("an object of tokens and ids");
  TokenTable table;
  table.reserve(json.node().size());
  for (const auto& [token, value] : json.node().get_ref<const nlohmann::json::object_t&>()) {
    const auto* natural = value.get_ptr<const uint64_t*>();
    auto id = natural != nullptr && *natural <= INT32_MAX ? static_cast<int32_t>(*natural) : -1;
    if (id < 0) {  // names the place, which costs more than all else here
      const JsonRef entry(value, json.path() + "[" + token + "]");
      VKF_ASSIGN(const int64_t wide, entry.integer(0, INT32_MAX));
      id = static_cast<int32_t>(wide);
    }
    if (const std::string* other = table.token_of(id)) {
      const JsonRef entry(value, json.path() + "[" + token + "]");
      return entry.malformed("has the id " + std::to_string(id) + ", which token [" + *other +
                             "] has already; ids must be unique.");
    }
    table.add(token, id);
  }
  return table;
}

}  // namespace vkformer
