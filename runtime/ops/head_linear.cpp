#include "ops/head_linear.h"

#include <algorithm>

#include "base/message.h"
#include "ops/matmul_strategy.h"
#include "ops/node_attrs.h"
#include "ops/row_op.h"

namespace vkformer {
namespace {

uint32_t head_panels(const ExpertWeight& weight) {
  return ceil_div(weight.n, kPanelColumns);
}

uint32_t head_count(const HeadLinearAttrs& attrs, const ExpertWeight& weight) {
  return attrs.sharing > 0 ? attrs.sharing : weight.experts;
}

Status check_heads(const ExpertWeight& w) {
  const bool whole = w.experts >= 1 && w.n >= 1 && w.all.k >= 1 &&
                     w.all.n == w.experts * head_panels(w) * kPanelColumns;
  const std::vector<LinearSlice> slices = slices_of(w.all);
  const bool biased = std::any_of(slices.begin(), slices.end(), [](const LinearSlice& slice) {
    return slice.bias_offset != kMatmulNone;
  });
  if (whole && !biased) return {};
  return op_error(OpId::k_head_linear,
                  message({"the weight has ", w.experts, " heads of (", w.n, ", ", w.all.k, ") in ",
                           w.all.n, " columns", biased ? " and a bias" : "",
                           ", but each head's columns must be filled up to a multiple of ",
                           kPanelColumns, ", without a bias."}));
}

}  // namespace

Result<TensorDesc> check_head_linear(const TensorDesc& x, const ExpertWeight& weight,
                                     const HeadLinearAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_head_linear, "x", x, 1));
  VKF_CHECK(check_heads(weight));
  if (attrs.sharing > 0 && weight.experts != 1) {
    return op_error(OpId::k_head_linear,
                    message({attrs.sharing, " heads share a matrix, but the weight has ",
                             weight.experts, "; give one matrix."}));
  }
  const uint32_t heads = head_count(attrs, weight);
  const uint64_t end = attrs.first + uint64_t{heads - 1} * attrs.stride + uint64_t{weight.all.k};
  if (end > static_cast<uint64_t>(x.shape.back())) {
    return op_error(OpId::k_head_linear,
                    message({"x has shape ", shape_text(x.shape), ", but ", heads, " heads of ",
                             weight.all.k, " columns, ", attrs.stride, " apart from column ",
                             attrs.first, " on, need rows of at least ", end, "."}));
  }
  Shape shape = x.shape;
  shape.back() = int64_t{heads} * weight.n;
  return TensorDesc{"head_linear", DType::kF32, std::move(shape)};
}

Result<TensorId> add_head_linear(Graph& graph, TensorId x, const ExpertWeight& weight,
                                 const HeadLinearAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_head_linear(graph.tensor(x), weight, attrs));
  std::string text =
      message({"H=", head_count(attrs, weight), " K=", weight.all.k, " N=", weight.n});
  if (attrs.sharing > 0) text += " shared";
  if (weight.all.format != MatrixFormat::kF32)
    text += message({" ", format_name(weight.all.format), " weight"});
  Node node = make_node<OpId::k_head_linear>(HeadLinearNodeAttrs{attrs, weight}, std::move(text));
  node.inputs = {x};
  for (const LinearSlice& slice : slices_of(weight.all)) node.inputs.push_back(slice.tensor);
  return add_single_output(graph, std::move(node), std::move(out));
}

namespace {

// Heads of one dispatch. In a step the GPU counts the rows, so that nobody can split the dispatch
// later on.
uint32_t heads_at_once(const LowerContext& context, const MatmulParams& p) {
  const double limit = context.caps.max_dispatch_flops;
  uint32_t heads = context.caps.limits.max_group_count[2];
  if (context.graph.is_step() && limit > 0) {
    const double head = 2.0 * p.m * p.n * p.k;
    heads = static_cast<uint32_t>(std::clamp(limit / head, 1.0, double{1} * heads));
  }
  return heads;
}

// The heads whose columns a slice of the weight has. A slice may begin or end inside a head.
Status lower_head_slice(LowerContext& context, const Node& node, const LinearSlice& slice,
                        MatmulProblem problem) {
  const auto& [attrs, weight] = attrs_of<HeadLinearNodeAttrs>(node);
  MatmulParams& p = problem.params;
  const uint32_t panels = head_panels(weight);  // of a head
  const uint32_t first = slice.first / kPanelColumns;
  const uint32_t end = first + ceil_div(slice.n, kPanelColumns);
  problem.format = slice.format;
  p.b_panel_stride = panel_stride(slice.format, p.k);
  p.b_batch_stride = attrs.sharing > 0 ? 0 : panels * p.b_panel_stride;
  // Rows that are multiplied as integers would have to be one after the other.
  const Precision precision = weight.all.exact || context.precision == Precision::kInt8
                                  ? Precision::kF32
                                  : context.precision;
  const auto emit = [&](uint32_t head, uint32_t column) {
    p.a_offset = attrs.first + head * attrs.stride;
    p.y_offset = head * weight.n + column;
    return emit_product(
        context, node, problem, precision,
        {.a = node.inputs[0], .b = slice.tensor, .y = {node.outputs[0], Access::kWrite}});
  };
  for (uint32_t panel = first; panel < end;) {
    const uint32_t head = panel / panels;
    const uint32_t column = panel % panels * kPanelColumns;
    const uint32_t last = std::min(end, (head + 1) * panels);
    p.n = std::min(weight.n, column + (last - panel) * kPanelColumns) - column;
    const bool whole = p.n == weight.n;
    p.b_offset = (panel - first) * p.b_panel_stride;
    if (attrs.sharing > 0) {
      for (uint32_t h = 0; h < attrs.sharing; h += problem.batch) {
        problem.batch = std::min(attrs.sharing - h, heads_at_once(context, p));
        VKF_CHECK(emit(h, column));
      }
      panel = last;
      continue;
    }
    problem.batch = whole ? std::min((end - panel) / panels, heads_at_once(context, p)) : 1;
    VKF_CHECK(emit(head, column));
    panel = whole ? panel + problem.batch * panels : last;
  }
  return {};
}

}  // namespace

Status lower_head_linear(LowerContext& context, const Node& node) {
  const auto& [attrs, weight] = attrs_of<HeadLinearNodeAttrs>(node);
  VKF_CHECK(check_product_depth(context.caps, OpId::k_head_linear, weight.all.k));
  const Shape& x = context.desc(node.inputs[0]).shape;
  MatmulProblem problem{.rows_are_slots = context.graph.is_step()};
  MatmulParams& p = problem.params;
  p.m = static_cast<uint32_t>(row_count(x));
  p.k = weight.all.k;
  p.a_row_stride = static_cast<uint32_t>(x.back());
  p.a_col_stride = 1;
  p.a_batch_stride = attrs.stride;
  p.b_row_stride = kPanelColumns;
  p.b_col_stride = 1;
  p.bias_offset = p.c_offset = kMatmulNone;
  p.y_row_stride = head_count(attrs, weight) * weight.n;
  p.y_batch_stride = weight.n;
  p.alpha = 1.0f;
  for (const LinearSlice& slice : slices_of(weight.all)) {
    VKF_CHECK(lower_head_slice(context, node, slice, problem));
  }
  return {};
}

}  // namespace vkformer
