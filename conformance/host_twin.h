// The host's twin of reproducible precision: what the nodes of a graph give, in plain floats and in
// the order of docs/reproducible.md. A device must give the same bits. The references in double
// (reference/) say what is right; this says what is the same.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"
#include "vkformer/tensor.h"

namespace vkformer::conformance {

// What the graph's nodes write, by the names of external tensors. `inputs` binds the others.
// Nothing where a node is of an operator, or of a form of one, that has no twin.
std::optional<TensorMap> twin_outputs(const Graph& graph, const TensorMap& inputs);

// Whether an operator's reference is its twin as well: it moves, chooses or counts, and rounds
// nothing.
bool is_exact(const std::string& op);

}  // namespace vkformer::conformance
