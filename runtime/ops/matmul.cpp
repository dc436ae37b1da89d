#include "ops/matmul.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "ops/combine.h"
#include "ops/matmul_lowering.h"
#include "ops/row_op.h"
#include "ops/step_advance.h"
#include "params/activation.h"

namespace vkformer {
namespace {

// The leading axes of a and b, broadcast as NumPy does.
Result<Shape> broadcast_batch(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size()) - 2;
  Shape batch(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = [&](const Shape& s) {
      const size_t leading = s.size() - 2;
      return i + leading < rank ? int64_t{1} : s[i + leading - rank];
    };
    const int64_t x = axis(a);
    const int64_t y = axis(b);
    if (x != y && x != 1 && y != 1) {
      return op_error(OpId::k_matmul, message({"the batch axes of a ", shape_text(a), " and b ",
                                               shape_text(b), " do not broadcast"}));
    }
    batch[i] = std::max(x, y);
  }
  return batch;
}

Status check_f32(const char* name, const TensorDesc& t, size_t least_rank) {
  if (t.dtype == DType::kF32 && t.shape.size() >= least_rank) return {};
  return op_error(OpId::k_matmul,
                  message({name, " is ", dtype_name(t.dtype), " ", shape_text(t.shape),
                           ", but must be F32 with at least ", least_rank, " dimension(s)"}));
}

Status check_addend(const TensorDesc& c, const Shape& y) {
  VKF_CHECK(check_f32("c", c, 1));
  const Shape matrix(y.end() - 2, y.end());
  if (c.shape == y || c.shape == matrix || c.shape == Shape{y.back()}) return {};
  return op_error(OpId::k_matmul, message({"c has shape ", shape_text(c.shape),
                                           ", but must be (N), (M, N) or y's ", shape_text(y)}));
}

}  // namespace

std::vector<LinearSlice> slices_of(const LinearWeight& weight) {
  if (!weight.slices.empty()) return weight.slices;
  return {{weight.tensor, 0, weight.n, weight.bias_offset, weight.format}};
}

Result<TensorDesc> check_matmul(const TensorDesc& a, const TensorDesc& b, const TensorDesc* c,
                                const MatmulAttrs& attrs) {
  VKF_CHECK(check_f32("a", a, 2));
  VKF_CHECK(check_f32("b", b, 2));
  const size_t ra = a.shape.size();
  const size_t rb = b.shape.size();
  const int64_t m = a.shape[ra - (attrs.trans_a ? 1 : 2)];
  const int64_t ka = a.shape[ra - (attrs.trans_a ? 2 : 1)];
  const int64_t kb = b.shape[rb - (attrs.trans_b ? 1 : 2)];
  const int64_t n = b.shape[rb - (attrs.trans_b ? 2 : 1)];
  if (ka != kb) {
    return op_error(OpId::k_matmul, message({"a ", shape_text(a.shape), " has K = ", ka, ", but b ",
                                             shape_text(b.shape), " has K = ", kb}));
  }
  VKF_ASSIGN(Shape shape, broadcast_batch(a.shape, b.shape));
  shape.push_back(m);
  shape.push_back(n);
  if (c != nullptr) VKF_CHECK(check_addend(*c, shape));
  return TensorDesc{"matmul", DType::kF32, shape};
}

Result<TensorDesc> check_linear(const TensorDesc& x, const LinearWeight& weight) {
  VKF_CHECK(check_f32("x", x, 1));
  if (x.shape.back() != static_cast<int64_t>(weight.k)) {
    return op_error(OpId::k_matmul, message({"x ", shape_text(x.shape), " does not end with K = ",
                                             weight.k, " of the weight"}));
  }
  Shape shape = x.shape;
  shape.back() = weight.n;
  return TensorDesc{"linear", DType::kF32, shape};
}

namespace {

Result<TensorId> add_product(Graph& graph, TensorDesc out, MatmulNodeAttrs attrs,
                             std::vector<TensorId> inputs) {
  std::string text = matmul_text(attrs);
  Node node = make_node<OpId::k_matmul>(std::move(attrs), std::move(text));
  node.inputs = std::move(inputs);
  return add_single_output(graph, std::move(node), std::move(out));
}

}  // namespace

Result<TensorId> add_matmul(Graph& graph, TensorId a, TensorId b, TensorId c,
                            const MatmulAttrs& attrs) {
  const TensorDesc* addend = c == kNoTensor ? nullptr : &graph.tensor(c);
  VKF_ASSIGN(TensorDesc out, check_matmul(graph.tensor(a), graph.tensor(b), addend, attrs));
  MatmulAttrs product = attrs;
  product.activation = ActivationKind::kNone;
  VKF_ASSIGN(TensorId y, add_product(graph, std::move(out), {.matmul = product}, {a, b, c}));
  if (attrs.activation == ActivationKind::kNone) return y;
  return add_activation(graph, y, {attrs.activation});
}

Result<TensorId> add_linear(Graph& graph, TensorId x, const LinearWeight& weight,
                            const LinearAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_linear(graph.tensor(x), weight));
  std::vector<TensorId> inputs = {x, weight.tensor, kNoTensor};
  for (const LinearSlice& slice : slices_of(weight)) {
    if (slice.tensor != weight.tensor) inputs.push_back(slice.tensor);
  }
  VKF_ASSIGN(TensorId y,
             add_product(graph, std::move(out),
                         {.matmul = {.alpha = attrs.alpha}, .weight = weight}, std::move(inputs)));
  return finish_linear(graph, y, attrs);
}

Result<TensorId> finish_linear(Graph& graph, TensorId y, const LinearAttrs& attrs) {
  if (attrs.gate == GatePairs::kPairs) {
    VKF_ASSIGN(y, add_gated_activation(graph, y, {attrs.activation, attrs.gate}));
  } else if (attrs.activation != ActivationKind::kNone) {
    VKF_ASSIGN(y, add_activation(graph, y, {attrs.activation}));
  }
  if (attrs.residual == kNoTensor) return y;
  return add_combine(graph, y, attrs.residual, {});
}

std::string matmul_text(const MatmulNodeAttrs& attrs) {
  const MatmulAttrs& m = attrs.matmul;
  std::string text;
  if (m.trans_a) text += " trans_a";
  if (m.trans_b) text += " trans_b";
  if (m.alpha != 1.0f) text += " alpha=" + number_text(m.alpha);
  if (m.beta != 1.0f) text += " beta=" + number_text(m.beta);
  if (attrs.norm != kNormNone) {
    text += attrs.norm == kNormRms ? " rms_norm" : " layer_norm";
    text += " epsilon=" + number_text(attrs.norm_epsilon);
  }
  if (m.activation != ActivationKind::kNone) text += message({" ", activation_name(m.activation)});
  if (attrs.gate == GatePairs::kPairs) text += " gate";
  if (attrs.third == MatmulNodeAttrs::Third::kResidual) text += " residual";
  if (attrs.weight.format != MatrixFormat::kF32)
    text += message({" ", format_name(attrs.weight.format), " weight"});
  return text.empty() ? text : text.substr(1);
}

namespace {

// Element strides of the last two axes of a plain tensor, op() applied.
struct MatrixLayout {
  uint32_t row_stride, col_stride, matrix;
};

MatrixLayout matrix_layout(const Shape& shape, bool transposed) {
  const auto rows = static_cast<uint32_t>(shape[shape.size() - 2]);
  const auto columns = static_cast<uint32_t>(shape.back());
  if (transposed) return {1, columns, rows * columns};
  return {columns, 1, rows * columns};
}

MatmulParams base_params(const MatmulNodeAttrs& attrs) {
  MatmulParams p{};
  p.bias_offset = kMatmulNone;
  p.c_offset = kMatmulNone;
  p.alpha = attrs.matmul.alpha;
  p.beta = attrs.matmul.beta;
  p.activation = static_cast<uint32_t>(attrs.matmul.activation);
  if (attrs.gate == GatePairs::kPairs) p.activation |= kActivationGate;
  p.c_after = attrs.weight.tensor != kNoTensor ? 1 : 0;
  p.norm_epsilon = attrs.norm_epsilon;
  return p;
}

// Index of y's batch `index` in an operand whose leading axes broadcast to `batch`.
uint64_t operand_batch(const Shape& operand, const Shape& batch, uint64_t index) {
  const size_t leading = operand.size() - 2;
  uint64_t position = 0;
  uint64_t stride = 1;
  for (size_t i = 0; i < batch.size(); ++i) {
    const size_t axis = batch.size() - 1 - i;
    const uint64_t coordinate = index % static_cast<uint64_t>(batch[axis]);
    index /= static_cast<uint64_t>(batch[axis]);
    if (i >= leading) continue;
    const auto size = static_cast<uint64_t>(operand[leading - 1 - i]);
    if (size != 1) position += coordinate * stride;
    stride *= size;
  }
  return position;
}

// Rows of a product, and the bytes of its result that hold them.
struct RowWindow {
  uint32_t first, rows;
  uint64_t offset, bytes;  // no bytes: all rows
};

// Several where the result does not fit into one binding. Each is of as many rows as do, in whole
// tiles, whose bytes begin where a binding may.
std::vector<RowWindow> row_windows(const LowerContext& context, uint32_t rows, uint64_t row_bytes) {
  constexpr uint32_t kTile = 64;  // rows; a multiple of 64 words is aligned for every device
  const uint64_t limit = context.caps.limits.max_storage_range;
  const uint64_t most = limit / row_bytes / kTile * kTile;
  if (rows * row_bytes <= limit || most == 0) return {{0, rows, 0, 0}};
  std::vector<RowWindow> windows;
  for (uint64_t first = 0; first < rows; first += most) {
    const uint64_t count = std::min<uint64_t>(most, rows - first);
    windows.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(count),
                       first * row_bytes, count * row_bytes});
  }
  return windows;
}

Status emit(LowerContext& context, const Node& node, const MatmulProblem& problem, TensorId b,
            const RowWindow& window = {}) {
  const bool exact = attrs_of<MatmulNodeAttrs>(node).weight.exact;
  return emit_product(context, node, problem, exact ? Precision::kF32 : context.precision,
                      {.a = node.inputs[0],
                       .b = b,
                       .third = node.inputs[2],
                       .y = {node.outputs[0], Access::kWrite, window.offset, window.bytes}});
}

// Columns of one dispatch of a packed weight. In a step the GPU counts the rows, so that nobody can
// split the dispatch later on. So a long product becomes several here. Each has whole panels, as
// wide as the widest tile where that is short enough. Beyond half of the commands that a step may
// have it stays whole (slicing.h, is_indirect).
uint32_t columns_at_once(const LowerContext& context, const MatmulParams& p) {
  constexpr uint32_t kWidest = 8;  // panels
  const double limit = context.caps.max_dispatch_flops;
  const double panel = 2.0 * p.m * p.k * kPanelColumns;
  const double all = std::ceil(static_cast<double>(p.n) / kPanelColumns);
  if (!context.graph.is_step() || limit <= 0 || panel * all <= limit) return p.n;
  auto panels = static_cast<uint32_t>(std::clamp(std::floor(limit / panel), 1.0, all));
  if (panels > kWidest) panels -= panels % kWidest;
  const double parts = std::ceil(all / panels);
  const double before = static_cast<double>(context.plan.dispatches.size());
  return before + parts > kMaxStepDispatches / 2.0 ? p.n : panels * kPanelColumns;
}

// A packed weight: all leading axes of x are rows of one product, without its columns.
MatmulProblem linear_problem(const Graph& graph, const Node& node, const MatmulNodeAttrs& attrs) {
  MatmulProblem problem{.params = base_params(attrs), .norm = attrs.norm};
  MatmulParams& p = problem.params;
  p.m = static_cast<uint32_t>(row_count(graph.tensor(node.inputs[0]).shape));
  p.k = attrs.weight.k;
  p.a_row_stride = p.k;
  p.a_col_stride = 1;
  p.b_row_stride = kPanelColumns;
  p.b_col_stride = 1;
  problem.rows_are_slots = graph.is_step();
  return problem;
}

// The product with one slice's columns.
void take_slice(const LinearSlice& slice, MatmulProblem& problem) {
  problem.format = slice.format;
  problem.params.n = slice.n;
  problem.params.b_panel_stride = panel_stride(slice.format, problem.params.k);
  problem.params.bias_offset = slice.bias_offset;
}

// One product per slice, or several.
Status lower_linear(LowerContext& context, const Node& node, const MatmulNodeAttrs& attrs) {
  MatmulProblem problem = linear_problem(context.graph, node, attrs);
  MatmulParams& p = problem.params;
  // A gated layer writes one column for every pair.
  const uint32_t per_column = attrs.gate == GatePairs::kPairs ? 2 : 1;
  const bool residual = attrs.third == MatmulNodeAttrs::Third::kResidual;
  p.y_row_stride = attrs.weight.n / per_column;
  if (residual) p.c_row_stride = attrs.weight.n;
  for (const RowWindow& window : row_windows(context, p.m, 4ull * p.y_row_stride)) {
    p.m = window.rows;
    p.a_offset = window.first * p.k;
    for (const LinearSlice& slice : slices_of(attrs.weight)) {
      take_slice(slice, problem);
      const uint32_t step = columns_at_once(context, p);
      for (uint32_t column = 0; column < slice.n; column += step) {
        p.n = std::min(step, slice.n - column);
        p.b_offset = column / kPanelColumns * p.b_panel_stride;
        p.bias_offset = slice.bias_offset;
        if (p.bias_offset != kMatmulNone) p.bias_offset += column;
        p.y_offset = (slice.first + column) / per_column;
        if (residual) p.c_offset = window.first * p.c_row_stride + slice.first + column;
        VKF_CHECK(emit(context, node, problem, slice.tensor, window));
      }
    }
  }
  return {};
}

void set_addend(const TensorDesc& c, const Shape& y, uint64_t batch_index, MatmulParams& p) {
  p.c_offset = 0;
  p.c_row_stride = c.shape.size() == 1 ? 0 : p.n;
  if (c.shape.size() == y.size() && y.size() > 2) {
    p.c_batch_stride = p.m * p.n;
    p.c_offset = static_cast<uint32_t>(batch_index * p.c_batch_stride);
  }
}

// Batches that broadcast: runs of equal stride become one dispatch over z.
Status lower_batched(LowerContext& context, const Node& node, const MatmulNodeAttrs& attrs) {
  const TensorDesc& a = context.desc(node.inputs[0]);
  const TensorDesc& b = context.desc(node.inputs[1]);
  const Shape& y = context.desc(node.outputs[0]).shape;
  const Shape batch(y.begin(), y.end() - 2);
  const uint64_t count = static_cast<uint64_t>(element_count(batch));
  const uint64_t inner = batch.empty() ? 1 : static_cast<uint64_t>(batch.back());
  const MatrixLayout la = matrix_layout(a.shape, attrs.matmul.trans_a);
  const MatrixLayout lb = matrix_layout(b.shape, attrs.matmul.trans_b);
  uint64_t run = 0;
  for (uint64_t first = 0; first < count; first += run) {
    run = std::min<uint64_t>(inner - first % inner, context.caps.limits.max_group_count[2]);
    MatmulProblem problem{.params = base_params(attrs), .batch = static_cast<uint32_t>(run)};
    MatmulParams& p = problem.params;
    p.m = static_cast<uint32_t>(y[y.size() - 2]);
    p.n = static_cast<uint32_t>(y.back());
    p.k = static_cast<uint32_t>(a.shape[a.shape.size() - (attrs.matmul.trans_a ? 2 : 1)]);
    const auto stride = [&](const Shape& operand, uint32_t matrix) {
      if (run == 1) return 0u;
      const uint64_t step =
          operand_batch(operand, batch, first + 1) - operand_batch(operand, batch, first);
      return static_cast<uint32_t>(step) * matrix;
    };
    p.a_offset = static_cast<uint32_t>(operand_batch(a.shape, batch, first)) * la.matrix;
    p.a_row_stride = la.row_stride;
    p.a_col_stride = la.col_stride;
    p.a_batch_stride = stride(a.shape, la.matrix);
    p.b_offset = static_cast<uint32_t>(operand_batch(b.shape, batch, first)) * lb.matrix;
    p.b_row_stride = lb.row_stride;
    p.b_col_stride = lb.col_stride;
    p.b_panel_stride = kPanelColumns * lb.col_stride;
    p.b_batch_stride = stride(b.shape, lb.matrix);
    p.y_row_stride = p.n;
    p.y_batch_stride = p.m * p.n;
    p.y_offset = static_cast<uint32_t>(first * p.y_batch_stride);
    if (node.inputs[2] != kNoTensor) set_addend(context.desc(node.inputs[2]), y, first, p);
    VKF_CHECK(emit(context, node, problem, node.inputs[1]));
  }
  return {};
}

}  // namespace

Status lower_matmul(LowerContext& context, const Node& node) {
  const auto& attrs = attrs_of<MatmulNodeAttrs>(node);
  const Shape& a = context.desc(node.inputs[0]).shape;
  const auto k = static_cast<uint64_t>(a[a.size() - (attrs.matmul.trans_a ? 2 : 1)]);
  VKF_CHECK(check_product_depth(context.caps, OpId::k_matmul, k));
  return attrs.weight.tensor != kNoTensor ? lower_linear(context, node, attrs)
                                          : lower_batched(context, node, attrs);
}

// Whether that is less work than a dispatch and a barrier, which take some microseconds. It is
// measured on software devices alone, where it gains nothing. There the norm stays, so that a row
// has the same bits whatever the batch. GPUs have separate kernels for up to kMostRows rows in any
// case, and a choice by the columns alone adds no other border between them.
bool products_take_norm(const Graph& graph, const Node& linear, const DeviceCaps& caps,
                        Precision asked) {
  constexpr uint32_t kMostRows = 4;                 // of the first row of the GPUs' table
  constexpr uint64_t kMostElementsOfRow = 1 << 19;  // that all workgroups read again
  const auto& attrs = attrs_of<MatmulNodeAttrs>(linear);
  const Precision precision = attrs.weight.exact ? Precision::kF32 : asked;
  if (!graph.is_step() || caps.device_class == DeviceClass::kSoftware) return false;
  MatmulProblem problem = linear_problem(graph, linear, attrs);
  MatmulParams& p = problem.params;
  const auto takes = [&](const LinearSlice& slice) {
    take_slice(slice, problem);
    const MatmulChoice choice = pick_matmul(problem, caps, precision);
    if (choice.strategy != MatmulStrategy::kRows) return false;
    const Dispatch d = launch_matmul(linear, problem, caps, precision, choice);
    return uint64_t{d.groups[1]} * p.k <= kMostElementsOfRow && !caps.is_demoted(d.kernel);
  };
  const std::vector<LinearSlice> slices = slices_of(attrs.weight);
  return p.m <= kMostRows && std::all_of(slices.begin(), slices.end(), takes);
}

}  // namespace vkformer
