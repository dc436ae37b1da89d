// What every operator shares: its number, the lowering context, and make_plan.
//
// An operator x is ops/x.{h,cpp}: attributes, check_x (shapes and dtypes, once, on the host), add_x
// (what models call) and lower_x (node -> dispatches). See docs/adding_an_operator.md.
#pragma once

#include <string>

#include "base/check.h"
#include "graph/graph.h"
#include "plan/plan.h"

namespace vkformer {

enum class OpId : uint16_t {
#define VKF_OP(name) k_##name,
#include "ops/op_list.def"
#undef VKF_OP
  kCount
};

const char* op_name(OpId op);

// What a lowering may look at, and where it puts its dispatches.
struct LowerContext {
  const Graph& graph;
  const DeviceCaps& caps;
  Precision precision;
  Plan& plan;

  // A further arena buffer for the operator's own use; returns its plan buffer index.
  uint32_t add_scratch(std::string name, uint64_t bytes);
  const TensorDesc& desc(TensorId id) const { return graph.tensor(id); }
};

// Rows a row-wise kernel can have on x before it continues on y; shaders/include/rows.glsl.
inline constexpr uint32_t kRowsPerGridLine = 32768;

// Sets the group counts of a kernel that maps one workgroup to `rows_per_group` rows of its first
// axis. x and y fold the row groups, which rows.glsl undoes. z stays. In a decoding step the rows
// are slots and x is taken indirectly.
void set_row_groups(const LowerContext& context, Dispatch& dispatch, uint64_t rows,
                    uint32_t rows_per_group);

// Attributes of a node as their own type. The node must have been added by that operator.
template <class Attrs>
const Attrs& attrs_of(const Node& node) {
  return *static_cast<const Attrs*>(node.attrs.get());
}

// The lowering of each operator. A node has its own, so that a program whose models never add an
// operator does not link what lowers it.
template <OpId op>
inline constexpr LowerFunction kLowering = nullptr;
#define VKF_OP(name)                               \
  Status lower_##name(LowerContext&, const Node&); \
  template <>                                      \
  inline constexpr LowerFunction kLowering<OpId::k_##name> = lower_##name;
#include "ops/op_list.def"
#undef VKF_OP

// Starts a node of operator `op` with its attributes.
template <OpId op, class Attrs>
Node make_node(Attrs attrs, std::string attrs_text) {
  Node node;
  node.op = static_cast<uint16_t>(op);
  node.lower = kLowering<op>;
  node.op_name = op_name(op);
  node.attrs = std::make_shared<const Attrs>(std::move(attrs));
  node.attrs_text = std::move(attrs_text);
  return node;
}

// A dispatch with its label filled from the node.
Dispatch make_dispatch(const Node& node, KernelId kernel);

// An error of operator `op`: "[op] message".
Error op_error(OpId op, const std::string& message);

// Bytes of an f32 (or 32-bit integer) tensor of that shape.
uint64_t word_bytes(const Shape& shape);
// Product of all dimensions but the last.
uint64_t row_count(const Shape& shape);

// Fuses nodes (ops/fusion.h), lowers every node, plans memory and barriers.
Result<Plan> make_plan(const Graph& graph, const DeviceCaps& caps, Precision precision);

}  // namespace vkformer
