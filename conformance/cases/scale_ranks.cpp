// The cases of scale_ranks: its checks, and what the benchmark times.
#include "ops/scale_ranks.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/step_cases.h"
#include "conformance/step_graph.h"
#include "reference/scale_ranks.h"

namespace vkformer::conformance {
namespace {

constexpr int64_t kAdapters = 3;

// Scales of sequences, each with a 0, through which no infinity or NaN may come.
Array scales_of(int64_t sequences) {
  Array scales = random_array({sequences, kAdapters}, 2);
  for (int64_t i = 0; i < sequences; ++i) scales[i * kAdapters + i % kAdapters] = 0;
  return scales;
}

Array ranks_of(int64_t width) {
  return random_ids({1, width}, 3, kAdapters);
}

// Rows of a prompt: (items, tokens, J).
struct PromptRows {
  int64_t items, tokens, beams, width;
};

Result<CheckCase> prompt_case(const PromptRows& c, Content content) {
  const int64_t rows = c.items * c.tokens;
  const Array x = random_array({rows, c.width}, 1, content);
  const Array scales = scales_of(c.items * c.beams), ranks = ranks_of(c.width);
  std::vector<int64_t> sequences;
  for (int64_t row = 0; row < rows; ++row) sequences.push_back(row / c.tokens * c.beams);
  Array flat = ranks;
  flat.shape = {c.width};
  VKF_ASSIGN(Array y, reference::scale_ranks(x, scales, flat, sequences));
  y.shape = {c.items, c.tokens, c.width};
  Array given = x;
  given.shape = y.shape;
  CheckCase made;
  VKF_ASSIGN(const TensorId out, add_scale_ranks(made.op.graph,
                                                 {.x = made.op.bind("x", floats(given)),
                                                  .scales = made.op.bind("scales", floats(scales)),
                                                  .ranks = made.op.bind("ranks", floats(ranks))},
                                                 {.items = u32(c.items), .beams = u32(c.beams)}));
  made.op.name_output(out, "y");
  made.expected.emplace("y", Expected{std::move(y), terms(1), magnitude_of(x)});
  return made;
}

Result<CheckCase> slots_case(int64_t width, Content content) {
  CheckCase made = step_case();
  const Array x = random_array({kSlots, width}, 1, content);
  const Array scales = scales_of(6), ranks = ranks_of(width);
  std::vector<int64_t> sequences(kLiveRows.begin(), kLiveRows.end());
  const auto live = static_cast<int64_t>(sequences.size());
  sequences.resize(static_cast<size_t>(kSlots));
  Array flat = ranks;
  flat.shape = {width};
  VKF_ASSIGN(Array y, reference::scale_ranks(x, scales, flat, sequences));
  for (int64_t i = live * width; i < y.size(); ++i) y[i] = kUntouched;
  VKF_ASSIGN(const TensorId out, add_scale_ranks(made.op.graph,
                                                 {.x = made.op.bind("x", floats(x)),
                                                  .scales = made.op.bind("scales", floats(scales)),
                                                  .ranks = made.op.bind("ranks", floats(ranks)),
                                                  .state = made.op.bind("state", state_of(9))},
                                                 {.beams = 1}));
  made.op.name_output(out, "y");
  made.expected.emplace("y", Expected{std::move(y), terms(1), magnitude_of(x)});
  return made;
}

Status scale_graph(StepGraph& in) {
  const int64_t slots = in.number("slots"), width = in.number("ranks");
  const TensorId state = in.state(slots, slots, 100);
  const TensorId ranks =
      in.words("ranks", {1, width}, std::vector<uint32_t>(static_cast<size_t>(width), 0u));
  in.graph().tensor(ranks).dtype = DType::kF32;
  VKF_ASSIGN(const TensorId y, add_scale_ranks(in.graph(),
                                               {.x = in.floats("x", {slots, width}),
                                                .scales = in.floats("scales", {slots, 4}),
                                                .ranks = ranks,
                                                .state = state},
                                               {}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void scale_ranks_cases(OperatorCases& cases) {
  for (const int64_t width : {1, 31, 64, 65, 257}) {
    const std::string name = std::to_string(width);
    cases.check("prompt/" + name, width == 31, [=] {
      return prompt_case({3, 5, 2, width}, Content::kNormal);
    });
    cases.check("slots/" + name, width == 65, [=] { return slots_case(width, Content::kNormal); });
  }
  cases.check("prompt/long", false, [] {
    return prompt_case({2, 513, 1, 5000}, Content::kNormal);
  });
  for (const Content content : kOtherContents) {
    cases.check(std::string(content_name(content)) + "/prompt", true, [=] {
      return prompt_case({3, 5, 1, 33}, content);
    });
    cases.check(std::string(content_name(content)) + "/slots", true,
                [=] { return slots_case(33, content); });
  }
  cases.time_graph("four adapters of rank 16, decode 16", "slots=16 ranks=64", scale_graph);
  cases.limited_by("single elements, which drivers on a CPU load lane by lane");
}

}  // namespace vkformer::conformance
