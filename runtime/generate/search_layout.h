// Word offsets in the search buffer; shaders/include/search_layout.glsl has the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "params/search.h"

namespace vkformer {

struct SearchLayout {
  SearchParams p;
  size_t rows() const { return size_t{p.batch} * p.beams; }
  size_t tokens(size_t row) const { return row * p.capacity; }
  size_t score(size_t row) const { return rows() * p.capacity + row; }
  size_t item(size_t index) const { return score(rows()) + index * 4; }
  size_t finished(size_t item_index, size_t place) const {
    return item(p.batch) + (item_index * p.beams + place) * 2;
  }
  size_t sequence(size_t item_index, size_t place) const {
    return finished(p.batch, 0) + (item_index * p.beams + place) * p.capacity;
  }
};

}  // namespace vkformer
