#include "generate/cached_row.h"

#include <algorithm>

namespace vkformer {

size_t CachedRow::shared(std::span<const uint32_t> tokens, const CacheReach& reach) const {
  const size_t most = std::min(tokens.size(), tokens_.size());
  size_t same = 0;
  while (same < most && tokens[same] == tokens_[same]) ++same;
  const auto written = static_cast<int64_t>(written_);
  if (reach.back >= 0 && static_cast<int64_t>(same) + reach.back < written) return 0;
  // The query at `same` attends to what is left of the last lines - ahead positions up to its own.
  // A key is gone once the position `lines` after it was written.
  const bool whole = written <= reach.lines;
  return whole || written <= static_cast<int64_t>(same) + 1 + reach.ahead ? same : 0;
}

void CachedRow::trim(size_t count) {
  if (count == 0) clear();
  if (count < tokens_.size()) tokens_.resize(count);
}

void CachedRow::wrote(size_t end) {
  written_ = std::max(written_, end);
}

void CachedRow::clear() {
  tokens_.clear();
  written_ = 0;
}

}  // namespace vkformer
