// The cases of token_sample: its checks, and what the benchmark times.
#include "ops/token_sample.h"
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/search_cases.h"
#include "conformance/step_graph.h"
#include "reference/top_k.h"

namespace vkformer::conformance {
namespace {

// A temperature of 0, or one token that is kept: the draw has one outcome.
Result<CheckCase> sample_case(int64_t vocab, bool cold) {
  const Array logits = distinct_logits(vocab, 3);
  CheckCase made;
  made.op.graph.set_step(u32(kSearchRows));
  made.live_slots = u32(kSearchLive);
  SearchTensors t = bind_search(made.op, 1, vocab);
  ChoiceRow row = plain_choice();
  row.temperature = cold ? 0.0f : 1.0f;
  row.top_k = cold ? 0 : 1;
  row.seed_low = 5;
  bind_choice(made.op, t, row);
  const TensorId x = made.op.bind("logits", floats(logits));
  const TensorId s = made.op.bind("given_scores", floats(logits));
  VKF_ASSIGN(const TensorId y, add_token_sample(made.op.graph, s, x, t));
  made.op.name_output(y, "candidates");
  made.op.finish = split_candidates;
  VKF_ASSIGN(const reference::TopK best, reference::top_k(logits, 1));
  Array tokens = best.indices;
  for (int64_t i = kSearchLive; i < kSearchRows; ++i) tokens[i] = kPoison;
  made.expected.emplace("tokens", Expected{std::move(tokens)});
  return made;
}

Status token_sample_graph(StepGraph& in) {
  SearchTensors t = search_tensors(in);
  t.choice = choice_words_of(in, t.params);
  const int64_t rows = int64_t{t.params.batch} * t.params.beams;
  const TensorId logits = in.floats("logits", {rows, t.params.vocab});
  const TensorId scores = in.floats("scores", {rows, t.params.vocab});
  VKF_ASSIGN(const TensorId y, add_token_sample(in.graph(), scores, logits, t));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void token_sample_cases(OperatorCases& cases) {
  for (const int64_t vocab : kVocabularies) {
    const std::string at = std::to_string(vocab);
    cases.check("cold/" + at, is_quick_vocabulary(vocab), [=] { return sample_case(vocab, true); });
    cases.check("top-1/" + at, is_quick_vocabulary(vocab),
                [=] { return sample_case(vocab, false); });
  }
  cases.time_graph("gpt2 decode", "items=1 beams=1 capacity=1024 vocab=50257", token_sample_graph);
  cases.limited_by("a dozen passes over the row, which find thresholds digit by digit");
}

}  // namespace vkformer::conformance
