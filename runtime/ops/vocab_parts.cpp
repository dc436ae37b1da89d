#include "ops/vocab_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/row_kernel.h"

namespace vkformer {
namespace {

constexpr uint64_t kSumPasses = 2;

void add_pass(LowerContext& context, const Node& node, const SearchParams& p, KernelId kernel,
              std::vector<BoundBuffer> bindings) {
  Dispatch d = make_dispatch(node, kernel);
  d.bindings = std::move(bindings);
  d.set_push(p);
  d.set_constants(WorkgroupConstants{part_local_size(context.caps, p, kSumPasses)});
  set_part_groups(context, d, p);
  const double tokens = static_cast<double>(p.batch) * p.beams * p.vocab;
  d.flops = 4.0 * tokens;
  d.bytes = 4.0 * tokens;
  context.plan.dispatches.push_back(std::move(d));
}

}  // namespace

uint32_t vocab_parts(const SearchParams& p) {
  return VKF_VOCAB_PARTS(p.vocab);
}

TensorId add_part_sums(Graph& graph, const SearchParams& p) {
  const int64_t rows = int64_t{p.batch} * p.beams;
  return graph.add_tensor({"part_sums", DType::kF32, {rows, vocab_parts(p), 2}});
}

void lower_part_sums(LowerContext& context, const Node& node, const SearchParams& p,
                     TensorId logits, TensorId state, TensorId sums) {
  add_pass(context, node, p, KernelId::log_sum_parts__f32_none_f32,
           {{logits, Access::kRead}, {sums, Access::kWrite}, {state, Access::kRead}});
}

TensorId add_part_logs(Graph& graph, const SearchParams& p) {
  const int64_t rows = int64_t{p.batch} * p.beams;
  return graph.add_tensor({"log_probabilities", DType::kF32, {rows, p.vocab}});
}

void lower_part_logs(LowerContext& context, const Node& node, const SearchParams& p,
                     TensorId logits, TensorId state, TensorId sums, TensorId logs) {
  add_pass(context, node, p, KernelId::log_probabilities_row__f32_f32_f32,
           {{logits, Access::kRead},
            {sums, Access::kRead},
            {logs, Access::kWrite},
            {state, Access::kRead}});
}

void set_part_groups(const LowerContext& context, Dispatch& d, const SearchParams& p) {
  set_row_groups(context, d, uint64_t{p.batch} * p.beams, 1);
  d.groups[1] = vocab_parts(p);
}

uint32_t part_local_size(const DeviceCaps& caps, const SearchParams& p, uint64_t passes) {
  return row_local_size(caps, std::min(p.vocab, VKF_VOCAB_PART), passes);
}

}  // namespace vkformer
