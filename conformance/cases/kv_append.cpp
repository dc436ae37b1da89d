// The cases of kv_append: its checks, and what the benchmark times.
#include <algorithm>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/matrix_rounding.h"
#include "conformance/packed_cache.h"
#include "conformance/step_cases.h"
#include "conformance/step_graph.h"
#include "measure/benchmark_inputs.h"
#include "ops/additive_attention.h"
#include "ops/embedding.h"
#include "ops/kv_append.h"
#include "params/decode_state.h"

namespace vkformer::conformance {
namespace {

struct KeyValue {
  int64_t lines, k, v;
  uint32_t position, sinks;
};

// Whole numbers up to 127, which are met in every run of 32: any format keeps all of them exactly.
Array exact_lines(const Shape& shape, uint64_t seed) {
  Array array = random_ids(shape, seed, 255);
  for (int64_t i = 0; i < array.size(); ++i) {
    array[i] = i % shape.back() % 32 == 0 ? -127 : array[i] - 127;
  }
  return array;
}

// Which line of a cache a position has.
int64_t line_of(const KeyValue& c, int64_t position) {
  return position < c.lines ? position : c.sinks + (position - c.sinks) % (c.lines - c.sinks);
}

Result<CheckCase> append_case(const KeyValue& c) {
  const Array x = random_array({kSlots, c.k + c.v + 9}, 1, Content::kSpecial);
  Array cache = random_array({kSlots, c.lines, c.k + c.v}, 2);
  CheckCase made = step_case();
  const TensorId from = made.op.bind("x", floats(x));
  const TensorId state = made.op.bind("state", state_of(c.position));
  const TensorId to = made.op.bind("cache", floats(cache));
  const KvAppendAttrs attrs{.k_offset = 2,
                            .v_offset = u32(c.k + 5),
                            .k_width = u32(c.k),
                            .v_width = u32(c.v),
                            .positions = 4096,
                            .sinks = c.sinks};
  VKF_CHECK(add_kv_append(made.op.graph, from, state, to, attrs));
  const int64_t width = c.k + c.v;
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const int64_t at = (kLiveRows[slot] * c.lines + line_of(c, c.position)) * width;
    for (int64_t i = 0; i < width; ++i) {
      const int64_t column = i < c.k ? 2 + i : 5 + i;
      cache[at + i] = x[static_cast<int64_t>(slot) * x.dim(1) + column];
    }
  }
  made.expected.emplace("cache", Expected{std::move(cache)});
  return made;
}

// Keys and values that are next to each other in a row of x, put into a cache (R, lines, width) of
// that format. x is (R, T, width), or (R, width) with `tokens` 0.
Result<CheckCase> append_lines(const KeyValue& c, CacheFormat format, int64_t tokens,
                               const Array& x, Array cache) {
  const int64_t width = c.k + c.v;
  CheckCase made = tokens > 0 ? CheckCase{} : step_case();
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[0] = list[1] = u32(kSlots);
  list[2] = u32(tokens);
  for (uint32_t row = 0; row < kSlots; ++row) list[VKF_STATE_WORDS + row] = row;
  const TensorId from = made.op.bind("x", floats(x));
  const TensorId state = made.op.bind("state", tokens > 0 ? words(list) : state_of(c.position));
  const TensorId to = made.op.bind("cache", stored(cache, format));
  const KvAppendAttrs attrs{.k_offset = 0,
                            .v_offset = u32(c.k),
                            .k_width = u32(c.k),
                            .v_width = u32(c.v),
                            .positions = 4096,
                            .sinks = c.sinks};
  VKF_CHECK(add_kv_append(made.op.graph, from, state, to, attrs));
  const auto live = tokens > 0 ? kSlots * tokens : static_cast<int64_t>(kLiveRows.size());
  for (int64_t i = 0; i < live; ++i) {
    const int64_t row = tokens > 0 ? i / tokens : kLiveRows[static_cast<size_t>(i)];
    const int64_t line = line_of(c, tokens > 0 ? i % tokens : c.position);
    std::copy_n(x.data.begin() + i * width, width,
                cache.data.begin() + (row * c.lines + line) * width);
  }
  VKF_ASSIGN(Expected expected, expected_cache(cache, format));
  made.expected.emplace("cache", std::move(expected));
  return made;
}

// Packed to halves or bytes, which hold these numbers exactly.
Result<CheckCase> append_packed_case(const KeyValue& c, CacheFormat format, int64_t tokens) {
  const int64_t width = c.k + c.v;
  const Shape shape = tokens > 0 ? Shape{kSlots, tokens, width} : Shape{kSlots, width};
  return append_lines(c, format, tokens, exact_lines(shape, 1),
                      exact_lines({kSlots, c.lines, width}, 2));
}

// A prompt of `tokens` + 1 tokens, the last of which is the first step's.
Result<CheckCase> prompt_case(const KeyValue& c, int64_t tokens) {
  const int64_t width = c.k + c.v;
  return append_lines(c, CacheFormat::kF32, tokens, random_array({kSlots, tokens, width}, 1),
                      random_array({kSlots, c.lines, width}, 2));
}

Status kv_append_graph(StepGraph& in) {
  const int64_t slots = in.number("slots"), lines = in.number("lines");
  const int64_t width = in.number("width"), prompt = in.number("prompt", 0);
  const TensorId state =
      prompt > 0 ? in.state_words(slots, slots, prompt) : in.state(slots, slots, lines - 1);
  const TensorId x =
      in.floats("x", prompt > 0 ? Shape{1, prompt, 3 * width} : Shape{slots, 3 * width});
  const TensorId cache = in.floats("cache", {slots, lines, 2 * width});
  KvAppendAttrs attrs;
  attrs.k_offset = u32(width);
  attrs.v_offset = u32(2 * width);
  attrs.k_width = attrs.v_width = u32(width);
  return add_kv_append(in.graph(), x, state, cache, attrs);
}

}  // namespace

void kv_append_cases(OperatorCases& cases) {
  for (const KeyValue& c :
       {KeyValue{1, 1, 1, 0, 0}, KeyValue{9, 8, 6, 8, 0}, KeyValue{9, 33, 31, 15, 2},
        KeyValue{64, 129, 64, 63, 0}, KeyValue{7, 768, 768, 1500, 3}}) {
    const std::string at = size_text({c.lines, c.k, c.v}) + "-at-" + std::to_string(c.position);
    cases.check("slots/" + at, c.lines == 9, [=] { return append_case(c); });
    const int64_t tokens = std::min<int64_t>(c.lines, 33);
    cases.check("prompt/" + at, c.lines == 9, [=] { return prompt_case(c, tokens); });
    for (const CacheFormat format : kPackedCaches) {
      const std::string how = cache_name(format) + at;
      cases.check("slots-" + how, c.lines == 9, [=] { return append_packed_case(c, format, 0); });
      cases.check("prompt-" + how, c.lines == 9,
                  [=] { return append_packed_case(c, format, tokens); });
    }
  }
  cases.time_graph("llama-134m decode", "slots=1 lines=1024 width=768", kv_append_graph);
  cases.time_graph("llama-134m prefill 256", "prompt=256 lines=1024 width=768", kv_append_graph);
  cases.limited_by("a small copy: the dispatch itself is the cost");
}

}  // namespace vkformer::conformance
