#include "ops/token_candidates.h"

#include "base/message.h"
#include "ops/row_kernel.h"

namespace vkformer {
namespace {

struct CandidateAttrs {
  SearchParams search;
  ScoresFrom from;
  BeamChoice choice;
};

}  // namespace

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
  Node node = make_node(OpId::k_token_candidates, CandidateAttrs{search.params, from, choice},
                        "K=" + std::to_string(search.params.candidates));
  node.inputs = {logits, search.suppress, search.state, search.settings,
                 choice == BeamChoice::kDrawn ? search.choice : search.suppress};
  node.outputs = {candidates};
  graph.add_node(std::move(node));
  return candidates;
}

Status lower_token_candidates(LowerContext& context, const Node& node) {
  const auto& [p, from, choice] = attrs_of<CandidateAttrs>(node);
  // The largest, the sum, the best; and again for every four that one invocation had.
  const uint64_t passes = uint64_t{p.candidates} / 4 + 3;
  if (too_many_passes(context.caps, p.vocab, passes)) {
    return unsupported(
        message({"[token_candidates] There is no kernel for the ", p.candidates, " best of ",
                 p.vocab, " tokens on a software device; use fewer beams or end tokens"}));
  }
  Dispatch d = make_dispatch(node, context.caps.subgroup()
                                       ? KernelId::token_candidates_row__f32_u32_f32_subgroup
                                       : KernelId::token_candidates_row__f32_u32_f32);
  d.bindings = {{node.inputs[0], Access::kRead}, {node.inputs[1], Access::kRead},
                {node.inputs[4], Access::kRead}, {node.outputs[0], Access::kWrite},
                {node.inputs[2], Access::kRead}, {node.inputs[3], Access::kRead}};
  d.set_push(p);
  d.set_constants(
      TokenCandidatesConstants{.local_size = row_local_size(context.caps, p.vocab, passes),
                               .normalise = from == ScoresFrom::kLogits,
                               .drawn = choice == BeamChoice::kDrawn});
  const uint64_t rows = uint64_t{p.batch} * p.beams;
  set_row_groups(context, d, rows, 1);
  d.flops = 16.0 * static_cast<double>(rows) * p.vocab;
  d.bytes = 4.0 * static_cast<double>(rows) * p.vocab;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
