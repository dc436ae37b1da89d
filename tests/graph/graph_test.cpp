#include "graph/graph.h"

#include <doctest/doctest.h>

namespace vkformer::testing {
namespace {

Node node_of(const char* op, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
  Node node;
  node.op_name = op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("graphs number tensors in the order they are added") {
    Graph graph;
    CHECK(graph.add_external("x", DType::kF32, {2, 3}) == 0);
    CHECK(graph.add_temporary("t", DType::kU32, {4}) == 1);
    CHECK(graph.add_tensor({.name = "w", .kind = TensorKind::kConstant, .constant = 7}) == 2);
    CHECK(graph.tensors().size() == 3);
    CHECK(graph.tensor(1).dtype == DType::kU32);
    CHECK(graph.tensor(1).kind == TensorKind::kTemporary);
    CHECK(graph.tensor(2).constant == 7);
    graph.tensor(1).name = "renamed";
    CHECK(graph.tensors()[1].name == "renamed");
  }

  TEST_CASE("graphs find external tensors by name, and no others") {
    Graph graph;
    graph.add_temporary("x", DType::kF32, {1});
    const TensorId x = graph.add_external("x", DType::kF32, {2});
    CHECK(graph.find_external("x") == x);
    CHECK(graph.find_external("y") == kNoTensor);
    CHECK(Graph().find_external("") == kNoTensor);
  }

  TEST_CASE("graphs put the scope in front of labels") {
    Graph graph;
    graph.add_node(node_of("first", {}, {}));
    graph.set_scope("encoder.0");
    graph.add_node(node_of("second", {}, {}));
    Node labelled = node_of("third", {}, {});
    labelled.label = "norm";
    graph.add_node(labelled);
    CHECK(graph.scope() == "encoder.0");
    CHECK(graph.nodes()[0].label.empty());
    CHECK(graph.nodes()[1].label == "encoder.0");
    CHECK(graph.nodes()[2].label == "encoder.0.norm");
  }

  TEST_CASE("graphs are decoding steps once they have a capacity") {
    Graph graph;
    CHECK_FALSE(graph.is_step());
    graph.set_step(12);
    CHECK(graph.is_step());
    CHECK(graph.row_capacity() == 12);
  }

  TEST_CASE("the dump of a graph has one line a tensor and node") {
    Graph graph;
    const TensorId x = graph.add_external("x", DType::kF32, {2, 3});
    const TensorId y = graph.add_temporary("y", DType::kF16, {});
    graph.set_scope("head");
    Node node = node_of("matmul", {x, kNoTensor}, {y});
    node.attrs_text = "trans_a";
    graph.add_node(node);
    CHECK(graph.dump() ==
          "%0 external F32 (2, 3) x\n"
          "%1 temporary F16 () y\n"
          "%1 = matmul(%0, -) trans_a  # head\n");
    CHECK(Graph().dump().empty());
  }
}

}  // namespace vkformer::testing
