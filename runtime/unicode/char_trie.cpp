#include "unicode/char_trie.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

namespace vkformer {

// Lays the nodes out breadth first, over entries sorted by their codes.
class CharTrie::Builder {
 public:
  explicit Builder(CharTrie& trie) : units_(trie.units_) {}

  // Precondition: `keys` are sorted and distinct, none of them empty, with codes from 1 to `codes`.
  void build(const std::vector<std::pair<std::u32string, int32_t>>& keys, uint32_t codes) {
    codes_ = codes;
    grow(codes + 1);
    units_[0].parent = kNoNode - 1;  // the root: taken, and no node's child
    end_ = codes + 1;
    std::deque<Range> open{{0, 0, keys.size(), 0}};
    while (!open.empty()) {
      const Range at = open.front();
      open.pop_front();
      std::vector<Range> children;
      size_t begin = at.begin;
      if (begin < at.end && keys[begin].first.size() == at.depth) {
        units_[at.node].value = keys[begin++].second;
      }
      while (begin < at.end) {
        const char32_t code = keys[begin].first[at.depth];
        size_t end = begin + 1;
        while (end < at.end && keys[end].first[at.depth] == code) ++end;
        children.push_back({static_cast<uint32_t>(code), begin, end, at.depth + 1});
        begin = end;
      }
      if (children.empty()) continue;
      const uint32_t base = at.node == 0 ? 0 : place(children);
      units_[at.node].base = base;
      for (Range& child : children) {
        child.node += base;
        units_[child.node].parent = at.node;
        open.push_back(child);
      }
    }
    const auto last = std::max_element(
        units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.base < b.base; });
    units_.resize(last->base + codes_ + 1);
  }

 private:
  // The entries [begin, end) share their first `depth` codes, which lead to `node`.
  struct Range {
    uint32_t node = 0;
    size_t begin = 0;
    size_t end = 0;
    size_t depth = 0;
  };

  bool is_free(size_t at) const { return units_[at].parent == kNoNode; }

  void grow(size_t size) {
    if (size > units_.size()) units_.resize(std::max(size, units_.size() + units_.size() / 4));
  }

  // A base at which all children fall on free places. After a number of tries it takes the end of
  // the array. A fuller array is not worth a search that gets longer with every node.
  uint32_t place(const std::vector<Range>& children) {
    while (used_from_ < units_.size() && !is_free(used_from_)) ++used_from_;
    const uint32_t first = children.front().node;
    constexpr int kMaxTries = 256;
    int tries = 0;
    for (size_t at = std::max<size_t>(used_from_, first); tries < kMaxTries; ++at, ++tries) {
      const size_t base = at - first;
      grow(base + codes_ + 1);
      const bool fits = std::all_of(children.begin(), children.end(),
                                    [&](const Range& child) { return is_free(base + child.node); });
      if (fits) return taken(base, children);
    }
    // Gaps too narrow for what has come so far are not looked at again.
    if (children.size() == 1) used_from_ += kMaxTries;
    const size_t base = std::max<size_t>(end_, first) - first;
    grow(base + codes_ + 1);
    return taken(base, children);
  }

  uint32_t taken(size_t base, const std::vector<Range>& children) {
    end_ = std::max(end_, base + children.back().node + 1);
    return static_cast<uint32_t>(base);
  }

  std::vector<Unit>& units_;
  uint32_t codes_ = 0;
  size_t used_from_ = 1;  // every place before it is taken, or given up
  size_t end_ = 1;        // every place from here on is free
};

CharTrie::CharTrie(std::vector<Entry> entries) : pages_(256, 0), units_(1) {
  // Frequent characters get low codes, which packs the array better.
  std::unordered_map<char32_t, uint32_t> counts;
  for (const Entry& entry : entries) {
    for (const char32_t c : entry.text) ++counts[c];
  }
  std::vector<std::pair<char32_t, uint32_t>> order(counts.begin(), counts.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  for (uint32_t i = 0; i < order.size(); ++i) {
    const char32_t c = order[i].first;
    if (c < 0x80) {
      ascii_[c] = i + 1;
      continue;
    }
    uint16_t& page = page_of_[c >> 8];
    if (page == 0) {
      page = static_cast<uint16_t>(pages_.size() / 256);
      pages_.resize(pages_.size() + 256, 0);
    }
    pages_[page * 256u + (c & 0xFF)] = i + 1;
  }

  std::vector<std::pair<std::u32string, int32_t>> keys;
  keys.reserve(entries.size());
  for (Entry& entry : entries) {
    if (entry.text.empty()) continue;
    for (char32_t& c : entry.text) c = code_of(c);
    keys.emplace_back(std::move(entry.text), entry.value);
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // Of equal keys keep the last.
  size_t kept = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + 1 < keys.size() && keys[i].first == keys[i + 1].first) continue;
    if (kept != i) keys[kept] = std::move(keys[i]);
    ++kept;
  }
  keys.resize(kept);
  Builder(*this).build(keys, static_cast<uint32_t>(order.size()));
}

int32_t CharTrie::find(std::u32string_view text) const {
  uint32_t node = root();
  for (const char32_t c : text) {
    node = next(node, code_of(c));
    if (node == kNoNode) return kNoValue;
  }
  return value(node);
}

}  // namespace vkformer
