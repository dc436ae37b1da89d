#include "ops/embedding.h"

#include "ops/row_op.h"
#include "params/decode_state.h"
#include "params/embedding.h"
#include "params/matmul.h"

namespace vkformer {
namespace {

EmbeddingAttrs with_defaults(EmbeddingAttrs attrs, const Shape& ids) {
  if (attrs.row_stride == 0 && attrs.col_stride == 0) {
    attrs.row_stride = attrs.width;
    attrs.col_stride = 1;
  }
  if (attrs.panel_stride == 0) attrs.panel_stride = kPanelColumns * attrs.row_stride;
  if (attrs.tokens == 0) attrs.tokens = ids.empty() ? 1 : static_cast<uint32_t>(ids.back());
  attrs.tokens = std::max(1u, attrs.tokens);
  return attrs;
}

uint64_t table_elements(const TensorDesc& table) {
  const uint64_t size = dtype_size(table.dtype);
  if (table.bytes != 0) return table.bytes / size;
  return static_cast<uint64_t>(element_count(table.shape));
}

Status check_state(const TensorDesc& state) {
  const uint64_t bytes = state.bytes != 0 ? state.bytes
                                          : static_cast<uint64_t>(element_count(state.shape)) *
                                                dtype_size(state.dtype);
  constexpr uint64_t kNeeded = sizeof(DecodeState) + 16ull * VKF_SLOT_QUADS;
  if (bytes >= kNeeded) return {};
  return op_error(OpId::k_embedding, "The decoding state has " + std::to_string(bytes) +
                                         " bytes, but must have at least " +
                                         std::to_string(kNeeded) + ": the state and its slots.");
}

KernelId pick(bool half, bool step) {
  if (step) {
    return half ? KernelId::embedding_step__u32_f16_f32 : KernelId::embedding_step__u32_f32_f32;
  }
  return half ? KernelId::embedding_row__u32_f16_f32 : KernelId::embedding_row__u32_f32_f32;
}

}  // namespace

uint32_t embedding_planes(const EmbeddingAttrs& attrs) {
  return 1 + (attrs.from == EmbeddingAttrs::Positions::kPlane ? 1 : 0) + (attrs.types > 0 ? 1 : 0);
}

Result<TensorDesc> check_embedding(const TensorDesc& ids, const TensorDesc& table,
                                   const EmbeddingAttrs& attrs) {
  if (ids.dtype != DType::kU32) {
    return op_error(OpId::k_embedding, "ids is " + std::string(dtype_name(ids.dtype)) + " " +
                                           shape_text(ids.shape) + ", but must be U32.");
  }
  if (table.dtype != DType::kF32 && table.dtype != DType::kF16) {
    return op_error(OpId::k_embedding, "table is " + std::string(dtype_name(table.dtype)) +
                                           ", but must be F32 or F16.");
  }
  const EmbeddingAttrs a = with_defaults(attrs, ids.shape);
  if (a.vocabulary == 0) {
    return op_error(OpId::k_embedding, "The table has 0 rows, but must have at least one.");
  }
  const uint64_t last = (a.vocabulary - 1ull) / kPanelColumns * a.panel_stride +
                        (a.vocabulary - 1ull) % kPanelColumns * a.row_stride +
                        (std::max(1u, a.width) - 1ull) * a.col_stride;
  if (a.width != 0 && (last >= table_elements(table) || last > 0xffffffffull)) {
    return op_error(OpId::k_embedding, "The strides (" + std::to_string(a.row_stride) + ", " +
                                           std::to_string(a.col_stride) + ") put the last of " +
                                           std::to_string(a.vocabulary) + " rows of width " +
                                           std::to_string(a.width) + " at element " +
                                           std::to_string(last) + ", but the table has " +
                                           std::to_string(table_elements(table)) + " elements.");
  }
  Shape shape = ids.shape;
  if (const uint32_t planes = embedding_planes(attrs); planes > 1) {
    if (shape.empty() || shape[0] != planes) {
      return op_error(OpId::k_embedding,
                      "ids has shape " + shape_text(shape) + ", but its first axis must be the " +
                          std::to_string(planes) + " planes: ids, positions and types.");
    }
    shape.erase(shape.begin());
  }
  shape.push_back(a.width);
  return TensorDesc{"embedding", DType::kF32, std::move(shape)};
}

Status check_embedding_positions(const TensorDesc& positions, const EmbeddingAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_embedding, "positions", positions, 2));
  if (positions.shape.size() == 2 && positions.shape[1] == static_cast<int64_t>(attrs.width) &&
      positions.shape[0] >= static_cast<int64_t>(attrs.types)) {
    return {};
  }
  return op_error(OpId::k_embedding,
                  "positions has shape " + shape_text(positions.shape) +
                      ", but must be (P + types, D) with D = " + std::to_string(attrs.width) +
                      " and " + std::to_string(attrs.types) + " types.");
}

namespace {

// What only makes sense together.
Status check_combination(const Graph& graph, const EmbeddingInputs& inputs,
                         const EmbeddingAttrs& attrs) {
  const bool plane = attrs.from == EmbeddingAttrs::Positions::kPlane;
  if (inputs.positions == kNoTensor && (inputs.state != kNoTensor || plane || attrs.types > 0)) {
    return op_error(OpId::k_embedding,
                    "A decoding state, a plane of positions or types were given without a position "
                    "table, but are only read for it.");
  }
  if (inputs.state == kNoTensor) return {};
  if (plane) {
    return op_error(OpId::k_embedding,
                    "Both a decoding state and a plane of positions were given; use one.");
  }
  return check_state(graph.tensor(inputs.state));
}

}  // namespace

Result<TensorId> add_embedding(Graph& graph, const EmbeddingInputs& inputs, EmbeddingAttrs attrs) {
  const TensorDesc& ids = graph.tensor(inputs.ids);
  const bool step = inputs.state != kNoTensor;
  EmbeddingAttrs checked = attrs;
  if (step) checked.types = 0;  // a step has no plane of types
  VKF_ASSIGN(TensorDesc out, check_embedding(ids, graph.tensor(inputs.table), checked));
  if (inputs.positions != kNoTensor) {
    VKF_CHECK(check_embedding_positions(graph.tensor(inputs.positions), attrs));
  }
  VKF_CHECK(check_combination(graph, inputs, attrs));
  attrs = with_defaults(attrs, ids.shape);
  Node node = make_node(OpId::k_embedding, attrs,
                        "vocabulary=" + std::to_string(attrs.vocabulary) +
                            " scale=" + number_text(attrs.scale) +
                            " offset=" + std::to_string(attrs.position_offset) +
                            (attrs.types > 0 ? " types=" + std::to_string(attrs.types) : ""));
  node.inputs = {inputs.ids, inputs.table, inputs.positions, inputs.state};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_embedding(LowerContext& context, const Node& node) {
  const EmbeddingAttrs& attrs = attrs_of<EmbeddingAttrs>(node);
  const bool half = context.desc(node.inputs[1]).dtype == DType::kF16;
  const bool has_positions = node.inputs[2] != kNoTensor;
  const bool step = node.inputs[3] != kNoTensor;
  const uint64_t rows = row_count(context.desc(node.outputs[0]).shape);
  EmbeddingParams params{};
  params.rows = static_cast<uint32_t>(rows);
  params.width = attrs.width;
  params.vocabulary = attrs.vocabulary;
  params.row_stride = attrs.row_stride;
  params.col_stride = attrs.col_stride;
  params.panel_stride = attrs.panel_stride;
  if (has_positions) {
    const auto table = static_cast<uint32_t>(context.desc(node.inputs[2]).shape[0]);
    params.positions = table - attrs.types;
    params.type_row = params.positions;
    params.types = attrs.types;
  }
  params.tokens = attrs.tokens;
  params.position_offset = attrs.position_offset;
  params.scale = attrs.scale;
  params.pad_id = attrs.pad_id;
  if (!step) {
    params.position_plane = attrs.from == EmbeddingAttrs::Positions::kPlane ? 1 : 0;
    params.type_plane = attrs.types > 0 ? embedding_planes(attrs) - 1 : 0;
  }
  Dispatch d = make_dispatch(node, pick(half, step));
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {has_positions ? node.inputs[2] : node.inputs[1], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  if (step) d.bindings.push_back({node.inputs[3], Access::kRead});
  d.set_push(params);
  d.spec = {row_local_size(context.caps, params.width), has_positions ? 1u : 0u,
            attrs.types > 0 ? 1u : 0u};
  set_row_groups(context, d, rows, 1);
  const double elements = static_cast<double>(rows) * params.width;
  d.flops = 2.0 * elements;
  d.bytes = elements * ((half ? 6.0 : 8.0) + (has_positions ? 4.0 : 0.0));
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
