#include "grammar/token_trie.h"

#include <algorithm>

namespace vkformer {

TokenTrie TokenTrie::build(std::vector<std::string> bytes) {
  TokenTrie trie;
  trie.bytes_ = std::move(bytes);
  const auto& all = trie.bytes_;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].empty()) trie.tokens_.push_back(static_cast<int32_t>(i));
  }
  std::sort(trie.tokens_.begin(), trie.tokens_.end(), [&](int32_t a, int32_t b) {
    return all[static_cast<size_t>(a)] < all[static_cast<size_t>(b)];
  });
  std::vector<uint32_t> open;  // the nodes of the token before, by depth
  std::string before;
  const auto close_to = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) {
      trie.nodes_[open.back()].skip = static_cast<uint32_t>(trie.nodes_.size());
    }
  };
  for (size_t t = 0; t < trie.tokens_.size(); ++t) {
    const std::string& token = trie.bytes_of(trie.tokens_[t]);
    const auto differs = std::mismatch(token.begin(), token.end(), before.begin(), before.end());
    auto shared = static_cast<size_t>(differs.first - token.begin());
    close_to(shared);
    for (; shared < token.size(); ++shared) {
      open.push_back(static_cast<uint32_t>(trie.nodes_.size()));
      trie.nodes_.push_back({0, static_cast<uint32_t>(t), static_cast<uint32_t>(shared + 1),
                             static_cast<uint8_t>(token[shared])});
    }
    trie.max_depth_ = std::max(trie.max_depth_, token.size());
    before = token;
  }
  close_to(0);
  const auto end = static_cast<uint32_t>(trie.nodes_.size());
  trie.nodes_.push_back({end + 1, static_cast<uint32_t>(trie.tokens_.size()), 0, 0});
  return trie;
}

}  // namespace vkformer
