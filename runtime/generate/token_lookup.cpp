#include "generate/token_lookup.h"

#include <algorithm>

namespace vkformer {

std::vector<uint32_t> look_up_tokens(std::span<const uint32_t> tokens, size_t longest,
                                     size_t most) {
  if (tokens.empty() || longest == 0 || most == 0) return {};
  const size_t last = tokens.size() - 1;
  size_t best = 0;
  size_t place = 0;  // of the last token that agrees
  for (size_t at = last; at-- > 0;) {
    size_t same = 0;
    while (same < longest && same <= at && tokens[at - same] == tokens[last - same]) ++same;
    if (same <= best) continue;
    best = same;
    place = at;
    if (best == longest) break;
  }
  if (best == 0) return {};
  const auto from = tokens.begin() + static_cast<ptrdiff_t>(place) + 1;
  return {from, from + static_cast<ptrdiff_t>(std::min(most, last - place))};
}

}  // namespace vkformer
