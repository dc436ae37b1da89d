#include "grammar/token_set.h"

#include <bit>

namespace vkformer {

TokenSet TokenSet::of_bits(std::span<const uint32_t> words) {
  TokenSet set;
  for (const uint32_t word : words) set.count_ += static_cast<size_t>(std::popcount(word));
  set.is_list_ = set.count_ < words.size();
  if (!set.is_list_) {
    set.data_.assign(words.begin(), words.end());
    return set;
  }
  set.data_.reserve(set.count_);
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint32_t word = words[i]; word != 0; word &= word - 1) {
      set.data_.push_back(static_cast<uint32_t>(i * 32) +
                          static_cast<uint32_t>(std::countr_zero(word)));
    }
  }
  return set;
}

void TokenSet::add_to(std::span<uint32_t> words) const {
  if (is_list_) {
    for (const uint32_t token : data_) words[token / 32] |= uint32_t{1} << (token % 32);
    return;
  }
  for (size_t i = 0; i < data_.size(); ++i) words[i] |= data_[i];
}

}  // namespace vkformer
