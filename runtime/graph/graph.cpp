#include "graph/graph.h"

namespace vkformer {
namespace {

const char* kind_text(TensorKind kind) {
  switch (kind) {
    case TensorKind::kTemporary:
      return "temporary";
    case TensorKind::kExternal:
      return "external";
    case TensorKind::kConstant:
      return "constant";
  }
  return "";
}

std::string id_list(const std::vector<TensorId>& ids) {
  std::string text;
  for (TensorId id : ids) {
    if (!text.empty()) text += ", ";
    text += id == kNoTensor ? std::string("-") : "%" + std::to_string(id);
  }
  return text;
}

}  // namespace

TensorId Graph::add_tensor(TensorDesc desc) {
  tensors_.push_back(std::move(desc));
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId Graph::add_external(std::string name, DType dtype, Shape shape) {
  return add_tensor({std::move(name), dtype, std::move(shape), TensorKind::kExternal});
}

TensorId Graph::add_temporary(std::string name, DType dtype, Shape shape) {
  return add_tensor({std::move(name), dtype, std::move(shape), TensorKind::kTemporary});
}

void Graph::add_node(Node node) {
  node.label = scope_.empty() ? node.label : scope_ + (node.label.empty() ? "" : "." + node.label);
  nodes_.push_back(std::move(node));
}

TensorId Graph::find_external(const std::string& name) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].kind == TensorKind::kExternal && tensors_[i].name == name)
      return static_cast<TensorId>(i);
  }
  return kNoTensor;
}

std::string Graph::dump() const {
  std::string text;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorDesc& t = tensors_[i];
    text += "%" + std::to_string(i) + " " + kind_text(t.kind) + " " + dtype_name(t.dtype) + " " +
            shape_text(t.shape) + " " + t.name + "\n";
  }
  for (const Node& node : nodes_) {
    text += id_list(node.outputs) + " = " + node.op_name + "(" + id_list(node.inputs) + ") " +
            node.attrs_text + (node.label.empty() ? "" : "  # " + node.label) + "\n";
  }
  return text;
}

}  // namespace vkformer
