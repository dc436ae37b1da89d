// CharSet: a set of code points, as regular expressions write them in brackets.
#pragma once

#include <span>
#include <vector>

namespace vkformer {

// Immutable. At most 2^20 or so ranges, which is as many as there are code points apart.
class CharSet {
 public:
  static constexpr char32_t kLast = 0x10FFFF;

  // Both ends belong to the range.
  struct Range {
    char32_t first = 0;
    char32_t last = 0;
    auto operator<=>(const Range&) const = default;
  };

  CharSet() = default;
  // The union of ranges in any order, which may overlap.
  explicit CharSet(std::vector<Range> ranges);

  // Ordered, disjoint and not adjacent.
  std::span<const Range> ranges() const { return ranges_; }
  bool contains(char32_t c) const;
  CharSet inverted() const;
  CharSet united(const CharSet& other) const;
  CharSet intersected(const CharSet& other) const;
  auto operator<=>(const CharSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace vkformer
