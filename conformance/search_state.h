// A search in its middle, on the host: what operators that choose tokens and pack rows work on, and
// what they make of it.
#pragma once

#include "conformance/content.h"
#include "generate/search_layout.h"
#include "ops/token_candidates.h"
#include "reference/beam_search.h"

namespace vkformer::conformance {

// What words hold that nothing has written: a quiet NaN, and no token.
inline constexpr uint32_t kUnwritten = 0x7fc0beef;

struct SearchState {
  SearchLayout layout{};
  uint32_t position = 0;           // of the token that the step feeds in
  std::vector<uint32_t> live;      // items, in the order of their slots
  std::vector<uint32_t> starts;    // of every item: how much shorter its prompt is
  std::vector<uint32_t> search;    // words, as params/search.h lists them
  std::vector<uint32_t> ancestry;  // (R, C); empty: not bound

  uint32_t slots() const { return static_cast<uint32_t>(live.size()) * layout.p.beams; }
  uint32_t row_of(uint32_t slot) const {
    return live[slot / layout.p.beams] * layout.p.beams + slot % layout.p.beams;
  }
  // A slot's entry in the decode state.
  uint32_t entry_of(uint32_t slot) const;
  // The decode state's words.
  std::vector<uint32_t> state_words() const;

  void set_float(size_t word, double value);
  double get_float(size_t word) const;
};

// Two items of three are live; histories, ancestries and scores are random. Scores of beams differ
// by what no sum of sixty-fourths makes up for.
SearchState random_search(const SearchParams& params, uint32_t position, uint64_t seed);

// Binds the state, with its settings. Tensors that are not there stay kNoTensor.
SearchTensors bind_state(PreparedOperator& op, const SearchState& state,
                         const reference::SearchOptions& options, uint32_t prompt_length);

// What the search's last part holds.
enum class Sequences : uint8_t { kTokens, kScores };

// Expects the search, part by part, and the ancestry to be as in `after`. Finished sequences are
// compared best first, wherever they are.
Status expect_search(CheckCase& made, const SearchState& after, Sequences sequences);

}  // namespace vkformer::conformance
