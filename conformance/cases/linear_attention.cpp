// The cases of linear_attention: its checks, and what the benchmark times.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/head_cases.h"
#include "ops/attention.h"
#include "ops/chunk_attention.h"
#include "ops/linear_attention.h"
#include "params/decode_state.h"
#include "reference/linear_attention.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> linear_case(const HeadSizes& s, bool favor, bool causal) {
  const HeadArrays h = make_head_arrays(s, 0.7);
  const Array omega = random_array({21, s.q[3]}, 4);
  const Array key_mask = random_mask({s.q[0], s.q[2]}, 5, 0.8);
  reference::LinearAttentionOptions options;
  options.causal = causal;
  options.epsilon = favor ? 0 : reference::round_to_f32({{}, {1e-6}})[0];
  options.kernel_eps = favor ? reference::round_to_f32({{}, {1e-4}})[0] : 0;
  TensorMap inputs = h.inputs();
  if (favor) {
    options.omega = &omega;
    inputs.emplace("omega", floats(omega));
  }
  if (!causal) {
    options.key_mask = &key_mask;
    inputs.emplace("key_mask", mask_bytes(key_mask));
  }
  VKF_ASSIGN(reference::LinearAttentionOutputs y,
             reference::linear_attention(h.q, h.k, h.v, options));
  const int64_t features = favor ? 21 : s.q[3];
  return call_case({favor ? "performer_attention" : "linear_attention",
                    causal ? R"({"causal": true})" : "{}", std::move(inputs)},
                   {{"output", {std::move(y.output), terms(s.q[2] * features), 4}}});
}

// The weights of all heads, as the maps of a model ask for them.
Result<CheckCase> linear_weights_case(const HeadSizes& s, bool causal) {
  const HeadArrays h = make_head_arrays(s, 0.7);
  reference::LinearAttentionOptions options;
  options.causal = causal;
  VKF_ASSIGN(reference::LinearAttentionOutputs expected,
             reference::linear_attention(h.q, h.k, h.v, options));
  Array x = reference::filled({h.q.size() + h.k.size() + h.v.size()}, 0.0);
  auto to = x.data.begin();
  for (const Array* part : {&h.q, &h.k, &h.v})
    to = std::copy_n(part->data.begin(), part->size(), to);
  const int64_t heads = s.q[1], tokens = s.q[2];
  const auto layout = [&](int64_t width, int64_t offset) {
    return separate_heads(u32(heads), u32(tokens), u32(width), u32(offset));
  };
  LinearAttentionAttrs attrs;
  attrs.causal = causal ? LinearAttentionAttrs::Causal::kYes : LinearAttentionAttrs::Causal::kNo;
  attrs.maps = LinearAttentionAttrs::Maps::kChosen;
  attrs.batch = u32(s.q[0]);
  attrs.heads = u32(heads);
  attrs.queries = attrs.keys = u32(tokens);
  attrs.head_width = u32(s.q[3]);
  attrs.value_width = u32(s.value_width);
  attrs.q = layout(s.q[3], 0);
  attrs.k = layout(s.q[3], h.q.size());
  attrs.v = layout(s.value_width, h.q.size() + h.k.size());
  attrs.y = layout(s.value_width, 0);
  attrs.y_shape = h.v.shape;
  CheckCase made;
  LinearAttentionInputs in;
  in.x = made.op.bind("x", floats(x));
  VKF_ASSIGN(const LinearAttentionOutputs out, add_linear_attention(made.op.graph, in, attrs));
  made.op.name_output(out.y, "y");
  made.op.name_output(out.weights, "weights");
  const Tolerance bound = terms(tokens * s.q[3]);
  made.expected.emplace("y", Expected{std::move(expected.output), bound, 4});
  made.expected.emplace("weights", Expected{std::move(expected.weights), bound, 4});
  return made;
}

// Two steps of three live slots: the first from nothing, the second after the token of its parent.
constexpr int64_t kStepSlots = 4;

const std::vector<uint32_t> kStepRows = {3, 0, 2}, kParents = {2, 0, 0, 3};  // parents by row

Tensor step_state(uint32_t position) {
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[0] = list[1] = u32(static_cast<int64_t>(kStepRows.size()));
  list[2] = position;
  std::copy(kStepRows.begin(), kStepRows.end(), list.begin() + VKF_STATE_WORDS);
  return words(list);
}

// What the second step gives slot `slot`: its query over the parent's token and its own.
Result<Array> second_step(const HeadSizes& s, const Array& first, const Array& second,
                          size_t slot) {
  const int64_t heads = s.q[1], e = s.q[3], ev = s.value_width, line = heads * (2 * e + ev);
  const auto found = std::find(kStepRows.begin(), kStepRows.end(), kParents[kStepRows[slot]]);
  const Array* from[] = {&first, &second};
  const int64_t slots[] = {found - kStepRows.begin(), static_cast<int64_t>(slot)};
  Array q = reference::filled({1, heads, 1, e}, 0.0), k = reference::filled({1, heads, 2, e}, 0.0);
  Array v = reference::filled({1, heads, 2, ev}, 0.0);
  for (int64_t h = 0; h < heads; ++h) {
    std::copy_n(second.data.begin() + slots[1] * line + h * e, e, q.data.begin() + h * e);
    for (int64_t j = 0; j < 2; ++j) {
      const auto row = from[j]->data.begin() + slots[j] * line + heads * e;
      std::copy_n(row + h * e, e, k.data.begin() + (2 * h + j) * e);
      std::copy_n(row + heads * e + h * ev, ev, v.data.begin() + (2 * h + j) * ev);
    }
  }
  reference::LinearAttentionOptions options;
  options.epsilon = reference::round_to_f32({{}, {1e-6}})[0];
  VKF_ASSIGN(reference::LinearAttentionOutputs out, reference::linear_attention(q, k, v, options));
  return std::move(out.output);
}

Result<CheckCase> linear_step_case(const HeadSizes& s) {
  const int64_t heads = s.q[1], e = s.q[3], ev = s.value_width, line = heads * (2 * e + ev);
  const Array x[] = {scaled(random_array({kStepSlots, line}, 1), 0.7),
                     scaled(random_array({kStepSlots, line}, 2), 0.7)};
  CheckCase made;
  made.op.graph.set_step(u32(kStepSlots));
  made.live_slots = u32(static_cast<int64_t>(kStepRows.size()));
  LinearStepAttrs attrs;
  attrs.features.epsilon = 1e-6f;
  attrs.heads = u32(heads);
  attrs.head_width = u32(e);
  attrs.value_width = u32(ev);
  attrs.k_offset = u32(heads * e);
  attrs.v_offset = u32(2 * heads * e);
  attrs.beams = u32(kStepSlots);
  attrs.capacity = 2;
  std::vector<uint32_t> parents(kStepSlots * 2, 0u);
  for (size_t row = 0; row < kStepSlots; ++row) parents[2 * row] = kParents[row];
  Tensor ancestry = words(parents);
  ancestry.shape = {kStepSlots, 2};
  LinearStepInputs in;
  in.ancestry = made.op.bind("ancestry", std::move(ancestry));
  const int64_t width = linear_state_width(attrs.features, 0, e, ev);
  in.states = made.op.graph.add_external("states", DType::kF32, {kStepSlots, 2, heads * width});
  for (uint32_t step = 0; step < 2; ++step) {
    in.x = made.op.bind("x" + std::to_string(step), floats(x[step]));
    in.state = made.op.bind("state" + std::to_string(step), step_state(step));
    VKF_ASSIGN(const TensorId y, add_linear_attention_step(made.op.graph, in, attrs));
    made.op.name_output(y, "y" + std::to_string(step));
  }
  Array expected =
      reference::filled({kStepSlots, heads * ev}, std::numeric_limits<double>::quiet_NaN());
  for (size_t slot = 0; slot < kStepRows.size(); ++slot) {
    VKF_ASSIGN(const Array one, second_step(s, x[0], x[1], slot));
    std::copy_n(one.data.begin(), one.size(),
                expected.data.begin() + static_cast<int64_t>(slot) * one.size());
  }
  made.expected.emplace("y1", Expected{std::move(expected), terms(16 * e), 4});
  return made;
}

}  // namespace

void linear_attention_cases(OperatorCases& cases) {
  for (const HeadSizes& s : kHeadSizes) {
    const std::string at = size_text(s.q) + "-" + std::to_string(s.value_width);
    for (const bool causal : {false, true}) {
      const std::string how = causal ? "-causal/" : "/";
      cases.check("elu" + how + at, is_quick(s), [=] { return linear_case(s, false, causal); });
      cases.check("favor" + how + at, is_quick(s), [=] { return linear_case(s, true, causal); });
    }
    if (s.q[2] >= 1500) continue;
    for (const bool causal : {false, true}) {
      cases.check((causal ? "weights-causal/" : "weights/") + at, is_quick(s),
                  [=] { return linear_weights_case(s, causal); });
    }
    cases.check("step/" + at, is_quick(s), [=] { return linear_step_case(s); });
  }
  cases.time("12 heads 4096", {"linear_attention", "{}"},
             "Q=1,12,4096,64 K=1,12,4096,64 V=1,12,4096,64");
  cases.time("12 heads 4096 causal", {"linear_attention", R"({"causal": true})"},
             "Q=1,12,4096,64 K=1,12,4096,64 V=1,12,4096,64");
  cases.limited_by("features, sums of chunks and their scan pass through memory");
}

}  // namespace vkformer::conformance
