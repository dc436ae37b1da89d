// needs: search.h.
// Word offsets of the parts of the search buffer; params/search.h lists them.
uint tokens_at(SearchParams p, uint row) { return row * p.capacity; }

uint scores_at(SearchParams p, uint row) { return p.batch * p.beams * p.capacity + row; }

uint items_at(SearchParams p, uint item) { return scores_at(p, p.batch * p.beams) + item * 4u; }

// Score, then length.
uint finished_at(SearchParams p, uint item, uint place) {
  return items_at(p, p.batch) + (item * p.beams + place) * 2u;
}

uint sequence_at(SearchParams p, uint item, uint place) {
  return finished_at(p, p.batch, 0u) + (item * p.beams + place) * p.capacity;
}
