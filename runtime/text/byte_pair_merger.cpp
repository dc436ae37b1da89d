#include "text/byte_pair_merger.h"

#include <algorithm>

namespace vkformer {

void PairTable::reserve(size_t pairs) {
  size_t capacity = 2;
  shift_ = 63;
  while (capacity < pairs * 2) {
    capacity *= 2;
    --shift_;
  }
  mask_ = capacity - 1;
  entries_.assign(capacity, Entry());
}

void PairTable::set(int32_t left, int32_t right, MergeRule rule) {
  const uint64_t key = key_of(left, right);
  size_t at = place_of(key);
  while (entries_[at].key != kEmpty && entries_[at].key != key) at = (at + 1) & mask_;
  entries_[at] = {key, rule};
}

void MergeScratch::queue(const PairTable& rules, uint32_t left, uint32_t right) {
  const MergeRule* rule = rules.find(symbols[left].id, symbols[right].id);
  if (rule == nullptr) return;
  heap_.push_back({rule->rank, left, rule->id});
  std::push_heap(heap_.begin(), heap_.end());
}

void MergeScratch::merge(const PairTable& rules) {
  const auto count = static_cast<uint32_t>(symbols.size());
  links_.resize(count);
  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    links_[i] = {static_cast<int32_t>(i) - 1, i + 1 < count ? static_cast<int32_t>(i) + 1 : -1};
    if (i + 1 == count) break;
    const MergeRule* rule = rules.find(symbols[i].id, symbols[i + 1].id);
    if (rule != nullptr) heap_.push_back({rule->rank, i, rule->id});
  }
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty()) {
    const Candidate top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    // A symbol that went into another has length 0.
    if (symbols[top.at].length == 0 || links_[top.at].next < 0) continue;
    const auto right = static_cast<uint32_t>(links_[top.at].next);
    // What stands there now may be another pair. As in the tokenizers library, one that makes the
    // same token is as good.
    const MergeRule* rule = rules.find(symbols[top.at].id, symbols[right].id);
    if (rule == nullptr || rule->id != top.id) continue;
    symbols[top.at] = {top.id, symbols[top.at].length + symbols[right].length};
    symbols[right].length = 0;
    const int32_t next = links_[right].next;
    links_[top.at].next = next;
    if (next >= 0) links_[static_cast<uint32_t>(next)].previous = static_cast<int32_t>(top.at);
    if (links_[top.at].previous >= 0) {
      queue(rules, static_cast<uint32_t>(links_[top.at].previous), top.at);
    }
    if (next >= 0) queue(rules, top.at, static_cast<uint32_t>(next));
  }
  std::erase_if(symbols, [](const MergeSymbol& symbol) { return symbol.length == 0; });
}

void MergeScratch::merge_short(const PairTable& rules) {
  constexpr MergeRule none{UINT32_MAX, -1};
  size_t count = symbols.size();
  pairs_.resize(count);  // the last has no partner
  const auto update = [&](size_t left) {
    const MergeRule* rule =
        left + 1 < count ? rules.find(symbols[left].id, symbols[left + 1].id) : nullptr;
    pairs_[left] = rule != nullptr ? *rule : none;
  };
  for (size_t i = 0; i < count; ++i) update(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i < count; ++i) {
      if (pairs_[i].rank < pairs_[best].rank) best = i;
    }
    if (pairs_[best].id < 0) break;
    symbols[best] = {pairs_[best].id, symbols[best].length + symbols[best + 1].length};
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      pairs_[i] = pairs_[i + 1];
    }
    update(best);
    if (best > 0) update(best - 1);
  }
  symbols.resize(count);
}

}  // namespace vkformer
