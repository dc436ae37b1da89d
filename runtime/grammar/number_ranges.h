// Numbers between two bounds as grammar nodes. Needs: GrammarTree.
#pragma once

#include <cstdint>
#include <string>

#include "grammar/grammar_tree.h"

namespace vkformer {

// The integers from `low` to `high`, both included, in their usual notation. Precondition:
// low <= high.
uint32_t integers_between(GrammarTree& tree, int64_t low, int64_t high);

// A bound of decimal numbers: a sign and digits, and whether the bound itself is omitted.
struct DecimalBound {
  bool is_negative = false;
  int64_t whole = 0;     // 0 or more
  std::string decimals;  // without zeros at the end
  bool is_excluded = false;

  bool is_zero() const { return whole == 0 && decimals.empty(); }
};

// The decimal numbers between two bounds, with at most `places` decimals and without exponent; none
// if the bounds are in the wrong order.
uint32_t decimals_between(GrammarTree& tree, const DecimalBound& low, const DecimalBound& high,
                          uint32_t places);

}  // namespace vkformer
