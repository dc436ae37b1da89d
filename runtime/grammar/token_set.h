// TokenSet: some of a vocabulary's tokens, as a list or as bits, whichever is smaller.
// Needs: nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vkformer {

class TokenSet {
 public:
  // Of the tokens whose bits are set in `words`, token t being bit t % 32 of word t / 32.
  static TokenSet of_bits(std::span<const uint32_t> words);

  // Sets the bits of its tokens. Precondition: as many words as it was made of.
  void add_to(std::span<uint32_t> words) const;
  size_t count() const { return count_; }
  size_t bytes() const { return data_.capacity() * sizeof(uint32_t); }

 private:
  size_t count_ = 0;
  bool is_list_ = false;
  std::vector<uint32_t> data_;  // token ids, or words of bits
};

}  // namespace vkformer
