#include "ops/matmul_dots.h"

#include <algorithm>
#include <cstring>

#include "params/byte_rows.h"
#include "params/matmul_dots.h"

namespace vkformer {
namespace {

// The variant with integer dot products, unless it is demoted.
KernelId dot_variant(const DeviceCaps& caps, KernelId dot8, KernelId plain) {
  return caps.dot8() && !caps.is_demoted(dot8) ? dot8 : plain;
}

uint32_t most_rows(const DeviceCaps& caps, MatrixFormat format) {
  return has_scales_of_16(format) ? caps.gpu.matmul_dot_rows_of_16 : caps.gpu.matmul_dot_rows;
}

uint32_t most_invocations(const DeviceCaps& caps) {
  return std::min(caps.limits.max_invocations, caps.limits.max_group_size[0]);
}

// Two quads of every invocation and row in 16 KiB of shared memory, with as many rows as any
// format.
bool dots_run(const MatmulChoice& c, const DeviceCaps& caps) {
  const uint32_t invocations = uint32_t{c.lanes} * c.slices;
  return invocations > 0 && invocations <= most_invocations(caps) &&
         2u * rows_of_pass(caps, std::min(c.max_rows, kMostFewRows), caps.gpu.matmul_dot_rows) *
                 invocations * 16u <=
             16384u;
}

bool bytes_take(const MatmulCall& call, const MatmulChoice&) {
  return has_integer_products(call.problem.format) && call.problem.norm == kNormNone &&
         call.problem.batch == 1 && packed_like(call.problem);
}

void launch_dots(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t) {
  const MatmulParams& p = call.problem.params;
  const uint32_t rows = rows_of_pass(call.caps, p.m, most_rows(call.caps, call.problem.format));
  const uint32_t lanes = choice.lanes;
  d.kernel = dot_variant(call.caps, KernelId::matmul_dots__i8_blocks_f32_dot8,
                         KernelId::matmul_dots__i8_blocks_f32);
  d.set_constants(MatmulDotsConstants{.local_size = lanes * choice.slices,
                                      .rows = rows,
                                      .column_lanes = lanes,
                                      .slices = choice.slices,
                                      .activation = p.activation,
                                      .format = format_of(call.problem)});
  d.groups = {ceil_div(p.m, rows), ceil_div(p.n, lanes * kGroupColumns), 1};
  set_live(d, call.problem, 0, rows);
}

bool dot_tiles_run(const MatmulChoice& c, const DeviceCaps& caps) {
  return (c.rows == 32 || c.rows == 64) && 2u * c.rows <= most_invocations(caps);
}

void launch_dot_tiles(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t) {
  const MatmulParams& p = call.problem.params;
  const uint32_t block = choice.rows;
  d.kernel = dot_variant(call.caps, KernelId::matmul_dot_tiles__i8_blocks_f32_dot8,
                         KernelId::matmul_dot_tiles__i8_blocks_f32);
  d.set_constants(MatmulDotTilesConstants{.local_size = 2 * block,
                                          .block = block,
                                          .tile_m = block / 8,
                                          .activation = p.activation,
                                          .format = format_of(call.problem)});
  d.groups = {ceil_div(p.n, block), ceil_div(p.m, block), 1};
  set_live(d, call.problem, 1, block);
}

bool writes(const Dispatch& d, uint32_t buffer) {
  return std::any_of(d.bindings.begin(), d.bindings.end(), [&](const BoundBuffer& b) {
    return b.buffer == buffer && b.access != Access::kRead;
  });
}

}  // namespace

const MatmulStrategyRow& dots_row() {
  static constexpr MatmulStrategyRow kRow{dots_run, bytes_take, launch_dots};
  return kRow;
}

const MatmulStrategyRow& dot_tiles_row() {
  static constexpr MatmulStrategyRow kRow{dot_tiles_run, bytes_take, launch_dot_tiles};
  return kRow;
}

uint32_t quantized_rows(LowerContext& context, const Node& node, const MatmulProblem& problem,
                        uint32_t a) {
  constexpr uint32_t kLocalSize = 64;
  const MatmulParams& p = problem.params;
  const uint32_t blocks = ceil_div(p.k, kBlockSteps);
  Dispatch d = make_dispatch(node, KernelId::quantize_rows__f32_none_i8);
  d.set_constants(QuantizeRowsConstants{.local_size = kLocalSize, .aligned_a = aligned_a(p)});
  d.set_push(QuantizeRowsParams{.rows = p.m,
                                .k = p.k,
                                .x_offset = p.a_offset,
                                .x_row_stride = p.a_row_stride,
                                .blocks = blocks,
                                .y_row_stride = byte_row_words(p.k)});
  set_row_groups(context, d, p.m, 1);
  d.groups[2] = ceil_div(blocks, kLocalSize);
  for (size_t i = context.plan.dispatches.size(); i > 0; --i) {
    const Dispatch& before = context.plan.dispatches[i - 1];
    if (writes(before, a)) break;
    if (before.kernel == d.kernel && before.bindings[0].buffer == a && before.push == d.push) {
      return before.bindings[1].buffer;
    }
  }
  const double elements = static_cast<double>(p.m) * p.k;
  const uint64_t bytes = uint64_t{4} * p.m * byte_row_words(p.k);
  d.flops = 4.0 * elements;
  d.bytes = 4.0 * elements + static_cast<double>(bytes);
  const uint32_t y = context.add_scratch("matmul.bytes", bytes);
  d.bindings = {{a, Access::kRead}, {y, Access::kWrite}};
  context.plan.dispatches.push_back(std::move(d));
  return y;
}

}  // namespace vkformer
