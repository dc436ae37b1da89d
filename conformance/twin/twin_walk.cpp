#include "conformance/twin/twin_walk.h"

#include <algorithm>

namespace vkformer::conformance {
namespace {

// Keys [begin, end).
struct TwinInterval {
  size_t begin = 0, end = 0;

  TwinInterval within(const TwinInterval& bounds) const {
    return {std::clamp(begin, bounds.begin, bounds.end), std::clamp(end, bounds.begin, bounds.end)};
  }
};

}  // namespace

TwinWalk::TwinWalk(const TwinTerms& terms, size_t b, size_t h, std::pair<size_t, size_t> group)
    : terms_(terms), group_(group) {
  if (terms.flag(VKF_TERM_BLOCKS)) {
    walk_blocks(b, h);
  } else {
    walk_intervals(b);
  }
}

bool TwinWalk::counts(size_t n, size_t i) const {
  const Place& place = places_[n];
  if (place.entry == 0) return place.counts;
  const size_t size = terms_.words.words[terms_.sparse(VKF_SPARSE_BLOCKS)];
  return place.counts && i / size == place.row;
}

Real TwinWalk::bias(size_t n) const {
  return places_[n].entry == 0 ? Real(0.0f) : terms_.entry_bias(places_[n].entry);
}

// The entries of all the group's rows, one row after the other.
void TwinWalk::walk_blocks(size_t b, size_t h) {
  const std::vector<uint32_t>& words = terms_.words.words;
  const size_t size = words[terms_.sparse(VKF_SPARSE_BLOCKS)];
  for (size_t row = group_.first / size; row <= group_.second / size; ++row) {
    const auto [begin, end] = terms_.entries_of(b, h, row);
    for (size_t entry = begin; entry < end; entry += 2) {
      for (size_t key = words[entry] * size; key < (words[entry] + 1) * size; ++key) {
        places_.push_back({std::min(key, terms_.keys - 1), row, entry, key < terms_.keys});
      }
    }
  }
}

// Global keys, then a prefix, then an interval. A key that stands at two positions counts at the
// later one.
void TwinWalk::walk_intervals(size_t b) {
  const std::vector<uint32_t>& words = terms_.words.words;
  const TwinInterval all{0, terms_.keys};
  const auto [begin, end] = terms_.key_range(group_.first, group_.second);
  TwinInterval keys{begin, std::max(begin, end)};
  if (terms_.flag(VKF_TERM_GLOBAL)) {
    const size_t tokens = terms_.global_tokens(b), list = tokens + 1 + (terms_.keys + 31) / 32;
    bool widens = false;
    for (size_t i = group_.first; i <= group_.second; ++i) {
      widens = widens || terms_.query_widens(b, i);
    }
    if (widens) keys = all;
    for (size_t n = 0; !widens && n < words[tokens]; ++n) places_.push_back({words[list + n]});
  }
  TwinInterval bounds = all;
  if (terms_.flag(VKF_TERM_DOCUMENTS)) {
    const size_t begins = terms_.sparse(VKF_SPARSE_DOCUMENTS) + b * 2 * terms_.keys;
    bounds = {terms_.keys, 0};
    for (size_t i = group_.first; i <= group_.second; ++i) {
      bounds.begin = std::min<size_t>(bounds.begin, words[begins + i]);
      bounds.end = std::max<size_t>(bounds.end, words[begins + terms_.keys + i]);
    }
  }
  const bool sparse = (terms_.t.flags & VKF_TERM_SPARSE) != 0;
  if (sparse) keys = keys.within(bounds);
  TwinInterval prefix{keys.begin, keys.begin};
  if (terms_.flag(VKF_TERM_PREFIX)) {
    const size_t length = words[terms_.sparse(VKF_SPARSE_PREFIX) + b];
    prefix = TwinInterval{0, length}.within(bounds);
    if (prefix.begin < prefix.end && prefix.end >= keys.begin) {
      keys = {prefix.begin, std::max(prefix.end, keys.end)};
      prefix = {keys.begin, keys.begin};
    }
  }
  const size_t listed = places_.size();
  for (size_t key = prefix.begin; key < prefix.end; ++key) places_.push_back({key});
  for (size_t key = keys.begin; key < keys.end; ++key) places_.push_back({key});
  const auto later = [&](size_t key) {
    return std::any_of(places_.begin() + static_cast<std::ptrdiff_t>(listed), places_.end(),
                       [&](const Place& place) { return place.key == key; });
  };
  for (size_t n = 0; n < listed; ++n) places_[n].counts = !later(places_[n].key);
}

}  // namespace vkformer::conformance
