// linear_attention in a decoding step: the features of one token, then the recurrence.
#include <cmath>

#include "ops/linear_attention_lowering.h"
#include "ops/linear_state.h"
#include "ops/row_kernel.h"

namespace vkformer {
namespace {

struct StepLaunch {
  LowerContext& context;
  const Node& node;
  const LinearStepAttrs& a;
  uint32_t slots = 0;
  uint32_t features = 0;  // M
  uint32_t scratch = 0;   // queries (slots, H, M), keys (slots, H, M + 1), values (slots, H, Ev)

  uint32_t map_features() const { return features - (linear_has_one(a.features) ? 1 : 0); }
  uint32_t units() const { return slots * a.heads; }
  uint32_t k_offset() const { return units() * features; }
  uint32_t v_offset() const { return k_offset() + units() * (features + 1); }
  uint64_t words() const { return uint64_t{v_offset()} + uint64_t{units()} * a.value_width; }
};

void emit_features(const StepLaunch& l, uint32_t row) {
  const LinearStepAttrs& a = l.a;
  const TensorId omega = l.node.inputs[1] == kNoTensor ? l.node.inputs[0] : l.node.inputs[1];
  const double root = std::sqrt(std::sqrt(static_cast<double>(a.head_width)));
  const LinearFeaturesParams params{.q = {a.q_offset, row, a.head_width, row},
                                    .k = {a.k_offset, row, a.head_width, row},
                                    .v = {a.v_offset, row, a.value_width, row},
                                    .heads = a.heads,
                                    .first_unit = 0,
                                    .units = l.units(),
                                    .queries = 1,
                                    .keys = 1,
                                    .features = l.map_features(),
                                    .value_width = a.value_width,
                                    .k_offset = l.k_offset(),
                                    .v_offset = l.v_offset(),
                                    .scale = static_cast<float>(1.0 / root),
                                    .kernel_eps = a.features.kernel_eps};
  Dispatch d = make_dispatch(l.node, KernelId::linear_attention_features__f32_f32_f32);
  d.bindings = {{l.node.inputs[0], Access::kRead},
                {omega, Access::kRead},
                {omega, Access::kRead},
                {l.scratch, Access::kReadWrite}};
  d.set_push(params);
  const uint32_t lanes = linear_feature_lanes(l.context.caps, params.features, a.head_width);
  d.set_constants(
      LinearFeaturesConstants{.local_size = lanes,
                              .rows = 1,
                              .width = a.head_width,
                              .map = linear_map(a.features),
                              .has_one = linear_has_one(a.features),
                              .has_mask = 0,
                              .step = 1,
                              .spread = linear_feature_spread(a.features, params.features, lanes)});
  d.groups = {l.slots, a.heads, 3};
  d.live_axis = 0;
  d.flops = 2.0 * l.units() * l.features * (2.0 * a.head_width + 8);
  d.bytes = d.flops;
  l.context.plan.dispatches.push_back(std::move(d));
}

}  // namespace

Status lower_linear_attention_step(LowerContext& context, const Node& node,
                                   const LinearStepAttrs& a) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const bool favor = a.features.map == LinearFeatureAttrs::Map::kFavor;
  const int64_t rows = favor ? context.desc(node.inputs[1]).shape[0] : int64_t{a.head_width};
  StepLaunch l{context, node, a};
  l.slots = static_cast<uint32_t>(x.shape[0]);
  l.features = static_cast<uint32_t>(rows) + (linear_has_one(a.features) ? 1 : 0);
  l.scratch = context.add_scratch("features", 4 * l.words());
  emit_features(l, static_cast<uint32_t>(x.shape[1]));
  const LinearStepParams params{.heads = a.heads,
                                .features = l.features,
                                .value_width = a.value_width,
                                .k_offset = l.k_offset(),
                                .v_offset = l.v_offset(),
                                .lines = a.capacity,
                                .beams = a.beams,
                                .epsilon = a.features.epsilon};
  Dispatch d = make_dispatch(node, KernelId::linear_attention_step__f32_f32_f32);
  d.bindings = {{l.scratch, Access::kRead},
                {node.inputs[2], Access::kRead},
                {node.inputs[3], Access::kReadWrite},
                {node.outputs[0], Access::kWrite},
                {node.inputs[4], Access::kRead}};
  d.set_push(params);
  const uint32_t lanes = row_local_size(context.caps, a.value_width + 1, 2 * l.features);
  d.set_constants(LinearStepConstants{.local_size = lanes,
                                      .fades = linear_fades(a.features),
                                      .has_one = linear_has_one(a.features)});
  d.groups = {l.slots, a.heads, 1};
  d.live_axis = 0;
  const double words = static_cast<double>(l.units()) * l.features * (a.value_width + 1);
  d.flops = 4.0 * words;
  d.bytes = 8.0 * words;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
