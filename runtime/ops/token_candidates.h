// token_candidates: log-probabilities of the next token, score processing (suppressed, premature
// and forced tokens) and the K best tokens of every live slot. Part of a decoding step.
//
//   logits (R, V), suppress (2, ceil(V/32)) words -> candidates (R, K, 2): f32 bits, token
//
// Scores that token_scores has made of log-probabilities are taken as they are. Where beams sample,
// the K are sampled without replacement, by noise that beam_select knows as well.
#pragma once

#include "ops/op.h"
#include "params/search.h"

namespace vkformer {

// What the operators of a search share: its capacities and the tensors that hold its state.
struct SearchTensors {
  SearchParams params;            // arg_count is filled by count_step_dispatches
  TensorId search = kNoTensor;    // params/search.h lists the parts
  TensorId state = kNoTensor;     // DecodeState and slot rows, 4096 words
  TensorId settings = kNoTensor;  // SearchSettings
  TensorId suppress = kNoTensor;  // (2, ceil(V/32)) words: never chosen, not chosen first
  TensorId choice = kNoTensor;    // params/sampling.h lists the parts; where tokens are sampled
  TensorId ancestry = kNoTensor;  // (R, C): cache row that holds position t of a beam
  TensorId step_ids = kNoTensor;  // (R): token that each slot feeds into the next step
  TensorId args = kNoTensor;      // indirect dispatch commands, then their table
};

// Words of the search buffer.
uint64_t search_words(const SearchParams& params);

// What scores are made of: logits, or their log-softmax, which beams add up.
enum class ScoresFrom : uint8_t { kLogits, kLogProbabilities };
// How beams go on.
enum class BeamChoice : uint8_t { kBest, kSampled };

Result<TensorDesc> check_token_candidates(const TensorDesc& logits, const SearchParams& params);
Result<TensorId> add_token_candidates(Graph& graph, TensorId logits, const SearchTensors& search,
                                      ScoresFrom from = ScoresFrom::kLogits,
                                      BeamChoice choice = BeamChoice::kBest);
Status lower_token_candidates(LowerContext& context, const Node& node);

}  // namespace vkformer
