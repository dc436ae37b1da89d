#include "ops/embedding.h"

#include <algorithm>

#include "base/message.h"
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
  if (attrs.slice_rows == 0) attrs.slice_rows = attrs.vocabulary;
  if (attrs.tokens == 0) attrs.tokens = ids.empty() ? 1 : static_cast<uint32_t>(ids.back());
  attrs.tokens = std::max(1u, attrs.tokens);
  return attrs;
}

// Rows of the table's tensor `index`, counted from 0. Defaults must be filled in.
uint32_t slice_rows(const EmbeddingAttrs& attrs, uint32_t index) {
  const uint64_t first = uint64_t{index} * attrs.slice_rows;
  if (first >= attrs.vocabulary) return 0;
  return std::min(attrs.slice_rows, attrs.vocabulary - static_cast<uint32_t>(first));
}

uint64_t table_elements(const TensorDesc& table) {
  const uint64_t size = dtype_size(table.dtype);
  if (table.bytes != 0) return table.bytes / size;
  return static_cast<uint64_t>(element_count(table.shape));
}

// Whether the strides keep `rows` rows of width D inside the table.
Status check_table(const TensorDesc& table, const EmbeddingAttrs& a, uint32_t rows) {
  if (a.width == 0) return {};
  if (in_blocks(a.format)) {
    const uint64_t words = matrix_words(a.format, rows, a.width);
    if (a.panel_stride == panel_stride(a.format, a.width) && words <= table_elements(table))
      return {};
    return op_error(
        OpId::k_embedding,
        message({"The table has ", table_elements(table), " words, but ", rows, " rows of width ",
                 a.width, " in ", format_name(a.format), " take ", words, "."}));
  }
  const uint64_t last = (rows - 1ull) / kPanelColumns * a.panel_stride +
                        (rows - 1ull) % kPanelColumns * a.row_stride +
                        (a.width - 1ull) * a.col_stride;
  if (last < table_elements(table) && last <= 0xffffffffull) return {};
  return op_error(OpId::k_embedding,
                  message({"The strides (", a.row_stride, ", ", a.col_stride, ") put the last of ",
                           rows, " rows of width ", a.width, " at element ", last,
                           ", but the table has ", table_elements(table), " elements."}));
}

// The tensors of a sliced table: as many as its rows need, each large enough.
Status check_slices(const Graph& graph, const EmbeddingInputs& inputs, const EmbeddingAttrs& a) {
  const uint64_t have = 1 + inputs.slices.size();
  const uint64_t wanted = (a.vocabulary + uint64_t{a.slice_rows} - 1) / a.slice_rows;
  if (have != wanted) {
    return op_error(OpId::k_embedding,
                    message({"The table has ", have, " tensors, but its ", a.vocabulary,
                             " rows by ", a.slice_rows, " are ", wanted, "."}));
  }
  for (uint32_t s = 0; s < inputs.slices.size(); ++s) {
    VKF_CHECK(check_table(graph.tensor(inputs.slices[s]), a, slice_rows(a, s + 1)));
  }
  return {};
}

Status check_state(const TensorDesc& state) {
  const uint64_t bytes = state.bytes != 0 ? state.bytes
                                          : static_cast<uint64_t>(element_count(state.shape)) *
                                                dtype_size(state.dtype);
  constexpr uint64_t kNeeded = sizeof(DecodeState) + 16ull * VKF_SLOT_QUADS;
  if (bytes >= kNeeded) return {};
  return op_error(OpId::k_embedding,
                  message({"The decoding state has ", bytes, " bytes, but must have at least ",
                           kNeeded, ": the state and its slots."}));
}

// The kernels of full passes and of steps, by how the table is stored.
struct Variants {
  KernelId f32, f16, blocks;
};
constexpr Variants kUnnormed[] = {
    {KernelId::embedding_row__u32_f32_f32, KernelId::embedding_row__u32_f16_f32,
     KernelId::embedding_row__u32_blocks_f32},
    {KernelId::embedding_step__u32_f32_f32, KernelId::embedding_step__u32_f16_f32,
     KernelId::embedding_step__u32_blocks_f32}};
constexpr Variants kNormed[] = {
    {KernelId::embedding_normed__u32_f32_f32, KernelId::embedding_normed__u32_f16_f32,
     KernelId::embedding_normed__u32_blocks_f32},
    {KernelId::embedding_normed_step__u32_f32_f32, KernelId::embedding_normed_step__u32_f16_f32,
     KernelId::embedding_normed_step__u32_blocks_f32}};

KernelId pick(const Variants& variants, const TensorDesc& table, const EmbeddingAttrs& attrs) {
  if (in_blocks(attrs.format)) return variants.blocks;
  return table.dtype == DType::kF16 ? variants.f16 : variants.f32;
}

}  // namespace

uint32_t embedding_planes(const EmbeddingAttrs& attrs) {
  return 1 + (attrs.from == EmbeddingAttrs::Positions::kPlane ? 1 : 0) + (attrs.types > 0 ? 1 : 0) +
         (attrs.row_scales == EmbeddingAttrs::RowScales::kPlane ? 1 : 0);
}

Result<TensorDesc> check_embedding(const TensorDesc& ids, const TensorDesc& table,
                                   const EmbeddingAttrs& attrs) {
  if (ids.dtype != DType::kU32) {
    return op_error(OpId::k_embedding, message({"ids is ", dtype_name(ids.dtype), " ",
                                                shape_text(ids.shape), ", but must be U32."}));
  }
  const bool words = table.dtype == DType::kU32 && in_blocks(attrs.format);
  if (!words && table.dtype != DType::kF32 && table.dtype != DType::kF16) {
    return op_error(OpId::k_embedding, message({"table is ", dtype_name(table.dtype),
                                                ", but must be F32, F16 or words of blocks."}));
  }
  const EmbeddingAttrs a = with_defaults(attrs, ids.shape);
  if (a.vocabulary == 0) {
    return op_error(OpId::k_embedding, "The table has 0 rows, but must have at least one.");
  }
  VKF_CHECK(check_table(table, a, slice_rows(a, 0)));
  Shape shape = ids.shape;
  if (const uint32_t planes = embedding_planes(attrs); planes > 1) {
    if (shape.empty() || shape[0] != planes) {
      return op_error(
          OpId::k_embedding,
          message({"ids has shape ", shape_text(shape), ", but its first axis must be the ", planes,
                   " planes: ids, positions, types and scales of rows."}));
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
  return op_error(OpId::k_embedding, message({"positions has shape ", shape_text(positions.shape),
                                              ", but must be (P + types, D) with D = ", attrs.width,
                                              " and ", attrs.types, " types."}));
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
  const bool types_only = attrs.from == EmbeddingAttrs::Positions::kNone;
  if (types_only && (attrs.types == 0 || inputs.state != kNoTensor)) {
    return op_error(OpId::k_embedding,
                    "Without positions the position table must hold types, and a decoding state "
                    "has no use.");
  }
  if (types_only && graph.tensor(inputs.positions).shape[0] != int64_t{attrs.types}) {
    return op_error(OpId::k_embedding,
                    message({"positions has ", graph.tensor(inputs.positions).shape[0],
                             " rows, but without positions it must have as many as types: ",
                             attrs.types, "."}));
  }
  if (inputs.state == kNoTensor) return {};
  if (attrs.row_scales == EmbeddingAttrs::RowScales::kPlane) {
    return op_error(OpId::k_embedding,
                    "Both a decoding state and scales of rows were given; use one.");
  }
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
  VKF_CHECK(check_slices(graph, inputs, attrs));
  Node node = make_node<OpId::k_embedding>(
      attrs, "vocabulary=" + std::to_string(attrs.vocabulary) + " scale=" +
                 number_text(attrs.scale) + " offset=" + std::to_string(attrs.position_offset) +
                 (attrs.types > 0 ? " types=" + std::to_string(attrs.types) : ""));
  node.inputs = {inputs.ids, inputs.table, inputs.positions, inputs.state, kNoTensor};
  node.inputs.insert(node.inputs.end(), inputs.slices.begin(), inputs.slices.end());
  return add_single_output(graph, std::move(node), std::move(out));
}

namespace {

EmbeddingParams params_of(const LowerContext& context, const Node& node) {
  const EmbeddingAttrs& attrs = attrs_of<EmbeddingAttrs>(node);
  EmbeddingParams params{};
  params.rows = static_cast<uint32_t>(row_count(context.desc(node.outputs[0]).shape));
  params.width = attrs.width;
  params.vocabulary = attrs.vocabulary;
  params.row_stride = attrs.row_stride;
  params.col_stride = attrs.col_stride;
  params.panel_stride = attrs.panel_stride;
  if (node.inputs[2] != kNoTensor) {
    const auto table = static_cast<uint32_t>(context.desc(node.inputs[2]).shape[0]);
    params.positions = table - attrs.types;
    params.type_row = params.positions;
    params.types = attrs.types;
  }
  params.tokens = attrs.tokens;
  params.position_offset = attrs.position_offset;
  params.scale = attrs.scale;
  params.pad_id = attrs.pad_id;
  params.norm_epsilon = attrs.norm_epsilon;
  if (node.inputs[3] == kNoTensor) {
    params.position_plane = attrs.from == EmbeddingAttrs::Positions::kPlane ? 1 : 0;
    const bool scaled = attrs.row_scales == EmbeddingAttrs::RowScales::kPlane;
    params.scale_plane = scaled ? embedding_planes(attrs) - 1 : 0;
    params.type_plane = attrs.types > 0 ? embedding_planes(attrs) - (scaled ? 2 : 1) : 0;
  }
  return params;
}

// Of one element of the table.
double weight_bytes(const TensorDesc& table, const EmbeddingAttrs& attrs) {
  if (in_blocks(attrs.format)) return block_words(attrs.format) / 512.0;
  return table.dtype == DType::kF16 ? 2.0 : 4.0;
}

}  // namespace

// The norm's gain and bias are a uniform block of the kernel.
bool embedding_takes_norm(const Graph& graph, const Node& embedding, const DeviceCaps& caps) {
  const EmbeddingAttrs& attrs = attrs_of<EmbeddingAttrs>(embedding);
  const bool step = embedding.inputs[3] != kNoTensor;
  const KernelId kernel = pick(kNormed[step ? 1 : 0], graph.tensor(embedding.inputs[1]), attrs);
  return attrs.width <= kNormWidth && caps.limits.max_uniform_range >= 8 * kNormWidth &&
         !caps.is_demoted(kernel);
}

// One dispatch per slice of the table; each writes the rows whose ids it has.
Status lower_embedding(LowerContext& context, const Node& node) {
  const EmbeddingAttrs& attrs = attrs_of<EmbeddingAttrs>(node);
  const TensorDesc& first = context.desc(node.inputs[1]);
  const bool has_table = node.inputs[2] != kNoTensor;
  const bool has_positions = has_table && attrs.from != EmbeddingAttrs::Positions::kNone;
  const bool step = node.inputs[3] != kNoTensor;
  const bool normed = node.inputs[kEmbeddingNorm] != kNoTensor;
  EmbeddingParams params = params_of(context, node);
  const KernelId kernel = pick((normed ? kNormed : kUnnormed)[step ? 1 : 0], first, attrs);
  const auto slices = static_cast<uint32_t>(node.inputs.size() - kEmbeddingSlices + 1);
  const double elements = static_cast<double>(params.rows) * params.width / slices;
  for (uint32_t s = 0; s < slices; ++s) {
    const TensorId table = node.inputs[s == 0 ? 1 : kEmbeddingSlices + s - 1];
    params.first_id = s * attrs.slice_rows;
    params.slice_rows = slice_rows(attrs, s);
    Dispatch d = make_dispatch(node, kernel);
    d.bindings = {{node.inputs[0], Access::kRead},
                  {table, Access::kRead},
                  {has_table ? node.inputs[2] : table, Access::kRead},
                  {node.outputs[0], Access::kWrite}};
    if (step) d.bindings.push_back({node.inputs[3], Access::kRead});
    if (normed) d.bindings.push_back({node.inputs[kEmbeddingNorm], Access::kRead});
    d.set_push(params);
    d.set_constants(EmbeddingConstants{.local_size = row_local_size(context.caps, params.width),
                                       .has_positions = has_positions,
                                       .has_types = attrs.types > 0,
                                       .format = static_cast<uint32_t>(attrs.format)});
    set_row_groups(context, d, params.rows, 1);
    d.flops = (normed ? 11.0 : 2.0) * elements;
    d.bytes = elements * (4.0 + weight_bytes(first, attrs) + (has_table ? 4.0 : 0.0));
    context.plan.dispatches.push_back(std::move(d));
  }
  return {};
}

}  // namespace vkformer
