// The cases of gated_norm: its checks, and what the benchmark times.
#include "ops/gated_norm.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "reference/gated_norm.h"

namespace vkformer::conformance {
namespace {

using GateOrder = GatedNormAttrs::Order;

struct GateSize {
  int64_t rows, groups, group, first, gate_width;
};

constexpr GateSize kGateSizes[] = {{1, 1, 1, 0, 1},        {3, 2, 7, 3, 20},
                                   {5, 3, 33, 1, 140},     {2, 1, 1500, 0, 1500},
                                   {7, 16, 128, 64, 2200}, {40000, 2, 3, 0, 6}};

const char* order_text(GateOrder order) {
  if (order == GateOrder::kGateFirst) return "gate-first";
  return order == GateOrder::kNormFirst ? "norm-first" : "gate-only";
}

Result<CheckCase> gate_case(const GateSize& s, GateOrder order, bool sigmoid, Content content) {
  const Array x = random_array({s.rows, s.groups * s.group}, 1, content);
  const Array z = random_array({s.rows, s.gate_width}, 2, content);
  const Array gain = random_array({s.groups, s.group}, 3);
  GatedNormAttrs attrs{.order = order, .first = u32(s.first), .epsilon = 1e-5f};
  reference::GatedNormOptions options{.first = s.first, .epsilon = 1e-5f};
  options.order = static_cast<reference::GatedNormOptions::Order>(order);
  if (sigmoid) {
    attrs.activation = ActivationKind::kSigmoid;
    options.activation = reference::ActivationKind::kSigmoid;
  }
  VKF_ASSIGN(Array y, reference::gated_norm(x, z, gain, options));
  CheckCase made;
  const TensorId x_id = made.op.bind("x", floats(x)), z_id = made.op.bind("z", floats(z));
  TensorId gain_id = kNoTensor;
  if (order != GateOrder::kGateOnly) gain_id = made.op.bind("gain", floats(gain));
  VKF_ASSIGN(const TensorId id, add_gated_norm(made.op.graph, x_id, z_id, gain_id, attrs));
  made.op.name_output(id, "y");
  made.expected.emplace("y", Expected{std::move(y), terms(16 + s.group), 4});
  return made;
}

Status gate_graph(StepGraph& in) {
  const int64_t rows = in.number("rows"), groups = in.number("groups"), e = in.number("width");
  const GateOrder order = in.number("first") == 1 ? GateOrder::kGateFirst : GateOrder::kNormFirst;
  const TensorId x = in.floats("x", {rows, groups * e}), z = in.floats("z", {rows, groups * e});
  const TensorId gain = in.floats("gain", {groups, e});
  VKF_ASSIGN(const TensorId y, add_gated_norm(in.graph(), x, z, gain, {.order = order}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void gated_norm_cases(OperatorCases& cases) {
  for (const GateOrder order :
       {GateOrder::kGateOnly, GateOrder::kGateFirst, GateOrder::kNormFirst}) {
    const std::string name = order_text(order) + std::string("/");
    for (const GateSize& s : kGateSizes) {
      const std::string size = size_text({s.rows, s.groups, s.group, s.first});
      cases.check(name + size, s.rows < 6,
                  [=] { return gate_case(s, order, s.rows == 3, Content::kNormal); });
    }
    for (const Content content : kOtherContents) {
      cases.check(name + content_name(content), true, [=] {
        return gate_case({5, 3, 33, 1, 140}, order, false, content);
      });
    }
  }
  cases.time_graph("mamba2-1.3b prefill 256", "rows=256 groups=1 width=4096 first=1", gate_graph);
  cases.time_graph("qwen3-next decode", "rows=1 groups=32 width=128 first=2", gate_graph);
  cases.limited_by("two passes over a group");
}

}  // namespace vkformer::conformance
