#include "ops/experts.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/message.h"
#include "ops/matmul_strategy.h"
#include "ops/node_attrs.h"
#include "ops/row_op.h"
#include "params/activation.h"
#include "params/experts.h"

namespace vkformer {
namespace {

Error experts_error(std::initializer_list<MessagePart> parts) {
  return op_error(OpId::k_experts, message(parts));
}

uint32_t panels_of(const ExpertWeight& weight) {
  return ceil_div(weight.n, kPanelColumns);
}

Status check_weight(const char* name, const ExpertWeight& weight, uint32_t n, uint32_t k) {
  const bool whole = weight.all.n == weight.experts * panels_of(weight) * kPanelColumns;
  if (weight.experts >= 1 && weight.n == n && weight.all.k == k && whole) return {};
  return experts_error({name, " has ", weight.experts, " experts of (", weight.n, ", ",
                        weight.all.k, ") in ", weight.all.n, " columns, but must have (", n, ", ",
                        k, "), each filled up to a multiple of ", kPanelColumns, " columns."});
}

Status check_routes(const TensorDesc& x, const TensorDesc& routes, uint32_t choices) {
  const size_t rank = x.shape.size();
  const bool fit = routes.dtype == DType::kU32 && routes.shape.size() == rank + 1 &&
                   std::equal(x.shape.begin(), x.shape.end() - 1, routes.shape.begin()) &&
                   routes.shape[rank] == 2 && choices >= 1 && choices <= routes.shape[rank - 1];
  if (fit) return {};
  return experts_error({"routes is ", dtype_name(routes.dtype), " ", shape_text(routes.shape),
                        ", but must be U32, x's ", shape_text(x.shape), " with at least ", choices,
                        " pairs in the place of its last axis."});
}

}  // namespace

Result<TensorDesc> check_experts(const TensorDesc& x, const TensorDesc& routes,
                                 const ExpertWeight& up, const ExpertWeight& down,
                                 const ExpertsAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_experts, "x", x, 1));
  VKF_CHECK(check_routes(x, routes, attrs.choices));
  const uint32_t per_feature = attrs.gate == GatePairs::kPairs ? 2 : 1;
  VKF_CHECK(
      check_weight("up", up, down.all.k * per_feature, static_cast<uint32_t>(x.shape.back())));
  VKF_CHECK(check_weight("down", down, static_cast<uint32_t>(x.shape.back()), down.all.k));
  if (up.experts != down.experts) {
    return experts_error({"up has ", up.experts, " experts, but down has ", down.experts, "."});
  }
  const bool limited = attrs.gate_limit > 0 && std::isfinite(attrs.gate_limit);
  if (attrs.gate_limit != 0.0f && !(limited && attrs.gate == GatePairs::kPairs)) {
    return experts_error(
        {"gate_limit is ", attrs.gate_limit, ", but must be 0, or above 0 and finite with gates."});
  }
  if (!std::isfinite(attrs.scale)) {
    return experts_error({"scale is ", attrs.scale, ", but must be finite."});
  }
  return TensorDesc{"experts", DType::kF32, x.shape};
}

Result<TensorId> add_experts(Graph& graph, const ExpertsInputs& inputs, const ExpertWeight& up,
                             const ExpertWeight& down, const ExpertsAttrs& attrs) {
  const TensorDesc& x = graph.tensor(inputs.x);
  const TensorDesc& routes = graph.tensor(inputs.routes);
  VKF_ASSIGN(TensorDesc out, check_experts(x, routes, up, down, attrs));
  for (const TensorId id : {inputs.always, inputs.residual}) {
    if (id != kNoTensor && graph.tensor(id).shape != x.shape) {
      return experts_error({"always or residual has shape ", shape_text(graph.tensor(id).shape),
                            ", but x has ", shape_text(x.shape), "."});
    }
  }
  if (inputs.always != kNoTensor && attrs.choices >= routes.shape[x.shape.size() - 1]) {
    return experts_error(
        {"routes has no weight of always after the ", attrs.choices, " chosen experts."});
  }
  std::string text =
      message({attrs.choices, " of ", up.experts, " ", activation_name(attrs.activation)});
  if (attrs.gate == GatePairs::kPairs) text += " gate";
  if (attrs.gate_limit != 0.0f) text += " limit=" + number_text(attrs.gate_limit);
  if (attrs.scale != 1.0f) text += " scale=" + number_text(attrs.scale);
  if (up.all.format != MatrixFormat::kF32)
    text += message({" ", format_name(up.all.format), " weight"});
  Node node = make_node<OpId::k_experts>(ExpertsNodeAttrs{attrs, up, down}, std::move(text));
  node.inputs = {inputs.x, inputs.routes, inputs.always, inputs.residual};
  for (const ExpertWeight* weight : {&up, &down}) {
    for (const LinearSlice& slice : slices_of(weight->all)) node.inputs.push_back(slice.tensor);
  }
  return add_single_output(graph, std::move(node), std::move(out));
}

namespace {

// Rows of a step or of a short prompt: each choice by itself. Unmeasured.
constexpr uint64_t kMostRowsAlone = 4;

// Rows that are taken at a time.
struct RowWindow {
  uint32_t first, rows;
};

// A tensor (R, D) of which the rows of a window are bound.
BoundBuffer rows_bound(TensorId id, Access access, const RowWindow& window, uint64_t row_bytes,
                       uint64_t all_rows) {
  if (window.rows == all_rows) return {id, access};
  return {id, access, window.first * row_bytes, window.rows * row_bytes};
}

// One of the two products.
struct Product {
  const ExpertWeight& weight;
  uint32_t share;  // choices that read the same row of A
  BoundBuffer a, y;
  uint32_t y_width;
  uint32_t activation = kActivationNone;
  float gate_limit = 0.0f;
};

class ExpertsLowering {
 public:
  ExpertsLowering(LowerContext& context, const Node& node)
      : context_(context),
        node_(node),
        own_(attrs_of<ExpertsNodeAttrs>(node)),
        choices_(own_.attrs.choices) {
    const Shape& routes = context.desc(node.inputs[kExpertsRoutes]).shape;
    entries_ = static_cast<uint32_t>(routes[routes.size() - 2]);
    rows_ = row_count(context.desc(node.inputs[kExpertsX]).shape);
    width_ = own_.down.n;
    hidden_ = own_.down.all.k;
  }

  Status lower();

 private:
  bool alone() const { return context_.graph.is_step() || rows_ <= kMostRowsAlone; }
  uint64_t rows_at_once() const;
  void lower_window(const RowWindow& window);
  void add_order(const RowWindow& window);
  void add_product(const RowWindow& window, const Product& product);
  void launch(const RowWindow& window, const Product& product, MatmulParams& p, ExpertParams& e,
              const LinearSlice& slice);
  void rows_kernel(const RowWindow& window, const Product& product, MatmulParams& p,
                   const ExpertParams& e, Dispatch& d) const;
  void tiled_kernel(const Product& product, MatmulParams& p, Dispatch& d) const;
  void add_sum(const RowWindow& window, BoundBuffer z, const ExpertSumParams& params,
               const BoundBuffer* residual, BoundBuffer y);
  // Rows of one expert that a workgroup multiplies: the side of its block.
  uint32_t tile_rows() const {
    const GpuTraits& gpu = context_.caps.gpu;
    return std::min({kMostExpertTileRows, gpu.matmul_block, gpu.matmul_packed_block});
  }
  uint32_t tiles() const { return pairs_ / tile_rows() + own_.up.experts; }

  LowerContext& context_;
  const Node& node_;
  const ExpertsNodeAttrs& own_;
  uint32_t choices_, entries_ = 1, width_ = 1, hidden_ = 1;
  uint64_t rows_ = 0;
  uint32_t hidden_rows_ = 0, chosen_rows_ = 0, list_ = 0, first_sum_ = 0;  // scratch buffers
  uint32_t pairs_ = 0;                                                     // choices of the window
};

// The number of rows whose tensors between the two products fit into one binding of any device.
// Their tiles fit into the groups of one dispatch.
uint64_t ExpertsLowering::rows_at_once() const {
  constexpr uint64_t kTile = 64;  // rows; a multiple of 64 words is aligned for every device
  constexpr uint64_t kMostBytes = uint64_t{1} << 27;
  constexpr uint64_t kMostTiles = 65535;  // of any device, and what matmul_tiled.comp takes
  const uint64_t limit = std::min<uint64_t>(context_.caps.limits.max_storage_range, kMostBytes);
  const uint64_t row_bytes = 4ull * choices_ * std::max(width_, hidden_);
  const uint64_t most =
      std::min(limit / row_bytes, (kMostTiles - own_.up.experts) * tile_rows() / choices_);
  if (alone() || rows_ <= most) return rows_;
  return std::max(kTile, most / kTile * kTile);
}

Status ExpertsLowering::lower() {
  for (const ExpertWeight* weight : {&own_.up, &own_.down}) {
    const uint64_t k = weight->all.k;
    if (!leaves_loops(context_.caps, k / 4 + 4)) continue;
    return unsupported(message({"[experts] There is no kernel for K = ", k,
                                " on this software device, whose loops end after ",
                                kMostSoftwareIterations, " rounds"}));
  }
  const uint64_t most = rows_at_once();
  const uint64_t pairs = std::min(most, rows_) * choices_;
  if (!alone() && leaves_loops(context_.caps, 4 * (pairs / 4 + 1))) {
    return unsupported(message({"[experts] There is no kernel that sorts ", pairs,
                                " choices on a software device; use a shorter sequence"}));
  }
  hidden_rows_ = context_.add_scratch("experts.up", 4 * pairs * hidden_);
  chosen_rows_ = context_.add_scratch("experts.down", 4 * pairs * width_);
  if (!alone()) {
    const uint64_t tiles = pairs / tile_rows() + own_.up.experts;
    list_ = context_.add_scratch("experts.order", 4 * (3 * tiles + pairs));
  }
  if (node_.inputs[kExpertsAlways] != kNoTensor) {
    first_sum_ = context_.add_scratch("experts.always", 4 * std::min(most, rows_) * width_);
  }
  for (uint64_t first = 0; first < rows_; first += most) {
    lower_window(
        {static_cast<uint32_t>(first), static_cast<uint32_t>(std::min(most, rows_ - first))});
  }
  return {};
}

void ExpertsLowering::lower_window(const RowWindow& window) {
  const uint64_t row_bytes = 4ull * width_;
  const auto bound = [&](TensorId id, Access access) {
    return rows_bound(id, access, window, row_bytes, rows_);
  };
  pairs_ = window.rows * choices_;
  if (!alone()) add_order(window);
  const ExpertsAttrs& attrs = own_.attrs;
  uint32_t activation = static_cast<uint32_t>(attrs.activation);
  if (attrs.gate == GatePairs::kPairs) activation |= kActivationGate;
  add_product(window, {.weight = own_.up,
                       .share = choices_,
                       .a = bound(node_.inputs[kExpertsX], Access::kRead),
                       .y = {hidden_rows_, Access::kWrite},
                       .y_width = hidden_,
                       .activation = activation,
                       .gate_limit = attrs.gate_limit});
  add_product(window, {.weight = own_.down,
                       .share = 1,
                       .a = {hidden_rows_, Access::kRead},
                       .y = {chosen_rows_, Access::kWrite},
                       .y_width = width_});
  ExpertSumParams params{.rows = window.rows,
                         .width = width_,
                         .count = choices_,
                         .first = 0,
                         .entries = entries_,
                         .route_row = window.first,
                         .scale = attrs.scale,
                         .unused = 0};
  BoundBuffer residual{node_.inputs[kExpertsResidual], Access::kRead};
  bool added = node_.inputs[kExpertsResidual] != kNoTensor;
  if (added) residual = bound(residual.buffer, Access::kRead);
  if (node_.inputs[kExpertsAlways] != kNoTensor) {
    ExpertSumParams one = params;
    one.count = 1;
    one.first = choices_;
    add_sum(window, bound(node_.inputs[kExpertsAlways], Access::kRead), one,
            added ? &residual : nullptr, {first_sum_, Access::kWrite});
    residual = {first_sum_, Access::kRead};
    added = true;
  }
  add_sum(window, {chosen_rows_, Access::kRead}, params, added ? &residual : nullptr,
          bound(node_.outputs[0], Access::kWrite));
}

void ExpertsLowering::add_order(const RowWindow& window) {
  const ExpertOrderParams params{.pairs = pairs_,
                                 .choices = choices_,
                                 .entries = entries_,
                                 .first_row = window.first,
                                 .experts = own_.up.experts,
                                 .order = 3 * tiles(),
                                 .tile_bits = static_cast<uint32_t>(std::countr_zero(tile_rows())),
                                 .unused = 0};
  Dispatch d = make_dispatch(node_, KernelId::expert_order_expert__u32_none_u32);
  d.bindings = {{node_.inputs[kExpertsRoutes], Access::kRead}, {list_, Access::kWrite}};
  const auto& limits = context_.caps.limits;
  d.set_constants(WorkgroupConstants{
      std::bit_floor(std::min({128u, limits.max_invocations, limits.max_group_size[0]}))});
  d.set_push(params);
  d.groups = {params.experts, 1, 1};
  d.flops = 4.0 * params.experts * params.pairs;
  d.bytes = 4.0 * (3.0 * tiles() + params.pairs) + 8.0 * params.pairs;
  context_.plan.dispatches.push_back(std::move(d));
}

// One dispatch per slice of the weight. A step cannot be split later on, so it gets one for each
// run of columns that is short enough.
void ExpertsLowering::add_product(const RowWindow& window, const Product& product) {
  const LinearWeight& all = product.weight.all;
  MatmulParams p{};
  p.k = all.k;
  p.b_row_stride = kPanelColumns;
  p.b_panel_stride = panel_stride(all.format, all.k);
  p.b_col_stride = 1;
  p.a_col_stride = 1;
  p.c_offset = kMatmulNone;
  p.alpha = 1.0f;
  p.activation = product.activation;
  const uint32_t columns = product.weight.n;
  const double panel_flops = 2.0 * pairs_ * all.k * kPanelColumns;
  const double limit = context_.caps.max_dispatch_flops;
  uint32_t step = columns;
  if (context_.graph.is_step() && limit > 0 && panel_flops * panels_of(product.weight) > limit) {
    step = std::max(1u, static_cast<uint32_t>(limit / panel_flops)) * kPanelColumns;
  }
  for (const LinearSlice& slice : slices_of(all)) {
    p.bias_offset = slice.bias_offset;
    for (uint32_t column = 0; column < columns; column += step) {
      ExpertParams e{.entries = entries_,
                     .panels = panels_of(product.weight),
                     .first_panel = slice.first / kPanelColumns,
                     .held_panels = ceil_div(slice.n, kPanelColumns),
                     .first_column = column,
                     .share = product.share,
                     .order = 3 * tiles(),
                     .gate_limit = product.gate_limit};
      p.n = std::min(columns, column + step);
      launch(window, product, p, e, slice);
    }
  }
}

void ExpertsLowering::launch(const RowWindow& window, const Product& product, MatmulParams& p,
                             ExpertParams& e, const LinearSlice& slice) {
  Dispatch d = make_dispatch(node_, KernelId{});
  BoundBuffer third{node_.inputs[kExpertsRoutes], Access::kRead};
  // Rows that read their own choice's row follow each other, as Y's do.
  p.a_row_stride = p.k * (alone() && product.share == 1 ? choices_ : 1);
  p.a_batch_stride = product.share == 1 ? p.k : 0;
  p.y_row_stride = product.y_width;
  if (alone()) {
    rows_kernel(window, product, p, e, d);
  } else {
    p.a_batch_stride = 0;
    tiled_kernel(product, p, d);
    third = {list_, Access::kRead};
  }
  d.bindings = {product.a, {slice.tensor, Access::kRead}, third, product.y};
  struct {
    MatmulParams p;
    ExpertParams e;
  } push{p, e};
  d.set_push(push);
  const double columns = p.n - e.first_column;
  const double pairs = pairs_;
  // In tiles each expert's last one may be short.
  const double rows = alone() ? pairs : std::min(pairs, double{1} * tiles()) * tile_rows();
  d.flops = 2.0 * rows * columns * p.k;
  const double read = alone() ? pairs : std::min<double>(pairs, product.weight.experts);
  const double panel_bytes = 4.0 * static_cast<double>(panel_words(product.weight.all.format, p.k));
  const double held =
      std::min(read * std::ceil(columns / kPanelColumns), double{1} * e.held_panels);
  d.bytes = held * panel_bytes + 4.0 * pairs * (p.k + columns);
  context_.plan.dispatches.push_back(std::move(d));
}

void ExpertsLowering::rows_kernel(const RowWindow& window, const Product& product, MatmulParams& p,
                                  const ExpertParams& e, Dispatch& d) const {
  constexpr uint32_t kLanes = kPanelColumns / kGroupColumns;
  const MatrixFormat format = product.weight.all.format;
  const uint32_t least_steps = in_blocks(format) ? 32 : 16;  // of a slice of K
  const auto& limits = context_.caps.limits;
  const uint32_t most = std::min({128u, limits.max_invocations, limits.max_group_size[0]});
  uint32_t slices = 1;
  if (context_.caps.device_class != DeviceClass::kSoftware) {
    while (2 * slices * kLanes <= most && 2 * slices * least_steps <= p.k) slices *= 2;
  }
  d.kernel =
      variant_of(format, {KernelId::expert_rows__f32_f32_f32, KernelId::expert_rows__f32_f16_f32,
                          KernelId::expert_rows__f32_blocks_f32});
  p.m = window.rows;
  p.y_batch_stride = product.y_width;
  p.y_row_stride = product.y_width * choices_;
  d.set_constants(MatmulRowsConstants{.local_size = kLanes * slices,
                                      .rows = 1,
                                      .column_lanes = kLanes,
                                      .slices = slices,
                                      .norm = kNormNone,
                                      .ahead = loads_ahead(context_.caps, 1),
                                      .aligned_a = aligned_a(p),
                                      .activation = p.activation,
                                      .format = static_cast<uint32_t>(format)});
  d.groups = {window.rows, ceil_div(p.n - e.first_column, kPanelColumns), choices_};
  if (context_.graph.is_step()) {
    d.live_axis = 0;
    d.slots_per_group = 1;
  }
}

void ExpertsLowering::tiled_kernel(const Product& product, MatmulParams& p, Dispatch& d) const {
  const MatrixFormat format = product.weight.all.format;
  d.kernel =
      variant_of(format, {KernelId::expert_tiled__f32_f32_f32, KernelId::expert_tiled__f32_f16_f32,
                          KernelId::expert_tiled__f32_blocks_f32});
  // Fours of neighboring elements of A and B, and whole steps of K.
  const uint32_t wide = (aligned_a(p) != 0 ? 1u : 0u) | 2u | (p.k % 8 == 0 ? 4u : 0u);
  const uint32_t block = tile_rows();
  d.set_constants(MatmulTiledConstants{.local_size = 2 * block,
                                       .block = block,
                                       .tile_m = tile_rows_of_invocation(block),
                                       .tile_n = 4,
                                       .activation = p.activation,
                                       .wide = wide,
                                       .parts = 1,
                                       .format = static_cast<uint32_t>(format)});
  d.groups = {ceil_div(p.n, block), tiles(), 1};
}

void ExpertsLowering::add_sum(const RowWindow& window, BoundBuffer z, const ExpertSumParams& params,
                              const BoundBuffer* residual, BoundBuffer y) {
  Dispatch d = make_dispatch(node_, KernelId::expert_sum_run__f32_none_f32);
  d.bindings = {z, {node_.inputs[kExpertsRoutes], Access::kRead}, residual ? *residual : z, y};
  const uint32_t local = row_local_size(context_.caps, params.width);
  const uint32_t run = run_length(context_.caps, local);
  d.set_constants(
      ExpertSumConstants{.local_size = local, .chunk = run, .has_residual = residual != nullptr});
  d.set_push(params);
  set_row_groups(context_, d, window.rows, 1);
  d.groups[2] = std::max(1u, ceil_div(params.width, run));
  const double elements = static_cast<double>(params.rows) * params.width;
  d.flops = 2.0 * elements * (params.count + 1);
  d.bytes = 4.0 * elements * (params.count + 2);
  context_.plan.dispatches.push_back(std::move(d));
}

}  // namespace

Status lower_experts(LowerContext& context, const Node& node) {
  return ExpertsLowering(context, node).lower();
}

}  // namespace vkformer
