#include "unicode/char_set.h"

#include <algorithm>
#include <utility>

namespace vkformer {

CharSet::CharSet(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
  if (ranges_.empty()) return;
  std::sort(ranges_.begin(), ranges_.end());
  size_t kept = 0;
  for (size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].first <= ranges_[kept].last + 1) {
      ranges_[kept].last = std::max(ranges_[kept].last, ranges_[i].last);
    } else {
      ranges_[++kept] = ranges_[i];
    }
  }
  ranges_.resize(kept + 1);
}

bool CharSet::contains(char32_t c) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                      [](char32_t x, const Range& r) { return x < r.first; });
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

CharSet CharSet::inverted() const {
  CharSet out;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) out.ranges_.push_back({next, kLast});
  return out;
}

CharSet CharSet::united(const CharSet& other) const {
  std::vector<Range> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return CharSet(std::move(all));
}

CharSet CharSet::intersected(const CharSet& other) const {
  CharSet out;
  size_t i = 0;
  size_t j = 0;
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const Range& a = ranges_[i];
    const Range& b = other.ranges_[j];
    const char32_t first = std::max(a.first, b.first);
    const char32_t last = std::min(a.last, b.last);
    if (first <= last) out.ranges_.push_back({first, last});
    if (a.last < b.last) {
      ++i;
    } else {
      ++j;
    }
  }
  return out;
}

}  // namespace vkformer
