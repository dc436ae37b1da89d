#include "ops/token_sample.h"

#include <vector>

#include "base/message.h"
#include "ops/vocab_parts.h"

namespace vkformer {
namespace {

// Passes of a stage over a part's tokens at most, and a few more for the digits.
constexpr uint64_t kSamplePasses = 5;

struct SampleAttrs {
  SearchParams search;
  SampleOutput output;
  SampleFilters filters;
};

struct Stage {
  uint32_t stage, does;
};

std::vector<Stage> stages_of(const SampleAttrs& a) {
  std::vector<Stage> stages = {{VKF_STAGE_SUMS, VKF_SAMPLE_SUMS}};
  const auto add_digits = [&](uint32_t first) {
    for (uint32_t digit = 0; digit < 4; ++digit)
      stages.push_back({first + digit, VKF_SAMPLE_DIGIT});
  };
  if (a.filters.top_k) add_digits(VKF_STAGE_TOP_K);
  if (a.filters.top_p) {
    add_digits(VKF_STAGE_TOP_P);
    stages.push_back({VKF_STAGE_TIES, VKF_SAMPLE_COUNT});
    stages.push_back({VKF_STAGE_LAST_TIE, VKF_SAMPLE_FIND});
  }
  if (a.filters.typical) {
    stages.push_back({VKF_STAGE_LEFT, VKF_SAMPLE_WEIGHT});
    stages.push_back({VKF_STAGE_SURPRISE, VKF_SAMPLE_WEIGHT});
    add_digits(VKF_STAGE_TYPICAL);
  }
  if (a.output == SampleOutput::kScores) {
    stages.push_back({VKF_STAGE_MASS, VKF_SAMPLE_GIVE});
  } else {
    stages.push_back({VKF_STAGE_MASS, VKF_SAMPLE_COUNT});
    stages.push_back({VKF_STAGE_DRAW, VKF_SAMPLE_FIND});
  }
  return stages;
}

// Words of the buffer that the stages share.
int64_t draw_words(const SearchParams& p) {
  return int64_t{VKF_DRAW_PARTS} + int64_t{VKF_DRAW_PART_WORDS} * vocab_parts(p);
}

}  // namespace

SampleFilters SampleFilters::of(const ChoiceRow& row) {
  const bool drawn = row.temperature > 0;
  return {.top_k = drawn && row.top_k != 0,
          .top_p = drawn && row.top_p < 1,
          .typical = drawn && row.typical_p < 1};
}

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
                                  const SearchTensors& search, SampleOutput output,
                                  const SampleFilters& filters) {
  VKF_ASSIGN(TensorDesc out,
             check_token_sample(graph.tensor(scores), graph.tensor(logits), search.params));
  const bool all = output == SampleOutput::kScores;
  const TensorId candidates = graph.add_tensor(
      all ? TensorDesc{"left", DType::kF32, graph.tensor(scores).shape} : std::move(out));
  const int64_t rows = graph.tensor(scores).shape[0];
  const TensorId draws =
      graph.add_tensor({"draws", DType::kU32, {rows, draw_words(search.params)}});
  Node node = make_node<OpId::k_token_sample>(SampleAttrs{search.params, output, filters},
                                              all ? "scores" : "");
  node.inputs = {scores, logits, search.choice, search.state, search.settings};
  node.outputs = {candidates, draws};
  graph.add_node(std::move(node));
  return candidates;
}

Status lower_token_sample(LowerContext& context, const Node& node) {
  const auto& attrs = attrs_of<SampleAttrs>(node);
  const SearchParams& p = attrs.search;
  const std::vector<Stage> stages = stages_of(attrs);
  for (size_t i = 0; i < stages.size(); ++i) {
    const Stage stage = stages[i];
    const Stage before = i > 0 ? stages[i - 1] : Stage{0, VKF_SAMPLE_NONE};
    const BoundBuffer third = i == 0 ? BoundBuffer{node.inputs[2], Access::kRead}
                                     : BoundBuffer{node.outputs[0], Access::kWrite};
    Dispatch d = make_dispatch(node, i == 0 ? KernelId::token_sample_sums__f32_u32_f32
                                            : KernelId::token_sample_row__f32_u32_f32);
    d.bindings = {{node.inputs[0], Access::kRead},
                  {node.inputs[1], Access::kRead},
                  third,
                  {node.outputs[1], Access::kReadWrite},
                  {node.inputs[3], Access::kRead},
                  {node.inputs[4], Access::kRead}};
    d.set_push(
        SampleParams{.search = p,
                     .stage = stage.stage,
                     .before = before.stage,
                     .after = i + 1 < stages.size() ? stages[i + 1].stage : VKF_SAMPLE_STAGES});
    d.set_constants(
        TokenSampleConstants{.local_size = part_local_size(context.caps, p, kSamplePasses),
                             .does = stage.does,
                             .before = before.does});
    set_part_groups(context, d, p);
    const double tokens = static_cast<double>(p.batch) * p.beams * p.vocab;
    d.flops = 8.0 * tokens;
    d.bytes = 4.0 * tokens;
    context.plan.dispatches.push_back(std::move(d));
  }
  return {};
}

}  // namespace vkformer
