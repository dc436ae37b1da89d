// The operators at real sizes, which cases/<operator>.cpp lists, as graphs with their contents.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "vkformer/benchmark.h"
#include "vulkan/device.h"

namespace vkformer {

namespace conformance {
class StepGraph;
}
// Adds the operator to a graph, at the sizes that the row gives (conformance/step_graph.h).
using GraphBuilder = Status (*)(conformance::StepGraph& graph);

struct OperatorRow {
  const char* op;
  const char* model;
  const char* call;  // the name that run_operator knows; "" where `build` makes the graph
  const char* attributes;
  const char* inputs;
  GraphBuilder build = nullptr;
};
// Of every operator, in the order of ops/op_list.def.
std::vector<OperatorRow> operator_rows();

// One entry of a row's inputs, such as "ids:below100=1,128".
struct RowInput {
  std::string name;
  std::string kind;  // empty: floats
  Shape shape;
};
Result<std::vector<RowInput>> parse_row_inputs(const std::string& text);

// Content of an external tensor before the first run.
struct TensorContent {
  TensorId tensor = kNoTensor;
  std::vector<std::byte> bytes;
};

// One operator alone.
struct OperatorGraph {
  Graph graph;
  std::vector<TensorContent> contents;
};
// An error if the table's row is wrong.
Result<OperatorGraph> make_operator_graph(const OperatorRow& row);

Result<std::vector<OperatorTime>> run_operator_rows(const std::shared_ptr<VulkanDevice>& device,
                                                    const std::string& op, int rounds);

}  // namespace vkformer
