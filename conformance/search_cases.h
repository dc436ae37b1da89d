// A search in a check, in its middle, and in the benchmark, in its first step. It is what
// token_scores, token_sample, token_candidates and the choices after them work on.
#pragma once

#include "conformance/content.h"
#include "conformance/step_graph.h"
#include "ops/token_sample.h"

namespace vkformer::conformance {

inline constexpr int64_t kSearchRows = 6, kSearchLive = 4;  // slots, of which fewer are live

// Tokens that every row has already, the first three of which were its prompt.
inline const std::vector<int64_t> kHistory = {0, 2, 0, 1, 2, 0, 2};

// A search in the middle, without any rule.
SearchTensors bind_search(PreparedOperator& op, uint32_t beams, int64_t vocab);

void bind_choice(PreparedOperator& op, SearchTensors& t, const ChoiceRow& row);

ChoiceRow plain_choice();

// (R, K, 2) words: the bits of a score and a token, as two tensors.
Result<TensorMap> split_candidates(TensorMap outputs);

inline constexpr double kPoison = 0x7fc0dead;  // what a token that is not written holds

// Logits far enough from each other that rounding does not change their order.
Array distinct_logits(int64_t vocab, uint64_t seed);

// A search in its first step; every beam of an item has a hypothesis.
SearchTensors search_tensors(StepGraph& in);

// (R, K, 2): score bits and token, best first.
TensorId candidates(StepGraph& in, const SearchParams& p);

// Settings of every row as users set them, and no rules.
TensorId choice_words_of(StepGraph& in, const SearchParams& p);

Status select_graph(StepGraph& in);

inline constexpr int64_t kVocabularies[] = {4, 7, 31, 32, 33, 127, 128, 129, 1500, 5003};
inline bool is_quick_vocabulary(int64_t vocab) {
  return vocab == 33 || vocab == 1500;
}

}  // namespace vkformer::conformance
