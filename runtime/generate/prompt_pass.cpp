#include "generate/prompt_pass.h"

#include <algorithm>

#include "recording/forward_inputs.h"

namespace vkformer {

int64_t GenerationInputs::longest() const {
  size_t tokens = 1;
  for (const auto& prompt : prompts) tokens = std::max(tokens, prompt.size());
  return static_cast<int64_t>(tokens);
}

Result<std::optional<PlannedGraph>> plan_prompt(const LoadedModel& model, const StepShape& shape,
                                                const HostAccess& access) {
  Graph graph;
  ModelBuilder builder(graph, model.weights());
  VKF_CHECK(build_generation_prompt(builder, model.family(), shape));
  std::optional<PlannedGraph> planned;
  if (graph.nodes().empty()) return planned;
  RecordedGraphOptions options{.model = &model, .precision = model.precision()};
  options.host = access;
  VKF_ASSIGN(planned, plan_graph(*model.device(), builder, std::move(options)));
  return planned;
}

size_t fed_at_once(const GenerationInputs& inputs, size_t item, const StepShape& shape) {
  return std::min(inputs.prompts[item].size(), static_cast<size_t>(shape.prompt));
}

Result<FeedWords> prompt_words(const ModelFamily& family, const StepShape& shape,
                               const GenerationInputs& inputs) {
  const ModelFacts& facts = family.facts();
  const bool has_encoder = facts.kind == ModelKind::kEncoderDecoder;
  const int64_t tokens = family.prompt_tokens(shape);
  const int64_t left = shape.prompt - tokens;  // to the steps
  FeedWords words = inputs.words;
  TokenRows rows{.batch = shape.batch, .tokens = tokens};
  const auto pad = static_cast<uint32_t>(facts.target_tokens.pad);
  rows.ids.assign(static_cast<size_t>(rows.batch * tokens), pad);
  rows.allowed.assign(rows.ids.size(), 0);
  for (size_t i = 0; i < inputs.prompts.size(); ++i) {
    const auto fed = static_cast<ptrdiff_t>(fed_at_once(inputs, i, shape)) - left;
    const auto prompt = inputs.prompts[i].begin();
    std::fill_n(rows.allowed.begin() + static_cast<ptrdiff_t>(i) * tokens, fed, uint8_t{1});
    std::transform(prompt, prompt + fed, rows.ids.begin() + static_cast<ptrdiff_t>(i) * tokens,
                   [](int64_t id) { return static_cast<uint32_t>(id); });
  }
  words.merge(token_words(rows, facts.target_tokens, has_encoder ? "decoder_" : ""));
  words["token_type_ids"].assign(rows.ids.size(), 0u);
  VKF_CHECK(family.add_prompt_words(inputs.pictures,
                                    {rows.batch, rows.tokens, rows.ids, rows.allowed}, words));
  return words;
}

}  // namespace vkformer
