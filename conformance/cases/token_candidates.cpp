// The cases of token_candidates: its checks, and what the benchmark times.
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/search_cases.h"
#include "conformance/step_graph.h"
#include "reference/log_softmax.h"
#include "reference/top_k.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> candidates_case(int64_t vocab, uint32_t beams) {
  const Array logits = distinct_logits(vocab, 1);
  CheckCase made;
  made.op.graph.set_step(u32(kSearchRows));
  made.live_slots = u32(kSearchLive);
  const SearchTensors t = bind_search(made.op, beams, vocab);
  const TensorId x = made.op.bind("logits", floats(logits));
  VKF_ASSIGN(const TensorId y, add_token_candidates(made.op.graph, x, t));
  made.op.name_output(y, "candidates");
  made.op.finish = split_candidates;
  VKF_ASSIGN(const Array p, reference::log_softmax(logits));
  const int64_t k = t.params.candidates;
  VKF_ASSIGN(const reference::TopK best, reference::top_k(p, k));
  Array scores = best.values, tokens = best.indices;
  for (int64_t i = kSearchLive * k; i < scores.size(); ++i) {
    scores[i] = kUntouched;
    tokens[i] = kPoison;
  }
  made.expected.emplace("scores", Expected{std::move(scores), terms(vocab), 20});
  made.expected.emplace("tokens", Expected{std::move(tokens)});
  return made;
}

Status token_candidates_graph(StepGraph& in) {
  const SearchTensors t = search_tensors(in);
  const int64_t rows = int64_t{t.params.batch} * t.params.beams;
  const TensorId logits = in.floats("logits", {rows, t.params.vocab});
  VKF_ASSIGN(const TensorId y, add_token_candidates(in.graph(), logits, t));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void token_candidates_cases(OperatorCases& cases) {
  for (const int64_t vocab : kVocabularies) {
    const std::string at = std::to_string(vocab);
    cases.check("greedy/" + at, is_quick_vocabulary(vocab),
                [=] { return candidates_case(vocab, 1); });
    cases.check("beams/" + at, is_quick_vocabulary(vocab),
                [=] { return candidates_case(vocab, 2); });
  }
  cases.time_graph("gpt2 decode", "items=1 beams=1 capacity=1024 vocab=50257",
                   token_candidates_graph);
  cases.time_graph("marian 6 beams", "items=1 beams=6 capacity=128 vocab=59514",
                   token_candidates_graph);
  cases.limited_by("three passes over a row: the largest, the sum, the best");
}

}  // namespace vkformer::conformance
