#include "ops/token_scores.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/message.h"
#include "ops/row_kernel.h"
#include "ops/vocab_parts.h"

namespace vkformer {
namespace {

// Passes over the tokens, of which one looks every token up among the rules, in some 20 rounds.
constexpr uint64_t kScorePasses = 24;

uint64_t bit_words(const SearchParams& p) {
  return (uint64_t{p.vocab} + 31) / 32;
}

uint64_t rows_of(const SearchParams& p) {
  return uint64_t{p.batch} * p.beams;
}

}  // namespace

uint64_t choice_suppress_at(const SearchParams& p) {
  return rows_of(p) * VKF_CHOICE_WORDS;
}

uint64_t choice_allowed_at(const SearchParams& p, uint64_t row) {
  return choice_suppress_at(p) + (2 + row) * bit_words(p);
}

uint64_t choice_rules_at(const SearchParams& p) {
  return choice_allowed_at(p, rows_of(p));
}

uint64_t choice_words(const SearchParams& p, uint64_t rule_words) {
  return choice_rules_at(p) + rule_words;
}

std::vector<uint32_t> rule_list(std::span<const TokenRule> rules) {
  std::map<int64_t, std::vector<const TokenRule*>> targets;
  for (const TokenRule& rule : rules) targets[rule.tokens.back()].push_back(&rule);
  std::vector<uint32_t> words = {static_cast<uint32_t>(targets.size())};
  uint64_t at = 1 + 3 * targets.size();
  for (const auto& [token, list] : targets) {
    words.insert(words.end(), {static_cast<uint32_t>(token), static_cast<uint32_t>(at),
                               static_cast<uint32_t>(list.size())});
    for (const TokenRule* rule : list) at += 1 + rule->tokens.size();
  }
  for (const auto& [token, list] : targets) {
    for (const TokenRule* rule : list) {
      words.push_back(std::bit_cast<uint32_t>(rule->bias));
      words.push_back(static_cast<uint32_t>(rule->tokens.size() - 1));
      std::transform(rule->tokens.begin(), rule->tokens.end() - 1, std::back_inserter(words),
                     [](int64_t id) { return static_cast<uint32_t>(id); });
    }
  }
  return words;
}

Result<TensorDesc> check_token_scores(const TensorDesc& logits, const SearchParams& p) {
  const Shape rows = {static_cast<int64_t>(rows_of(p)), p.vocab};
  if (logits.dtype != DType::kF32 || logits.shape != rows || p.vocab < 1) {
    return op_error(OpId::k_token_scores, message({"logits are ", shape_text(logits.shape),
                                                   ", but must be F32 (R, V) = ", shape_text(rows),
                                                   " with at least one token"}));
  }
  return TensorDesc{"scores", DType::kF32, rows};
}

Result<TensorId> add_token_scores(Graph& graph, TensorId logits, const SearchTensors& search,
                                  ScoresFrom from) {
  VKF_ASSIGN(TensorDesc out, check_token_scores(graph.tensor(logits), search.params));
  const TensorId scores = graph.add_tensor(std::move(out));
  const bool normalize = from == ScoresFrom::kLogProbabilities;
  Node node = make_node<OpId::k_token_scores>(
      ScoresParams{.search = search.params, .normalize = normalize ? 1u : 0u},
      normalize ? "log-softmax" : "");
  node.inputs = {logits, search.search, search.choice, search.state, search.settings};
  node.outputs = {scores};
  if (normalize && vocab_parts(search.params) > 1) {
    node.outputs.push_back(add_part_sums(graph, search.params));
    node.outputs.push_back(add_part_logs(graph, search.params));
  }
  graph.add_node(std::move(node));
  return scores;
}

Status lower_token_scores(LowerContext& context, const Node& node) {
  ScoresParams p = attrs_of<ScoresParams>(node);
  // The work of the history, as a number of tokens more.
  const uint64_t history = uint64_t{p.search.capacity} * (VKF_MAX_NO_REPEAT + 1) / kScorePasses;
  const auto tokens = static_cast<uint32_t>(
      std::min<uint64_t>(std::min(p.search.vocab, VKF_VOCAB_PART) + history, UINT32_MAX));
  if (too_many_passes(context.caps, tokens, kScorePasses)) {
    return unsupported(
        message({"[token_scores] There is no kernel for penalties over ", p.search.capacity,
                 " positions on a software device; use shorter texts"}));
  }
  TensorId logits = node.inputs[0];
  if (node.outputs.size() > 1) {
    const TensorId sums = node.outputs[1];
    const TensorId logs = node.outputs[2];
    lower_part_sums(context, node, p.search, logits, node.inputs[3], sums);
    lower_part_logs(context, node, p.search, logits, node.inputs[3], sums, logs);
    logits = logs;
    p.normalize = 0;
  }
  Dispatch d = make_dispatch(node, KernelId::token_scores_row__f32_u32_f32);
  d.bindings = {{logits, Access::kRead},         {node.inputs[1], Access::kRead},
                {node.inputs[2], Access::kRead}, {node.outputs[0], Access::kReadWrite},
                {node.inputs[3], Access::kRead}, {node.inputs[4], Access::kRead}};
  d.set_push(p);
  d.set_constants(WorkgroupConstants{row_local_size(context.caps, tokens, kScorePasses)});
  set_part_groups(context, d, p.search);
  const double rows = static_cast<double>(rows_of(p.search));
  d.flops = 8.0 * rows * p.search.vocab;
  d.bytes = 12.0 * rows * p.search.vocab;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
