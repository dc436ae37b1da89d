// The cases of attention: its checks, and what the benchmark times.
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/attention_checks.h"
#include "conformance/attention_step_cases.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"

namespace vkformer::conformance {
namespace {

// Every line of the cache is seen.
Status attention_step_graph(StepGraph& in) {
  const int64_t slots = in.number("slots"), lines = in.number("lines");
  const int64_t heads = in.number("heads"), width = in.number("width");
  const TensorId state = in.state(slots, 1, lines - 1);
  const TensorId q = in.floats("q", {slots, heads * width});
  const TensorId kv = in.floats("kv", {slots, lines, 2 * heads * width});
  std::vector<uint32_t> ancestry(static_cast<size_t>(slots * lines));
  for (size_t i = 0; i < ancestry.size(); ++i) ancestry[i] = u32(static_cast<int64_t>(i) / lines);
  const TensorId aux = in.words("ancestry", {slots, lines}, ancestry);
  AttentionStepAttrs attrs;
  attrs.heads = attrs.kv_heads = u32(heads);
  attrs.head_width = attrs.value_width = u32(width);
  attrs.beams = u32(slots);
  AttentionStepInputs inputs;
  inputs.q = q;
  inputs.kv = kv;
  inputs.aux = aux;
  inputs.state = state;
  VKF_ASSIGN(const TensorId y, add_attention_step(in.graph(), inputs, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void attention_cases(OperatorCases& cases) {
  add_whole_attention_checks(cases);
  add_attention_step_checks(cases);
  cases.time("bert-base 1x128", {"attention", "{}"}, "Q=1,12,128,64 K=1,12,128,64 V=1,12,128,64");
  cases.time("vit-b32-384", {"attention", "{}"}, "Q=1,12,145,64 K=1,12,145,64 V=1,12,145,64");
  cases.time("gpt2 prefill 512", {"attention", R"({"causal": true})"},
             "Q=1,12,512,64 K=1,12,512,64 V=1,12,512,64");
  cases.time("1024 tokens", {"attention", "{}"}, "Q=1,12,1024,64 K=1,12,1024,64 V=1,12,1024,64");
  cases.time("whisper-tiny 30 s", {"attention", "{}"}, "Q=1,6,1500,64 K=1,6,1500,64 V=1,6,1500,64");
  cases.time_graph("llama-134m decode", "slots=1 lines=1024 heads=12 width=64",
                   attention_step_graph);
  cases.time_graph("marian 6 beams", "slots=6 lines=64 heads=8 width=64", attention_step_graph);
  cases.limited_by("an exponential for every pair, between two products");
}

}  // namespace vkformer::conformance
