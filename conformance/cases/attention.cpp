// The cases of attention: its checks, and what the benchmark times.
#include <algorithm>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/attention_checks.h"
#include "conformance/cases.h"
#include "conformance/matrix_rounding.h"
#include "conformance/packed_cache.h"
#include "conformance/step_cases.h"
#include "conformance/step_graph.h"
#include "measure/benchmark_inputs.h"
#include "ops/additive_attention.h"
#include "ops/attention_step.h"
#include "ops/embedding.h"
#include "reference/attention.h"

namespace vkformer::conformance {
namespace {

struct AttentionStep {
  int64_t lines, heads, kv_heads, width, value_width;
  uint32_t position;
  bool self;  // else over an encoder's keys
  CacheFormat cache = CacheFormat::kF32;
};

// The keys and values that a live slot sees, from a cache (lines of rows, Hkv (E + Ev)).
Result<Array> seen(const AttentionStep& c, const Array& q, const Array& kv, int64_t slot,
                   const std::vector<int64_t>& owners) {
  const auto keys = static_cast<int64_t>(owners.size());
  const int64_t line = c.kv_heads * (c.width + c.value_width);
  Array query = reference::filled({1, c.heads, 1, c.width}, 0.0);
  Array k = reference::filled({1, c.kv_heads, keys, c.width}, 0.0);
  Array v = reference::filled({1, c.kv_heads, keys, c.value_width}, 0.0);
  std::copy_n(q.data.begin() + slot * q.dim(1), query.size(), query.data.begin());
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t base = (owners[static_cast<size_t>(j)] * c.lines + j) * line;
    for (int64_t h = 0; h < c.kv_heads; ++h) {
      for (int64_t e = 0; e < c.width; ++e) {
        k[(h * keys + j) * c.width + e] = kv[base + h * c.width + e];
      }
      for (int64_t e = 0; e < c.value_width; ++e) {
        v[(h * keys + j) * c.value_width + e] =
            kv[base + c.kv_heads * c.width + h * c.value_width + e];
      }
    }
  }
  return reference::attention(query, k, v);
}

Result<CheckCase> attention_step_case(const AttentionStep& c) {
  const int64_t line = c.kv_heads * (c.width + c.value_width);
  const Array q = random_array({kSlots, c.heads * c.width}, 1);
  Array kv = random_array({kSlots, c.lines, line}, 2);
  const Tensor lines = stored(kv, c.cache);
  if (c.cache != CacheFormat::kF32) {
    VKF_ASSIGN(kv, reference::from_tensor(unpacked_cache(lines, c.cache, line)));
  }
  CheckCase made = step_case();
  AttentionStepInputs in;
  in.q = made.op.bind("q", floats(q));
  in.kv = made.op.bind("kv", lines);
  in.state = made.op.bind("state", state_of(c.position));
  AttentionStepAttrs attrs;
  attrs.source = c.self ? AttentionStepAttrs::Source::kSelf : AttentionStepAttrs::Source::kCross;
  attrs.heads = u32(c.heads);
  attrs.kv_heads = u32(c.kv_heads);
  attrs.head_width = u32(c.width);
  attrs.value_width = u32(c.value_width);
  std::vector<uint32_t> ancestry;
  if (c.self) {
    attrs.beams = u32(kSlots);
    Noise noise(3);
    for (int64_t i = 0; i < kSlots * c.lines; ++i) ancestry.push_back(u32(noise.below(kSlots)));
    Tensor aux = words(ancestry);
    aux.shape = {kSlots, c.lines};
    in.aux = made.op.bind("aux", std::move(aux));
  }
  VKF_ASSIGN(const TensorId y, add_attention_step(made.op.graph, in, attrs));
  made.op.name_output(y, "y");
  const int64_t width = c.heads * c.value_width;
  Array expected = reference::filled({kSlots, width}, kUntouched);
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const int64_t keys = c.self ? int64_t{c.position} + 1 : c.lines;
    std::vector<int64_t> owners;
    for (int64_t j = 0; j < keys; ++j) {
      const auto at = static_cast<size_t>(kLiveRows[slot] * c.lines + j);
      owners.push_back(c.self ? ancestry[at] : kLiveRows[slot]);
    }
    VKF_ASSIGN(const Array one, seen(c, q, kv, static_cast<int64_t>(slot), owners));
    std::copy(one.data.begin(), one.data.end(),
              expected.data.begin() + static_cast<int64_t>(slot) * width);
  }
  made.expected.emplace("y", Expected{std::move(expected), terms(c.lines + c.width)});
  return made;
}

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
  for (const uint32_t position : {0u, 1u, 7u, 31u, 32u, 63u, 64u, 65u, 255u, 256u, 257u, 1499u}) {
    for (const auto& [width, value_width] :
         {std::pair{int64_t{16}, int64_t{16}}, {64, 64}, {80, 24}, {256, 256}}) {
      const AttentionStep c{int64_t{position} + 2, 4, 2, width, value_width, position, true};
      const std::string at = size_text({width, value_width}) + "-at-" + std::to_string(position);
      const bool quick = (position == 7 || position == 257) && width <= 64;
      cases.check("step-self/" + at, quick, [=] { return attention_step_case(c); });
      AttentionStep cross = c;
      cross.self = false;
      cases.check("step-cross/" + at, quick, [=] { return attention_step_case(cross); });
      for (const CacheFormat format : kPackedCaches) {
        AttentionStep packed = c;
        packed.cache = format;
        cases.check(std::string("step-self-") + cache_name(format) + at, quick,
                    [=] { return attention_step_case(packed); });
      }
    }
  }
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
