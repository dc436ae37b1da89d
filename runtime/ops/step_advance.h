// step_advance: the last operator of a decoding step. Packs live rows to the front, moves on to the
// next position and writes the workgroup counts of the next step's indirect dispatches.
//
//   search (params/search.h) -> state, step_ids (R), args (count, 3) then table (count, 4)
#pragma once

#include "ops/token_candidates.h"

namespace vkformer {

// Most indirect dispatches a step may have; sizes the args tensor.
inline constexpr uint32_t kMaxStepDispatches = 4096;

Status check_step_advance(const Graph& graph, const SearchTensors& search);
Status add_step_advance(Graph& graph, const SearchTensors& search);
Status lower_step_advance(LowerContext& context, const Node& node);

// Tells step_advance of a finished plan how many indirect dispatches there are; an error where
// there are too many.
Status count_step_dispatches(Plan& plan);

// The table half of args for a finished step plan. For each indirect dispatch it has the live axis
// with the slots per workgroup, and the three group counts.
std::vector<uint32_t> step_arg_table(const Plan& plan);

}  // namespace vkformer
