#include "ops/token_candidates.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/message.h"
#include "ops/node_attrs.h"
#include "ops/row_kernel.h"
#include "ops/vocab_parts.h"

namespace vkformer {

uint64_t search_words(const SearchParams& p) {
  const uint64_t rows = uint64_t{p.batch} * p.beams;
  return rows * p.capacity + rows + 4ull * p.batch + 2 * rows + rows * p.capacity;
}

Result<TensorDesc> check_token_candidates(const TensorDesc& logits, const SearchParams& p) {
  const int64_t rows = int64_t{p.batch} * p.beams;
  if (logits.dtype != DType::kF32 || logits.shape != Shape{rows, p.vocab}) {
    return op_error(OpId::k_token_candidates,
                    message({"logits are ", shape_text(logits.shape),
                             ", but must be F32 (R, V) = ", shape_text({rows, p.vocab})}));
  }
  if (p.vocab < 1 || p.candidates < 1 || p.candidates > VKF_MAX_CANDIDATES) {
    return op_error(
        OpId::k_token_candidates,
        message({"V is ", p.vocab, " and K ", p.candidates,
                 ", but V must be above 0 and K lie between 1 and ", VKF_MAX_CANDIDATES}));
  }
  return TensorDesc{"candidates", DType::kU32, {rows, p.candidates, 2}};
}

Result<TensorId> add_token_candidates(Graph& graph, TensorId logits, const SearchTensors& search,
                                      ScoresFrom from, BeamChoice choice) {
  VKF_ASSIGN(TensorDesc out, check_token_candidates(graph.tensor(logits), search.params));
  const TensorId candidates = graph.add_tensor(std::move(out));
  Node node = make_node<OpId::k_token_candidates>(CandidateAttrs{search.params, from, choice},
                                                  "K=" + std::to_string(search.params.candidates));
  node.inputs = {logits, search.suppress, search.state, search.settings,
                 choice == BeamChoice::kSampled ? search.choice : search.suppress};
  node.outputs = {candidates};
  const SearchParams& p = search.params;
  if (vocab_parts(p) > 1) {
    const Shape best = {int64_t{p.batch} * p.beams, vocab_parts(p), p.candidates, 2};
    node.outputs.push_back(graph.add_tensor({"part_best", DType::kU32, best}));
    if (from == ScoresFrom::kLogits) {
      node.outputs.push_back(add_part_sums(graph, p));
      // The kernel's buffer for the sums has the settings of a draw.
      if (choice == BeamChoice::kSampled) node.outputs.push_back(add_part_logs(graph, p));
    }
  }
  graph.add_node(std::move(node));
  return candidates;
}

namespace {

// The dispatch that finds the best of a row, of each part, or of the parts' best. It reads
// `logits`, and `extra` where the kernel needs settings of sampling, the parts' sums or what they
// have found.
Dispatch best_of(uint32_t what, bool normalize, const LowerContext& context, const Node& node,
                 std::array<TensorId, 3> logits_extra_best) {
  const auto& [p, from, choice] = attrs_of<CandidateAttrs>(node);
  const auto& [logits, extra, best] = logits_extra_best;
  Dispatch d = make_dispatch(node, context.caps.subgroup()
                                       ? KernelId::token_candidates_row__f32_u32_f32_subgroup
                                       : KernelId::token_candidates_row__f32_u32_f32);
  d.bindings = {{logits, Access::kRead},         {node.inputs[1], Access::kRead},
                {extra, Access::kRead},          {best, Access::kWrite},
                {node.inputs[2], Access::kRead}, {node.inputs[3], Access::kRead}};
  d.set_push(p);
  // The largest, the sum, the best; and again for every four that one invocation had.
  const uint64_t passes = uint64_t{p.candidates} / 4 + 3;
  const uint32_t width =
      what == VKF_BEST_OF_PARTS ? vocab_parts(p) * p.candidates : std::min(p.vocab, VKF_VOCAB_PART);
  // One with four of the best goes over its tokens again, which is rare where they are many.
  const uint32_t lanes = std::max(row_local_size(context.caps, width, passes),
                                  std::min(std::bit_ceil(p.candidates), 64u));
  d.set_constants(TokenCandidatesConstants{.local_size = lanes,
                                           .normalize = normalize,
                                           .drawn = choice == BeamChoice::kSampled,
                                           .best_of = what});
  set_part_groups(context, d, p);
  if (what != VKF_BEST_OF_PART) d.groups[1] = 1;
  const double rows = static_cast<double>(p.batch) * p.beams;
  d.flops = 16.0 * rows * width;
  d.bytes = 4.0 * rows * width;
  return d;
}

}  // namespace

Status lower_token_candidates(LowerContext& context, const Node& node) {
  const auto& [p, from, choice] = attrs_of<CandidateAttrs>(node);
  std::vector<Dispatch>& dispatches = context.plan.dispatches;
  TensorId logits = node.inputs[0];
  const TensorId settings = node.inputs[4];
  const TensorId candidates = node.outputs[0];
  if (vocab_parts(p) == 1) {
    dispatches.push_back(best_of(VKF_BEST_OF_ROW, from == ScoresFrom::kLogits, context, node,
                                 {logits, settings, candidates}));
    return {};
  }
  const TensorId part_best = node.outputs[1];
  TensorId extra = settings;
  bool normalize = from == ScoresFrom::kLogits;
  if (normalize) {
    const TensorId sums = node.outputs[2];
    lower_part_sums(context, node, p, logits, node.inputs[2], sums);
    if (choice == BeamChoice::kSampled) {
      lower_part_logs(context, node, p, logits, node.inputs[2], sums, node.outputs[3]);
      logits = node.outputs[3];
      normalize = false;
    } else {
      extra = sums;
    }
  }
  dispatches.push_back(
      best_of(VKF_BEST_OF_PART, normalize, context, node, {logits, extra, part_best}));
  dispatches.push_back(
      best_of(VKF_BEST_OF_PARTS, false, context, node, {logits, part_best, candidates}));
  return {};
}

}  // namespace vkformer
