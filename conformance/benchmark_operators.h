// The table of operators at real sizes: conformance/benchmark_operators.def, as graphs with
// their contents.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "vkformer/benchmark.h"
#include "vulkan/device.h"

namespace vkformer {

struct OperatorRow {
  const char* op;
  const char* model;
  const char* call;
  const char* attributes;
  const char* inputs;
};
std::span<const OperatorRow> operator_rows();

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

// Why an operator stays far from the roofline by its nature; empty: it does not.
std::string roofline_reason(const std::string& op);

}  // namespace vkformer
