// Operators that run_operator does not know: the parts of a decoding step, and of Reformer.
#pragma once

#include "conformance/benchmark_operators.h"

namespace vkformer {

// The operator alone, at the sizes that `numbers` name. Every slot of a step is live.
Result<OperatorGraph> make_step_graph(const std::string& op, const std::vector<RowInput>& numbers);

}  // namespace vkformer
