// Token rows as sessions feed them: checked ids and key masks, from tensors or ragged rows.
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "vkformer/tensor.h"

namespace vkformer {

struct TokenRows {
  int64_t batch = 0;
  int64_t tokens = 0;
  std::vector<uint32_t> ids;     // (B, T)
  std::vector<uint8_t> allowed;  // (B, T), 1 = a real token
  bool masked = false;           // a mask was given or rows differ in length

  // Mask bits, (B, ceil(T/32)) words.
  std::vector<uint32_t> mask_words() const;
  // The same rows with `tokens` columns: padded with `pad`, not allowed.
  TokenRows padded(int64_t to_tokens, int64_t pad) const;
};

// From `<name>` (B,T) and the optional mask tensor, which holds 0 and 1; ids must lie in [0,
// vocab), T in [1, most].
struct TokenLimits {
  int64_t vocab = 0;
  int64_t most = 0;  // tokens
};
Result<TokenRows> token_rows(const TensorMap& inputs, const std::string& name,
                             const std::string& mask_name, TokenLimits limits);

// From ragged rows; padded to the longest. No row may be empty.
Result<TensorMap> pad_rows(const std::vector<std::vector<int64_t>>& rows);

}  // namespace vkformer
