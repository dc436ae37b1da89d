// The cases of additive_attention: its checks, and what the benchmark times.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_cases.h"
#include "ops/additive_attention.h"
#include "reference/additive_attention.h"

namespace vkformer::conformance {
namespace {

// (B, T, S, A, C)
Result<CheckCase> alignment_case(const Shape& s, bool masked) {
  const int64_t width = s[3], value_width = s[4];
  const Array q = random_array({s[0], s[1], width}, 1), k = random_array({s[0], s[2], width}, 2);
  const Array values = random_array({s[0], s[2], value_width}, 3), v = random_array({width}, 4);
  const Array mask = random_mask({s[0], s[2]}, 5);
  reference::AlignmentInputs in{q, reference::filled({s[0], s[2], width + value_width}, 0.0)};
  for (int64_t row = 0; row < s[0] * s[2]; ++row) {
    for (int64_t i = 0; i < width + value_width; ++i) {
      in.kv[row * (width + value_width) + i] =
          i < width ? k[row * width + i] : values[row * value_width + i - width];
    }
  }
  in.v = &v;
  if (masked) in.mask = &mask;
  reference::AlignmentOptions options;
  options.width = width;
  options.value_width = value_width;
  VKF_ASSIGN(const Array y, reference::additive_attention(in, options));
  Array output = reference::filled({s[0], s[1], value_width}, 0.0);
  Array weights = reference::filled({s[0], s[1], s[2]}, 0.0);
  for (int64_t row = 0; row < s[0] * s[1]; ++row) {
    for (int64_t i = 0; i < y.dim(2); ++i) {
      const double value = y[row * y.dim(2) + i];
      if (i < value_width) output[row * value_width + i] = value;
      if (i >= value_width) weights[row * s[2] + i - value_width] = value;
    }
  }
  TensorMap inputs{{"Q", floats(q)}, {"K", floats(k)}, {"V", floats(values)}, {"v", floats(v)}};
  if (masked) inputs.emplace("key_mask", mask_bytes(mask));
  const Tolerance bound = terms(std::max(s[2], 64 * width));
  return call_case(
      {"additive_attention", "{}", std::move(inputs)},
      {{"output", {std::move(output), bound}}, {"weights", {std::move(weights), bound}}});
}

// The alignment of one query of every live slot with the tokens of its item.
Result<CheckCase> alignment_step_case(int64_t tokens, int64_t width, int64_t value_width) {
  const int64_t line = width + value_width;
  const Array q = random_array({kSlots, width}, 1), kv = random_array({kSlots, tokens, line}, 2);
  const Array v = random_array({width}, 3);
  const Tensor stored = floats(v);
  std::vector<uint32_t> aux(static_cast<size_t>(width));
  std::memcpy(aux.data(), stored.bytes.data(), stored.bytes.size());
  CheckCase made = step_case();
  AdditiveAttentionInputs in;
  in.q = made.op.bind("q", floats(q));
  in.kv = made.op.bind("kv", floats(kv));
  in.aux = made.op.bind("aux", words(aux));
  in.state = made.op.bind("state", state_of(9));
  AdditiveAttentionAttrs attrs;
  attrs.width = u32(width);
  attrs.value_width = u32(value_width);
  VKF_ASSIGN(const TensorId y, add_additive_attention(made.op.graph, in, attrs));
  made.op.name_output(y, "y");
  Array expected = reference::filled({kSlots, value_width + tokens}, kUntouched);
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const auto at = static_cast<int64_t>(slot) * width;
    const auto item = int64_t{kLiveRows[slot]} * tokens * line;
    const reference::AlignmentInputs one{
        Array{{1, 1, width}, {q.data.begin() + at, q.data.begin() + at + width}},
        Array{{1, tokens, line}, {kv.data.begin() + item, kv.data.begin() + item + tokens * line}},
        nullptr, &v};
    reference::AlignmentOptions options;
    options.width = width;
    options.value_width = value_width;
    VKF_ASSIGN(const Array row, reference::additive_attention(one, options));
    std::copy(row.data.begin(), row.data.end(),
              expected.data.begin() + static_cast<int64_t>(slot) * (value_width + tokens));
  }
  made.expected.emplace("y", Expected{std::move(expected), terms(std::max(tokens, 64 * width))});
  return made;
}

}  // namespace

void additive_attention_cases(OperatorCases& cases) {
  for (const Shape& s : {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 9, 33, 17}, Shape{3, 9, 33, 64, 129},
                         Shape{1, 2, 257, 31, 40}}) {
    for (const bool masked : {false, true}) {
      cases.check((masked ? "masked/" : "plain/") + size_text(s), s[2] == 9,
                  [=] { return alignment_case(s, masked); });
    }
  }
  for (const Shape& s : {Shape{1, 1, 1}, Shape{9, 33, 17}, Shape{65, 64, 129}}) {
    cases.check("step/" + size_text(s), s[0] == 9,
                [=] { return alignment_step_case(s[0], s[1], s[2]); });
  }
  cases.time("rnnsearch 8x30", {"additive_attention", "{}"},
             "Q=8,30,1000 K=8,50,1000 V=8,50,2000 v=1000");
  cases.limited_by("a tanh for every query, key and column");
}

}  // namespace vkformer::conformance
