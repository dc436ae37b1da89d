#include "generate/generation_step.h"

#include <algorithm>

#include "ops/beam_select.h"
#include "ops/greedy_select.h"
#include "ops/step_advance.h"
#include "ops/token_sample.h"

namespace vkformer {
namespace {

SearchTensors add_search_tensors(Graph& graph, const SearchParams& p, const GenerationKey& key) {
  const int64_t rows = int64_t{p.batch} * p.beams;
  SearchTensors t{.params = p};
  t.search = graph.add_external("search", DType::kU32, {static_cast<int64_t>(search_words(p))});
  t.state = graph.find_external("decode_state");
  t.settings = graph.add_external("settings", DType::kU32,
                                  {static_cast<int64_t>(sizeof(SearchSettings) / 4)});
  t.suppress = graph.add_external("suppress", DType::kU32, {2, (p.vocab + 31) / 32});
  t.ancestry = graph.find_external("ancestry");
  if (t.ancestry == kNoTensor)
    t.ancestry = graph.add_external("ancestry", DType::kU32, {rows, p.capacity});
  t.step_ids = graph.find_external("step_ids");
  t.args = graph.add_external("args", DType::kU32, {int64_t{kMaxStepDispatches} * 7});
  if (key.choice != GenerationKey::Choice::kPlain) {
    t.choice = graph.add_external("choice", DType::kU32,
                                  {static_cast<int64_t>(choice_words(p, key.rule_words))});
  }
  return t;
}

// What a step chooses among, by the settings of the choice buffer where there is one.
Result<TensorId> add_candidates(Graph& graph, TensorId logits, const SearchTensors& search,
                                const GenerationKey& key) {
  if (search.choice == kNoTensor) return add_token_candidates(graph, logits, search);
  if (key.single()) {
    VKF_ASSIGN(const TensorId scores, add_token_scores(graph, logits, search, ScoresFrom::kLogits));
    return add_token_sample(graph, scores, logits, search, SampleOutput::kToken, key.filters);
  }
  VKF_ASSIGN(const TensorId scores,
             add_token_scores(graph, logits, search, ScoresFrom::kLogProbabilities));
  constexpr auto kFrom = ScoresFrom::kLogProbabilities;
  if (key.choice != GenerationKey::Choice::kSampledBeams)
    return add_token_candidates(graph, scores, search, kFrom);
  VKF_ASSIGN(const TensorId left,
             add_token_sample(graph, scores, logits, search, SampleOutput::kScores, key.filters));
  return add_token_candidates(graph, left, search, kFrom, BeamChoice::kSampled);
}

// Groups of beams go on one after the other.
Status add_beams(Graph& graph, TensorId candidates, const SearchTensors& search,
                 const GenerationKey& key) {
  const bool drawn = key.choice == GenerationKey::Choice::kSampledBeams;
  for (uint32_t group = 0; group < key.groups; ++group) {
    VKF_CHECK(add_beam_select(graph, candidates, search,
                              {.picks = key.picks,
                               .groups = key.groups,
                               .group = group,
                               .choice = drawn ? BeamChoice::kSampled : BeamChoice::kBest}));
  }
  return {};
}

// A slot's settings and its history are in the row of its number, so that draft tokens of one
// sequence have rows side by side.
Result<TensorId> add_slot_choice(Graph& graph, TensorId logits, const SearchParams& p,
                                 const GenerationKey& key) {
  const auto words = [&](const char* name, uint64_t count) {
    return graph.add_external(name, DType::kU32, {static_cast<int64_t>(count)});
  };
  SearchTensors t{.params = p};
  t.state = words("choice_state", 4096);
  t.search = words("search", search_words(p));
  t.settings = words("settings", sizeof(SearchSettings) / 4);
  t.choice = words("choice", choice_words(p, key.rule_words));
  graph.set_scope("choice");
  VKF_ASSIGN(const TensorId scores, add_token_scores(graph, logits, t, ScoresFrom::kLogits));
  return add_token_sample(graph, scores, logits, t);
}

}  // namespace

SearchParams search_params(const ModelFamily& family, const GenerationKey& key) {
  const bool slots = key.choice == GenerationKey::Choice::kSlots;
  return {.batch = static_cast<uint32_t>(slots ? key.shape.slots : key.shape.batch),
          .beams = static_cast<uint32_t>(key.shape.beams),
          .capacity = static_cast<uint32_t>(key.shape.capacity),
          .vocab = static_cast<uint32_t>(family.facts().target_vocab),
          .candidates = key.candidates};
}

Status build_generation_step(ModelBuilder& builder, const ModelFamily& family,
                             const GenerationKey& key) {
  Graph& graph = builder.graph();
  const SearchParams params = search_params(family, key);
  builder.use_adapters(key.shape.batch, key.shape.beams);
  VKF_ASSIGN(const StepResult result, family.build_step(builder, key.shape));
  if (key.choice == GenerationKey::Choice::kHost) {
    builder.mark_output(result.states, "last_hidden_state");
    builder.mark_output(result.logits, "logits");
    return {};
  }
  if (key.choice == GenerationKey::Choice::kSlots) {
    VKF_ASSIGN(const TensorId chosen, add_slot_choice(graph, result.logits, params, key));
    builder.mark_output(chosen, "chosen");
    return {};
  }
  graph.set_scope("search");
  const SearchTensors search = add_search_tensors(graph, params, key);
  VKF_ASSIGN(const TensorId candidates, add_candidates(graph, result.logits, search, key));
  if (key.single()) {
    VKF_CHECK(add_greedy_select(graph, candidates, search));
  } else {
    VKF_CHECK(add_beams(graph, candidates, search, key));
  }
  return add_step_advance(graph, search);
}

Status build_generation_prompt(ModelBuilder& builder, const ModelFamily& family,
                               const StepShape& shape) {
  builder.use_adapters(shape.batch, shape.beams);
  return family.build_prompt(builder, shape);
}

Status build_generation_part(ModelBuilder& builder, const ModelFamily& family,
                             const GenerationKey& key) {
  StepShape shape = key.shape;
  shape.batch *= shape.beams;
  shape.beams = 1;
  shape.slots = key.part;
  builder.use_adapters(shape.batch, shape.beams);
  VKF_CHECK(family.build_step(builder, shape));
  Graph& graph = builder.graph();
  std::vector<Node> nodes = graph.nodes();
  const auto writes_keys = [&](const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId id) {
      return id != kNoTensor && graph.tensor(id).name.starts_with("self_kv.");
    });
  };
  while (!nodes.empty() && !writes_keys(nodes.back())) nodes.pop_back();
  graph.set_nodes(std::move(nodes));
  // The step that follows has tensors of those names, which are written while parts are under way.
  graph.tensor(graph.find_external("decode_state")).name = kPartState;
  graph.tensor(graph.find_external("step_ids")).name = kPartIds;
  return {};
}

HostAccess step_access(const GenerationKey& key) {
  switch (key.choice) {
    case GenerationKey::Choice::kSlots:
      return {.writes = {"decode_state", "step_ids", "args", "search", "choice_state", "settings",
                         "choice", "key_mask", kAdapterScales},
              .reads = {"chosen"}};
    case GenerationKey::Choice::kHost:
      return {.writes = {"decode_state", "step_ids", "ancestry", "args", kAdapterScales},
              .reads = {"logits", "last_hidden_state"}};
    default:
      return {.writes = {"decode_state", "step_ids", "search", "settings", "suppress", "ancestry",
                         "args", "choice", kAdapterScales},
              .reads = {"decode_state", "search"}};
  }
}

}  // namespace vkformer
