#include "ops/token_sample.h"

#include "base/message.h"
#include "ops/row_kernel.h"

namespace vkformer {
namespace {

// Passes of the kernel over a row at most, each an invocation's share of the tokens, and a few more
// for what it looks for digit by digit.
constexpr uint64_t kPasses = 32;

struct SampleAttrs {
  SampleParams params;
  SampleOutput output;
};

}  // namespace

Result<TensorDesc> check_token_sample(const TensorDesc& scores, const TensorDesc& logits,
                                      const SearchParams& p) {
  const Shape rows = {int64_t{p.batch} * p.beams, p.vocab};
  if (scores.dtype != DType::kF32 || scores.shape != rows || logits.dtype != DType::kF32 ||
      logits.shape != rows || p.vocab < 1) {
    return op_error(OpId::k_token_sample,
                    message({"scores are ", shape_text(scores.shape), " and logits ",
                             shape_text(logits.shape), ", but both must be F32 (R, V) = ",
                             shape_text(rows), " with at least one token"}));
  }
  return TensorDesc{"candidates", DType::kU32, {rows[0], 1, 2}};
}

Result<TensorId> add_token_sample(Graph& graph, TensorId scores, TensorId logits,
                                  const SearchTensors& search, SampleOutput output) {
  VKF_ASSIGN(TensorDesc out,
             check_token_sample(graph.tensor(scores), graph.tensor(logits), search.params));
  const bool all = output == SampleOutput::kScores;
  const TensorId candidates = graph.add_tensor(
      all ? TensorDesc{"left", DType::kF32, graph.tensor(scores).shape} : std::move(out));
  Node node = make_node(OpId::k_token_sample,
                        SampleAttrs{{.search = search.params, .normalise = 0}, output},
                        all ? "scores" : "");
  node.inputs = {scores, logits, search.choice, search.state, search.settings};
  node.outputs = {candidates};
  graph.add_node(std::move(node));
  return candidates;
}

Status lower_token_sample(LowerContext& context, const Node& node) {
  const auto& [p, output] = attrs_of<SampleAttrs>(node);
  if (too_many_passes(context.caps, p.search.vocab, kPasses)) {
    return unsupported(
        message({"[token_sample] There is no kernel that draws from ", p.search.vocab,
                 " tokens on a software device; use greedy or beam search"}));
  }
  Dispatch d = make_dispatch(node, KernelId::token_sample_row__f32_u32_f32);
  d.bindings = {{node.inputs[0], Access::kRead}, {node.inputs[1], Access::kRead},
                {node.inputs[2], Access::kRead}, {node.outputs[0], Access::kWrite},
                {node.inputs[3], Access::kRead}, {node.inputs[4], Access::kRead}};
  d.set_push(p);
  d.set_constants(
      TokenSampleConstants{.local_size = row_local_size(context.caps, p.search.vocab, kPasses),
                           .all = output == SampleOutput::kScores});
  const uint64_t rows = uint64_t{p.search.batch} * p.search.beams;
  set_row_groups(context, d, rows, 1);
  d.flops = 64.0 * static_cast<double>(rows) * p.search.vocab;
  d.bytes = 8.0 * static_cast<double>(rows) * p.search.vocab;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
