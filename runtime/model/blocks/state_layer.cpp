#include "model/blocks/state_layer.h"

#include <cmath>

#include "base/narrow.h"
#include "model/blocks/stack_attention.h"

namespace vkformer {
namespace {

using Kind = StateSetup::Kind;
using Mode = StackRun::Mode;

// States of the shape `line` in each line of a row, in a prompt or a step.
StateTensors states_of(const LayerSite& site, const char* suffix, const Shape& line) {
  if (site.run.mode == Mode::kFull) return {};
  const StepShape& s = site.run.step;
  Shape shape = {s.batch * s.beams, state_lines(site)};
  shape.insert(shape.end(), line.begin(), line.end());
  Graph& g = site.b.graph();
  return {g.add_external("self_state." + site.number() + suffix, DType::kF32, std::move(shape)),
          add_decode_state(g), site.run.parents};
}

Result<TensorId> convolve(const LayerSite& site, TensorId x, const StateColumns& columns) {
  const StateSetup& s = site.c.states;
  CausalConvAttrs attrs{.first = u32(columns.first), .activation = s.activation, .bias = s.bias};
  attrs.beams = u32(site.run.step.beams);
  if (s.kind == Kind::kShortConv) {
    attrs.gates = CausalConvAttrs::Gates::kYes;
    attrs.columns = CausalConvAttrs::Columns::kChannels;
    attrs.in_gate = 0;
    attrs.out_gate = u32(columns.gate);
  }
  CausalConvInputs inputs{.x = x};
  VKF_ASSIGN(inputs.taps, site.b.table(site.rows() + ".mix.taps"));
  if (site.run.terms.params.key_mask_offset == 0) inputs.mask = site.run.terms.words;
  if (s.taps > 1) inputs.carried = states_of(site, ".conv", {s.taps - 1, columns.channels});
  site.b.graph().set_scope(site.rows() + ".mix.conv");
  return add_causal_conv(site.b.graph(), inputs, attrs);
}

Result<TensorId> scan(const LayerSite& site, TensorId x, const StateColumns& columns) {
  const StateSetup& s = site.c.states;
  StateScanAttrs attrs;
  attrs.heads = u32(s.heads);
  attrs.key_heads = u32(s.key_heads);
  attrs.width = u32(s.width);
  attrs.value_width = u32(s.value_width);
  attrs.q_offset = u32(columns.q);
  attrs.k_offset = u32(columns.k);
  attrs.v_offset = u32(columns.v);
  attrs.a_offset = u32(columns.rates);
  attrs.least_rate = s.least_rate;
  attrs.most_rate = s.most_rate;
  attrs.beams = u32(site.run.step.beams);
  attrs.run = u32(std::max<int64_t>(1, site.run.step.slots));
  if (s.kind == Kind::kDelta) {
    attrs.rule = StateScanAttrs::Rule::kDelta;
    attrs.b_offset = u32(columns.strengths);
    attrs.norm_epsilon = 1e-6f;  // of the unit length of q and k, whatever the model's norms have
    attrs.q_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.width)));
  }
  StateScanInputs inputs{.x = x};
  VKF_ASSIGN(inputs.rates, site.b.table(site.rows() + ".mix.rates"));
  inputs.carried = states_of(site, "", {s.heads, s.width, s.value_width});
  site.b.graph().set_scope(site.rows() + ".mix.scan");
  return add_state_scan(site.b.graph(), inputs, attrs);
}

}  // namespace

StateColumns state_columns(const StateSetup& s, int64_t stack_width) {
  StateColumns c;
  if (s.kind == Kind::kShortConv) {
    c.channels = stack_width;
    c.gate = stack_width;
    c.first = 2 * stack_width;
    c.width = 3 * stack_width;
    return c;
  }
  c.channels = s.values() + 2 * s.keys();
  if (s.kind == Kind::kDelta) {
    c.k = s.keys();
    c.v = 2 * s.keys();
    c.gate = c.channels;
    c.strengths = c.gate + s.values();
    c.rates = c.strengths + s.heads;
    c.width = c.rates + s.heads;
    return c;
  }
  c.first = c.v = s.values();
  c.k = c.v + s.values();
  c.q = c.k + s.keys();
  c.rates = c.q + s.keys();
  c.width = c.rates + s.heads;
  return c;
}

int64_t state_lines(const LayerSite& site) {
  const StepShape& s = site.run.step;
  // A step reads one line and writes another; a row that may go back keeps those it goes back to.
  return 2 + s.back;
}

Result<TensorId> add_states(const LayerSite& site, TensorId h) {
  const StateSetup& s = site.c.states;
  const StateColumns columns = state_columns(s, site.c.width);
  VKF_ASSIGN(TensorId x, add_named_linear(site.b, site.rows() + ".mix.in", h));
  VKF_ASSIGN(x, convolve(site, x, columns));
  if (s.kind == Kind::kShortConv) return x;
  VKF_ASSIGN(const TensorId y, scan(site, x, columns));
  const std::string norm = site.rows() + ".mix.norm";
  TensorId gains = kNoTensor;
  if (s.gate != GatedNormAttrs::Order::kGateOnly) {
    VKF_ASSIGN(gains, site.b.table(norm));
  }
  site.b.graph().set_scope(norm);
  return add_gated_norm(site.b.graph(), y, x, gains,
                        {.order = s.gate,
                         .activation = ActivationKind::kSilu,
                         .first = u32(columns.gate),
                         .epsilon = s.norm_epsilon});
}

Result<TensorId> add_state_layer(const LayerSite& site, TensorId h, const LinearAttrs& out) {
  VKF_ASSIGN(const TensorId y, add_states(site, h));
  return add_named_linear(site.b, site.rows() + ".mix.out", y, out);
}

}  // namespace vkformer
