#include "ops/matmul_lowering.h"

#include <algorithm>

#include "base/message.h"
#include "ops/matmul_dots.h"
#include "ops/matmul_strategy.h"
#include "ops/row_kernel.h"
#include "params/activation.h"

namespace vkformer {
namespace {

// Replaces the table's choice where it would leave much of a GPU without work. matmul_tiled gets a
// smaller block. matmul_rows gets fewer columns for a workgroup and more slices of K in their
// place.
MatmulChoice filling(const MatmulProblem& problem, const DeviceCaps& caps, MatmulChoice choice) {
  constexpr uint32_t kLeastLanes = 4;
  if (choice.strategy == MatmulStrategy::kDotTiles) {
    // Intel's compiler spills sums of 64 rows and columns, as those of matmul_tiled.
    const bool few = blocks_of(problem, choice.rows) < blocks_wanted(caps);
    if (few || choice.rows > caps.gpu.matmul_packed_block) choice.rows = 32;
  } else if (choice.strategy == MatmulStrategy::kTiled) {
    const uint32_t most = in_blocks(problem.format) ? caps.gpu.matmul_packed_block : choice.rows;
    while (choice.rows > most ||
           (choice.rows > 32 && blocks_of(problem, choice.rows) < blocks_wanted(caps))) {
      choice.rows /= 2;
    }
  } else if ((choice.strategy == MatmulStrategy::kRows ||
              choice.strategy == MatmulStrategy::kDots) &&
             caps.device_class != DeviceClass::kSoftware && !caps.sums_in_order) {
    const MatmulParams& p = problem.params;
    const uint32_t least_steps = in_blocks(problem.format) ? 32 : 16;  // of a slice of K
    const auto groups = [&] {
      return uint64_t{ceil_div(p.n, choice.lanes * kGroupColumns)} * problem.batch;
    };
    while (choice.lanes > kLeastLanes && groups() < 8 * blocks_wanted(caps) &&
           2 * choice.slices * least_steps <= p.k) {
      choice.lanes /= 2;
      choice.slices *= 2;
    }
  }
  return choice;
}

}  // namespace

MatmulChoice pick_matmul(const MatmulProblem& problem, const DeviceCaps& caps, Precision precision,
                         const MatmulChoice* wanted) {
  const MatmulCall call{problem, caps, multiplies_halves(problem, caps, precision),
                        precision == Precision::kReproducible};
  const auto takes = [&](const MatmulChoice& choice) {
    return strategy_row(choice.strategy).takes(call, choice);
  };
  const auto tuned = tuned_choice(caps, problem.params.m, problem.format, precision);
  if (wanted == nullptr && tuned && packed_like(problem)) wanted = &*tuned;
  if (wanted != nullptr && takes(*wanted)) return *wanted;
  const std::vector<MatmulTableRow> table = matmul_table(caps, precision);
  const auto row = std::find_if(table.begin(), table.end() - 1, [&](const MatmulTableRow& r) {
    return r.covers(problem.params.m) && takes(r.choice);
  });
  return filling(problem, caps, row->choice);
}

uint32_t parts_of_k(const MatmulProblem& problem, const DeviceCaps& caps,
                    const MatmulChoice& choice) {
  const MatmulStrategyRow& row = strategy_row(choice.strategy);
  return row.parts != nullptr ? row.parts(problem, caps, choice) : 0;
}

PartsLayout parts_layout(const MatmulProblem& problem, uint32_t parts) {
  const uint32_t row_stride = ceil_div(problem.params.n, 4) * 4;
  const uint32_t matrix = row_stride * problem.params.m;
  return {row_stride, matrix, uint64_t{4} * problem.batch * parts * matrix};
}

Dispatch launch_matmul(const Node& node, const MatmulProblem& problem, const DeviceCaps& caps,
                       Precision precision, const MatmulChoice& choice, uint32_t parts) {
  Dispatch d;
  d.label = node.label;
  const MatmulCall call{problem, caps, multiplies_halves(problem, caps, precision),
                        precision == Precision::kReproducible};
  strategy_row(choice.strategy).launch(d, call, choice, parts);
  MatmulParams params = problem.params;
  if (parts > 0) {
    const PartsLayout layout = parts_layout(problem, parts);
    params.y_offset = 0;
    params.y_row_stride = layout.row_stride;
    params.y_batch_stride = layout.matrix;
  }
  if (reads_bytes(choice)) {
    params.a_offset = 0;
    params.a_row_stride = byte_row_words(params.k);
  }
  d.set_push(params);
  const double products = static_cast<double>(problem.batch) * problem.params.m * problem.params.n;
  d.flops = 2.0 * products * problem.params.k;
  // Every workgroup repeats the norm of its rows.
  if (problem.norm != kNormNone) d.flops += 8.0 * d.groups[1] * params.m * params.k;
  const double words_of_row = reads_bytes(choice) ? byte_row_words(params.k) : params.k;
  d.bytes = 4.0 * (std::max(parts, 1u) * products +
                   static_cast<double>(problem.batch) * problem.params.m * words_of_row) +
            4.0 / kPanelColumns * problem.params.n *
                (params.b_batch_stride > 0 ? problem.batch : 1) *
                static_cast<double>(panel_words(problem.format, problem.params.k));
  return d;
}

Access result_access(const Dispatch& product) {
  // Only its rows are a table.
  return product.table_part_bytes > 0 && product.table_binding == 0 ? Access::kReadWrite
                                                                    : Access::kWrite;
}

Dispatch launch_parts(const Node& node, const MatmulProblem& problem, uint32_t parts) {
  constexpr uint32_t kLocalSize = 64;
  const PartsLayout layout = parts_layout(problem, parts);
  MatmulParams p = problem.params;
  p.k = parts;
  p.a_offset = 0;
  p.a_row_stride = layout.row_stride;
  p.a_col_stride = layout.matrix;
  p.a_batch_stride = parts * layout.matrix;
  Dispatch d;
  d.label = node.label;
  d.kernel = KernelId::matmul_parts__f32_any_f32;
  d.set_constants(MatmulPartsConstants{.local_size = kLocalSize, .activation = p.activation});
  d.groups = {ceil_div(p.n, 4 * kLocalSize), p.m, problem.batch};
  set_live(d, problem, 1, 1);
  d.set_push(p);
  const double products = static_cast<double>(problem.batch) * p.m * p.n;
  d.flops = products * parts;
  d.bytes = 4.0 * products * (parts + 1.0);
  return d;
}

Status check_product_depth(const DeviceCaps& caps, OpId op, uint64_t k) {
  // Every kernel that a software device may run takes 4 steps of K in a round.
  if (!leaves_loops(caps, k / 4 + 4)) return {};
  return unsupported(
      message({"[", op_name(op), "] There is no kernel for K = ", k,
               " on this software device, whose loops end after ", kMostSoftwareIterations,
               " rounds; multiply parts of K and add them up"}));
}

Status emit_product(LowerContext& context, const Node& node, const MatmulProblem& problem,
                    Precision precision, const ProductTensors& tensors) {
  const DeviceCaps& caps = context.caps.for_products();
  const MatmulChoice choice = pick_matmul(problem, caps, precision);
  if (problem.norm != kNormNone && choice.strategy != MatmulStrategy::kRows)
    return internal_error("[matmul] Fusion put a norm into a product that is not matmul_rows.");
  const uint32_t parts = parts_of_k(problem, caps, choice);
  Dispatch d = launch_matmul(node, problem, caps, precision, choice, parts);
  const uint32_t a =
      reads_bytes(choice) ? quantized_rows(context, node, problem, tensors.a) : tensors.a;
  // The binding of an absent third input still needs a buffer; any readable one serves.
  const TensorId third = tensors.third == kNoTensor ? tensors.a : tensors.third;
  BoundBuffer result = tensors.y;
  if (parts > 0) {
    result = {context.add_scratch("matmul.parts", parts_layout(problem, parts).bytes)};
  }
  result.access = result_access(d);
  d.bindings = {{a, Access::kRead}, {tensors.b, Access::kRead}, {third, Access::kRead}, result};
  context.plan.dispatches.push_back(std::move(d));
  if (parts == 0) return {};
  Dispatch last = launch_parts(node, problem, parts);
  last.bindings = {{result.buffer, Access::kRead},
                   {tensors.b, Access::kRead},
                   {third, Access::kRead},
                   tensors.y};
  context.plan.dispatches.push_back(std::move(last));
  return {};
}

}  // namespace vkformer
