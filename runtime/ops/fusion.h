// Fusion: which nodes of a graph one kernel does together. Models add plain nodes; one pass over
// the graph, before lowering, joins them by a table of patterns. So a lowering decides nothing
// about its neighbors, and tests and `vkformer plan` can say what was fused.
//
//   pattern                    the fused node          where
//   embedding + layer_norm     embedding               the gains fit into the kernel's block
//   linear + gated_activation  linear, gated           columns are pairs of gate and up
//   matmul + activation        matmul                  everywhere
//   linear + combine           linear with a residual  both terms have weight 1
//   conv + activation          conv                    there are no leading tokens
//   norm + linear              linear of a norm        a step of few rows on a GPU
//
// In all of them the first node has one output, a temporary that nothing else reads. So a value
// that is an output (a tap) or has a second reader keeps its node. The second node is the next one.
// The last pattern is the exception: its readers may be several linear layers, anywhere later, and
// each computes the norm itself. It does not apply where a node in between writes what the norm
// reads.
//
// Three joins are not patterns, because no other form of them exists. They are a layer norm's
// residual, rotary_append, and a recurrence's cell. The residual is the "add & norm" of post-norm
// layers. The graph of a pre-norm model's last norm looks the same and is cheaper as linear +
// combine.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "plan/device_caps.h"
#include "plan/plan.h"

namespace vkformer {

struct FusedGraph {
  Graph graph;  // the same tensors; those that no node uses any more are left over
  std::vector<Fusion> fusions;
};

// Applies the patterns in the table's order, each to all nodes in theirs. A second pass finds
// nothing.
FusedGraph fuse(const Graph& graph, const DeviceCaps& caps, Precision precision);

}  // namespace vkformer
