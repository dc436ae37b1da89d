#include "ops/linear_state.h"

#include "ops/attention_step.h"
#include "ops/row_kernel.h"

namespace vkformer {
namespace {

// Features that a workgroup sums at a time, in registers times the columns of a lane; software
// devices pay for loads more than for registers.
uint32_t features_at_once(const DeviceCaps& caps) {
  return caps.device_class == DeviceClass::kSoftware ? 32 : 16;
}
constexpr uint32_t kScanLanes = 64;

void emit_chunks(LowerContext& context, const Node& node, const StateSum& s) {
  const uint32_t lanes = attention_local_size(context.caps, s.value_width);
  const uint32_t features = features_at_once(context.caps);
  const bool masked = s.mask != ~0u;
  // Exponents are turned into features once, for all lanes.
  const bool direct = context.caps.device_class == DeviceClass::kSoftware && !s.fades;
  Dispatch d = make_dispatch(node, KernelId::linear_attention_state__f32_f32_f32);
  d.bindings = {{s.x, Access::kRead},
                {s.features, Access::kRead},
                {masked ? s.mask : s.x, Access::kRead},
                {s.direct() ? s.total : s.states, Access::kWrite}};
  LinearStateParams params = s.state;
  params.out_offset =
      s.direct() ? s.scan.total_offset + s.state.first_unit * s.scan.state_words : 0;
  d.set_push(params);
  d.set_constants(LinearStateConstants{.local_size = lanes,
                                       .features = features,
                                       .value_width = s.value_width,
                                       .fades = s.fades,
                                       .has_one = s.has_one,
                                       .has_mask = masked,
                                       .direct = direct});
  const uint64_t blocks = (params.features + features - 1) / features;
  set_row_groups(context, d, uint64_t{params.units} * params.chunks * blocks, 1);
  const double pairs = static_cast<double>(params.units) * params.keys;
  d.flops = 2.0 * pairs * params.features * (s.value_width + 1);
  d.bytes = 4.0 * pairs * (params.features + static_cast<double>(blocks) * s.value_width);
  context.plan.dispatches.push_back(std::move(d));
}

void emit_scan(LowerContext& context, const Node& node, const StateSum& s) {
  const LinearScanParams& p = s.scan;
  const uint32_t lanes = std::min(kScanLanes, row_local_size(context.caps, p.state_words));
  Dispatch d = make_dispatch(node, KernelId::linear_attention_scan__f32_f32_f32);
  d.bindings = {{s.states, Access::kReadWrite}, {s.total, Access::kWrite}};
  d.set_push(p);
  d.set_constants(LinearScanConstants{
      .local_size = lanes, .causal = s.causal, .fades = s.fades, .has_one = s.has_one});
  const uint64_t blocks = (p.state_words - 2 + lanes - 1) / lanes;
  set_row_groups(context, d, uint64_t{p.units} * blocks, 1);
  const double words = static_cast<double>(p.units) * p.chunks * p.state_words;
  d.flops = 4.0 * words;
  d.bytes = (s.causal ? 8.0 : 4.0) * words;
  context.plan.dispatches.push_back(std::move(d));
}

}  // namespace

bool StateSum::direct() const {
  return !causal && state.chunks == 1 && scan.copies == 1 &&
         scan.total_head_stride == scan.state_words &&
         scan.total_item_stride == scan.heads * scan.state_words;
}

void emit_state_sum(LowerContext& context, const Node& node, const StateSum& sum) {
  emit_chunks(context, node, sum);
  if (!sum.direct()) emit_scan(context, node, sum);
}

}  // namespace vkformer
