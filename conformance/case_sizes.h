// The sizes and contents that row-wise operators are checked at: 1, primes, around a vector and
// around workgroups, and a real model's.
#pragma once

#include <string>
#include <vector>

#include "conformance/content.h"

namespace vkformer::conformance {

inline constexpr Content kAllContents[] = {Content::kNormal, Content::kWide, Content::kTiny,
                                           Content::kSpecial};
inline constexpr Content kOtherContents[] = {Content::kWide, Content::kTiny, Content::kSpecial};

// Row lengths: 1, primes, around a vector and around the widest workgroup, and one real model's.
inline constexpr int64_t kRowWidths[] = {1, 7, 31, 32, 33, 127, 128, 129, 257, 768};

struct RowSize {
  Shape shape;  // (rows, columns)
  Content content;
  bool quick;
  std::string name;  // "5x33", "wide/5x129"
};
// Every size with normal content, one with each other content; columns are multiples of `factor`.
std::vector<RowSize> row_sizes(int64_t factor = 1);
// The elements of such rows.
Array row_array(const RowSize& size);
// What moves elements without computing: sizes only, with normal content.
std::vector<RowSize> move_sizes();

// Rows of scores.
struct ScoreSize {
  Shape scores;  // (B, H, T, S)
  Shape rows;    // (rows, S)
  Content content;
  bool quick;
  std::string name;  // "normal/"
};
std::vector<ScoreSize> score_sizes();

}  // namespace vkformer::conformance
