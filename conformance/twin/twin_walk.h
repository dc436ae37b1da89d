// The keys that a group of neighboring queries visits. Their order is that of the kernel
// (shaders/include/key_walk.glsl), and so that of the sums.
#pragma once

#include <utility>
#include <vector>

#include "conformance/twin/score_terms.h"

namespace vkformer::conformance {

class TwinWalk {
 public:
  // Of batch b and head h; `group`: the first and the last query.
  TwinWalk(const TwinTerms& terms, size_t b, size_t h, std::pair<size_t, size_t> group);

  size_t count() const { return places_.size(); }
  size_t key(size_t n) const { return places_[n].key; }
  // Whether the key at position n counts there for query i.
  bool counts(size_t n, size_t i) const;
  // What its entry of a block map adds to its score; 0 without one.
  Real bias(size_t n) const;

 private:
  struct Place {
    size_t key;
    size_t row = 0, entry = 0;  // of a block map: the block of queries, and the entry's word
    bool counts = true;
  };
  void walk_blocks(size_t b, size_t h);
  void walk_intervals(size_t b);

  const TwinTerms& terms_;
  std::pair<size_t, size_t> group_;
  std::vector<Place> places_;
};

}  // namespace vkformer::conformance
