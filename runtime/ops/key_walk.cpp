#include "ops/key_walk.h"

#include <algorithm>

namespace vkformer {
namespace {

// Keys [begin, end).
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

// Batch, head, first and last query.
struct Group {
  uint32_t b, h, first, last;
};

Interval clamped(Interval keys, Interval bounds) {
  return {std::clamp(keys.begin, bounds.begin, bounds.end),
          std::clamp(keys.end, bounds.begin, bounds.end)};
}

// key_range.glsl
Interval key_range(const ScoreTermsParams& t, const KeyWalkSizes& sizes, const Group& group) {
  Interval keys{0, sizes.keys};
  const int64_t low = int64_t{group.first} + t.causal_offset;
  const int64_t high = int64_t{group.last} + t.causal_offset;
  if ((t.flags & VKF_TERM_CAUSAL) != 0) keys.end = std::min(keys.end, high + 1);
  if ((t.flags & VKF_TERM_WINDOW_RIGHT) != 0) {
    keys.end = std::min(keys.end, high + t.window_right + 1);
  }
  if ((t.flags & VKF_TERM_WINDOW_LEFT) != 0) {
    keys.begin = std::max(keys.begin, low - t.window_left);
  }
  keys.end = std::max<int64_t>(keys.end, 0);
  return keys;
}

// Reads of the words, 0 beyond them.
struct Words {
  std::span<const uint32_t> words;

  uint32_t operator[](uint64_t at) const { return at < words.size() ? words[at] : 0; }
};

uint64_t block_visits(const ScoreTermsParams& t, const Words& words, const KeyWalkSizes& sizes,
                      const Group& group) {
  const uint64_t blocks = words[t.sparse_offset + VKF_SPARSE_BLOCKS];
  const uint64_t size = std::max(1u, words[blocks]);
  const uint64_t item = (t.flags & VKF_TERM_BLOCKS_ONE_BATCH) != 0 ? 0 : group.b;
  const bool one_head = (t.flags & VKF_TERM_BLOCKS_ONE_HEAD) != 0;
  const uint64_t slice = one_head ? item : item * sizes.heads + group.h;
  const uint64_t row = blocks + 1 + slice * ((sizes.queries + size - 1) / size);
  const uint64_t begin = words[row + group.first / size];
  const uint64_t end = words[row + group.last / size + 1];
  return (end - begin) / 2 * size;
}

bool any_widens(const ScoreTermsParams& t, const Words& words, uint64_t tokens,
                const Group& group) {
  if ((t.flags & VKF_TERM_NO_GLOBAL_QUERIES) != 0) return false;
  for (uint64_t i = group.first; i <= group.last; ++i) {
    if ((words[tokens + 1 + i / 32] >> (i % 32) & 1u) != 0) return true;
  }
  return false;
}

Interval document_range(const ScoreTermsParams& t, const Words& words, const KeyWalkSizes& sizes,
                        const Group& group) {
  const uint64_t begins =
      words[t.sparse_offset + VKF_SPARSE_DOCUMENTS] + uint64_t{group.b} * 2 * sizes.keys;
  Interval range{sizes.keys, 0};
  for (uint64_t i = group.first; i <= group.last; ++i) {
    range.begin = std::min<int64_t>(range.begin, words[begins + i]);
    range.end = std::max<int64_t>(range.end, words[begins + sizes.keys + i]);
  }
  return range;
}

}  // namespace

uint64_t group_visits(const ScoreTermsParams& t, std::span<const uint32_t> given,
                      const KeyWalkSizes& sizes, std::span<const uint32_t, 4> place) {
  const Group group{place[0], place[1], place[2], place[3]};
  const Words words{given};
  Interval keys = key_range(t, sizes, group);
  if ((t.flags & VKF_TERM_SPARSE) == 0) return static_cast<uint64_t>(keys.size());
  if ((t.flags & VKF_TERM_BLOCKS) != 0) return block_visits(t, words, sizes, group);
  uint64_t listed = 0;
  if ((t.flags & VKF_TERM_GLOBAL) != 0) {
    const uint64_t item = 1 + (sizes.keys + 31) / 32 + sizes.keys;
    const uint64_t tokens = words[t.sparse_offset + VKF_SPARSE_GLOBAL] + group.b * item;
    listed = words[tokens];
    if (any_widens(t, words, tokens, group)) {
      listed = 0;
      keys = {0, sizes.keys};
    }
  }
  keys.end = std::max(keys.begin, keys.end);
  Interval bounds{0, sizes.keys};
  if ((t.flags & VKF_TERM_DOCUMENTS) != 0) bounds = document_range(t, words, sizes, group);
  keys = clamped(keys, bounds);
  Interval prefix{keys.begin, keys.begin};
  if ((t.flags & VKF_TERM_PREFIX) != 0) {
    const int64_t end = words[words[t.sparse_offset + VKF_SPARSE_PREFIX] + group.b];
    prefix = clamped({0, end}, bounds);
    if (prefix.begin < prefix.end && prefix.end >= keys.begin) {
      keys = {prefix.begin, std::max(prefix.end, keys.end)};
      prefix = {keys.begin, keys.begin};
    }
  }
  return listed + static_cast<uint64_t>(prefix.size() + keys.size());
}

std::optional<double> visited_pairs(const ScoreTermsParams& t, std::span<const uint32_t> words,
                                    const KeyWalkSizes& sizes, uint32_t rows) {
  const bool sparse = (t.flags & VKF_TERM_SPARSE) != 0;
  if (sparse && words.empty()) return std::nullopt;
  // Without sparse terms every head of every item visits the same keys.
  const uint32_t items = sparse ? sizes.batch : 1;
  const uint32_t heads = (t.flags & VKF_TERM_BLOCKS) != 0 ? sizes.heads : 1;
  double pairs = 0;
  for (uint32_t b = 0; b < items; ++b) {
    for (uint32_t h = 0; h < heads; ++h) {
      for (uint32_t first = 0; first < sizes.queries; first += rows) {
        const uint32_t count = std::min(rows, sizes.queries - first);
        const uint32_t place[] = {b, h, first, first + count - 1};
        pairs += static_cast<double>(count * group_visits(t, words, sizes, place));
      }
    }
  }
  return pairs * (sizes.batch / items) * (sizes.heads / heads);
}

}  // namespace vkformer
