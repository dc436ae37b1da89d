// The cases of chunk_attention: its checks, and what the benchmark times.
#include <algorithm>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/head_cases.h"
#include "conformance/step_graph.h"
#include "measure/benchmark_inputs.h"
#include "ops/attention.h"
#include "ops/chunk_attention.h"
#include "ops/linear_attention.h"
#include "reference/chunk_attention.h"

namespace vkformer::conformance {
namespace {

// Tokens in the order of a permutation; keys are the queries.
Result<CheckCase> chunk_case(const HeadSizes& s, int64_t rounds, int64_t chunk, bool causal) {
  const int64_t heads = s.q[1], tokens = s.q[2], width = s.q[3];
  const Array q = random_array({1, heads, tokens, width}, 1);
  const Array v = random_array({1, heads, tokens, s.value_width}, 2);
  Array order = reference::filled({1, heads, rounds, tokens}, 0.0);
  for (int64_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<double>((i % tokens * 7 + i / tokens) % tokens);
  }
  reference::ChunkAttentionOptions options;
  options.chunk = chunk;
  options.before = 1;
  options.causal = causal;
  options.shared = true;
  options.order = &order;
  VKF_ASSIGN(Array y, reference::chunk_attention(q, q, v, options));
  ChunkAttentionAttrs attrs;
  attrs.heads = u32(heads);
  attrs.tokens = u32(tokens);
  attrs.head_width = u32(width);
  attrs.value_width = u32(s.value_width);
  attrs.rounds = u32(rounds);
  attrs.chunk = u32(chunk);
  attrs.before = 1;
  attrs.causal = causal ? ChunkAttentionAttrs::Causal::kYes : ChunkAttentionAttrs::Causal::kNo;
  attrs.keys = ChunkAttentionAttrs::Keys::kQueries;
  attrs.q = attrs.k = separate_heads(attrs.heads, attrs.tokens, attrs.head_width, 0);
  attrs.v = separate_heads(attrs.heads, attrs.tokens, attrs.value_width, u32(q.size()));
  CheckCase made;
  Array both{{q.size() + v.size()}, q.data};
  both.data.insert(both.data.end(), v.data.begin(), v.data.end());
  const TensorId x = made.op.bind("x", floats(both));
  Tensor list = Tensor::zeros(DType::kU32, order.shape);
  auto* at = reinterpret_cast<uint32_t*>(list.bytes.data());
  for (const double value : order.data) *at++ = static_cast<uint32_t>(value);
  const TensorId by = made.op.bind("order", std::move(list));
  VKF_ASSIGN(const TensorId id, add_chunk_attention(made.op.graph, {.x = x, .order = by}, attrs));
  made.op.name_output(id, "y");
  y.shape = made.op.graph.tensor(id).shape;
  made.expected.emplace("y", Expected{std::move(y), terms(std::max(2 * chunk, 65 + width)), 4});
  return made;
}

// Rows in the order of their hashes, one round after the other, keys that are the queries.
Status chunk_attention_graph(StepGraph& in) {
  const int64_t heads = in.number("heads"), tokens = in.number("tokens");
  const int64_t width = in.number("width"), rounds = in.number("rounds");
  ChunkAttentionAttrs attrs;
  attrs.heads = u32(heads);
  attrs.tokens = u32(tokens);
  attrs.head_width = attrs.value_width = u32(width);
  attrs.rounds = u32(rounds);
  attrs.chunk = u32(in.number("chunk"));
  attrs.before = 1;
  attrs.keys = ChunkAttentionAttrs::Keys::kQueries;
  attrs.q = attrs.k = separate_heads(attrs.heads, attrs.tokens, attrs.head_width, 0);
  attrs.v =
      separate_heads(attrs.heads, attrs.tokens, attrs.value_width, u32(heads * tokens * width));
  const TensorId x = in.floats("x", {2, heads, tokens, width});
  std::vector<uint32_t> order(static_cast<size_t>(heads * rounds * tokens));
  // An odd factor permutes the positions: of tokens it is a power of two, as here.
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = u32(static_cast<int64_t>(i) * 1021 % tokens);
  }
  const TensorId by = in.words("order", {1, heads, rounds, tokens}, order);
  VKF_ASSIGN(const TensorId y, add_chunk_attention(in.graph(), {.x = x, .order = by}, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void chunk_attention_cases(OperatorCases& cases) {
  for (const auto& [s, chunk] :
       {std::pair{HeadSizes{{1, 1, 4, 4}, 4}, 2}, std::pair{HeadSizes{{1, 2, 33, 16}, 16}, 11},
        std::pair{HeadSizes{{1, 2, 256, 64}, 40}, 64}}) {
    for (const bool causal : {false, true}) {
      cases.check((causal ? "causal/" : "plain/") + size_text(s.q) + "-" + std::to_string(chunk),
                  chunk == 11, [s = s, c = chunk, causal] { return chunk_case(s, 2, c, causal); });
    }
  }
  cases.time_graph("reformer 4096", "heads=2 tokens=4096 width=64 rounds=2 chunk=64",
                   chunk_attention_graph);
  cases.limited_by("an exponential for every pair; every query loads its keys for itself");
}

}  // namespace vkformer::conformance
