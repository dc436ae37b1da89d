// The cases of token_scores: its checks, and what the benchmark times.
#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/search_cases.h"
#include "conformance/step_graph.h"
#include "reference/sampling.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> scores_case(int64_t vocab, Content content) {
  const Array logits = random_array({kSearchRows, vocab}, 2, content);
  CheckCase made;
  made.op.graph.set_step(u32(kSearchRows));
  made.live_slots = u32(kSearchLive);
  SearchTensors t = bind_search(made.op, 1, vocab);
  ChoiceRow row = plain_choice();
  row.repetition = 1.5f;
  row.presence = 0.25f;
  row.frequency = 0.5f;
  row.no_repeat = 2;
  bind_choice(made.op, t, row);
  const TensorId x = made.op.bind("logits", floats(logits));
  VKF_ASSIGN(const TensorId y, add_token_scores(made.op.graph, x, t, ScoresFrom::kLogits));
  made.op.name_output(y, "scores");
  const reference::PenaltySettings settings{1.5, 0.25, 0.5, 2, {}};
  Array scores = reference::filled(logits.shape, kUntouched);
  for (int64_t slot = 0; slot < kSearchLive; ++slot) {
    const std::vector<double> own = reference::penalised_scores(
        std::span(logits.data)
            .subspan(static_cast<size_t>(slot * vocab), static_cast<size_t>(vocab)),
        kHistory, 3, settings);
    std::copy(own.begin(), own.end(), scores.data.begin() + slot * vocab);
  }
  made.expected.emplace("scores", Expected{std::move(scores), terms(2), 4});
  return made;
}

Status token_scores_graph(StepGraph& in) {
  SearchTensors t = search_tensors(in);
  t.choice = choice_words_of(in, t.params);
  const int64_t rows = int64_t{t.params.batch} * t.params.beams;
  const TensorId logits = in.floats("logits", {rows, t.params.vocab});
  VKF_ASSIGN(const TensorId y, add_token_scores(in.graph(), logits, t, ScoresFrom::kLogits));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void token_scores_cases(OperatorCases& cases) {
  for (const int64_t vocab : kVocabularies) {
    cases.check("penalties/" + std::to_string(vocab), is_quick_vocabulary(vocab),
                [=] { return scores_case(vocab, Content::kNormal); });
  }
  cases.check("wide/129", true, [] { return scores_case(129, Content::kWide); });
  cases.time_graph("gpt2 decode", "items=1 beams=1 capacity=1024 vocab=50257", token_scores_graph);
  cases.limited_by("a pass to clear marks, one to set them by history, one to use them");
}

}  // namespace vkformer::conformance
