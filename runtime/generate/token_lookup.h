// Draft tokens without a model: what followed the same last tokens where they came before in the
// text (Saxena 2023, "Prompt Lookup Decoding").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vkformer {

// What followed the earlier place that agrees with the end of `tokens` on the most tokens. These
// are one to `longest` tokens. Of several such places it is the latest. At most `most` tokens, none
// where the last token is new.
std::vector<uint32_t> look_up_tokens(std::span<const uint32_t> tokens, size_t longest, size_t most);

}  // namespace vkformer
