// A model pass as data: tensors and nodes in execution order. Knows no operator, kernel or byte.
//
// A node's attributes are opaque here; the operator that added the node (ops/) reads them back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vkformer/tensor.h"

namespace vkformer {

using TensorId = uint32_t;
inline constexpr TensorId kNoTensor = ~0u;

// Who owns the memory of a tensor.
enum class TensorKind : uint8_t {
  kTemporary,  // the activation arena; lives from its first writer to its last reader
  kExternal,   // bound by the session, by name: inputs, outputs, caches, decoding state
  kConstant,   // a weight, by its index in the model's weight table
};

struct TensorDesc {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  TensorKind kind = TensorKind::kTemporary;
  uint32_t constant = 0;  // index in the weight table, for kConstant
  uint64_t bytes =
      0;  // size in memory where packing makes it differ from shape x dtype; 0 = it does not
};

struct LowerContext;
struct Node;
// What turns a node into dispatches (ops/op.h); opaque here.
using LowerFunction = Status (*)(LowerContext& context, const Node& node);

// One operator application. `inputs` may hold kNoTensor for an absent optional input.
struct Node {
  uint16_t op = 0;  // ops/op_list.def
  LowerFunction lower = nullptr;
  const char* op_name = "";  // for dumps and messages
  std::string label;         // where in the model: "encoder.0.self_attn"
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::shared_ptr<const void> attrs;  // the operator's attributes
  std::string attrs_text;             // the same, for the dump
};

class Graph {
 public:
  TensorId add_tensor(TensorDesc desc);
  TensorId add_external(std::string name, DType dtype, Shape shape);
  TensorId add_temporary(std::string name, DType dtype, Shape shape);
  void add_node(Node node);

  // Prefix for the labels of nodes added from now on: "encoder.0".
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  const std::string& scope() const { return scope_; }

  const TensorDesc& tensor(TensorId id) const { return tensors_[id]; }
  TensorDesc& tensor(TensorId id) { return tensors_[id]; }
  const std::vector<TensorDesc>& tensors() const { return tensors_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  Node& node(size_t index) { return nodes_[index]; }
  // Other nodes over the same tensors, labels as they are.
  void set_nodes(std::vector<Node> nodes) { nodes_ = std::move(nodes); }
  // The external tensor of that name, or kNoTensor.
  TensorId find_external(const std::string& name) const;

  // A decoding step: rows are live slots (at most row_capacity). Only the GPU knows their number,
  // so dispatches over rows take their group counts indirectly.
  bool is_step() const { return row_capacity_ > 0; }
  uint32_t row_capacity() const { return row_capacity_; }
  void set_step(uint32_t row_capacity) { row_capacity_ = row_capacity; }

  // One line per tensor and node.
  std::string dump() const;

 private:
  std::vector<TensorDesc> tensors_;
  std::vector<Node> nodes_;
  std::string scope_;
  uint32_t row_capacity_ = 0;
};

}  // namespace vkformer
