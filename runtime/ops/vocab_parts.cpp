#include "ops/vocab_parts.h"

#include <algorithm>

#include "ops/row_kernel.h"

namespace vkformer {
namespace {

constexpr uint64_t kSumPasses = 2;

}  // namespace

uint32_t vocab_parts(const SearchParams& p) {
  return p.vocab / VKF_VOCAB_PART + (p.vocab % VKF_VOCAB_PART != 0 ? 1 : 0);
}

TensorId add_part_sums(Graph& graph, const SearchParams& p) {
  const int64_t parts = vocab_parts(p);
  if (parts == 1) return kNoTensor;
  return graph.add_tensor({"part_sums", DType::kF32, {int64_t{p.batch} * p.beams, parts, 2}});
}

void lower_part_sums(LowerContext& context, const Node& node, const SearchParams& p,
                     TensorId logits, TensorId state, TensorId part_sums) {
  Dispatch d = make_dispatch(node, KernelId::log_sum_parts__f32_none_f32);
  d.bindings = {{logits, Access::kRead}, {part_sums, Access::kWrite}, {state, Access::kRead}};
  d.set_push(p);
  d.set_constants(WorkgroupConstants{part_local_size(context.caps, p, kSumPasses)});
  set_part_groups(context, d, p);
  const double tokens = static_cast<double>(p.batch) * p.beams * p.vocab;
  d.flops = 4.0 * tokens;
  d.bytes = 4.0 * tokens;
  context.plan.dispatches.push_back(std::move(d));
}

void set_part_groups(const LowerContext& context, Dispatch& d, const SearchParams& p) {
  set_row_groups(context, d, uint64_t{p.batch} * p.beams, 1);
  d.groups[1] = vocab_parts(p);
}

uint32_t part_local_size(const DeviceCaps& caps, const SearchParams& p, uint64_t passes) {
  return row_local_size(caps, std::min(p.vocab, VKF_VOCAB_PART), passes);
}

}  // namespace vkformer
