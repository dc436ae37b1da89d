// Whole plans against the limits of the baseline: nothing may ask for more than a phone has.
#include "ops/op.h"
#include "plan/slicing.h"
#include "support/golden_graphs.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

uint32_t local_size(const Dispatch& d, const KernelInterface& interface, size_t axis) {
  const uint32_t id = interface.local_size_spec_id[axis];
  if (id == ~0u) return interface.local_size[axis];
  REQUIRE(id < d.spec.size());
  return d.spec[id];
}

void check_within(const Plan& plan, const DeviceCaps& caps) {
  for (const Dispatch& d : plan.dispatches) {
    CAPTURE(d.label);
    CAPTURE(kernel_info(d.kernel).name);
    const auto interface = kernel_interface(d.kernel);
    REQUIRE(interface.ok());
    CHECK(d.push.size() <= caps.limits.max_push_bytes);
    CHECK(d.bindings.size() == interface->bindings.size());
    uint32_t storage = 0;
    for (const KernelBinding& b : interface->bindings) {
      if (b.type == BindingType::kStorage) ++storage;
      // Access is declared as wide as the shader's.
      const Access declared = d.bindings[b.binding].access;
      if (!b.readonly && b.type == BindingType::kStorage) CHECK(declared != Access::kRead);
      if (!b.writeonly) CHECK(declared != Access::kWrite);
    }
    CHECK(storage <= caps.limits.max_storage_buffers);
    uint32_t invocations = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
      const uint32_t size = local_size(d, *interface, axis);
      CHECK(size <= caps.limits.max_group_size[axis]);
      CHECK(d.groups[axis] >= 1);
      CHECK(d.groups[axis] <= caps.limits.max_group_count[axis]);
      invocations *= size;
    }
    CHECK(invocations <= caps.limits.max_invocations);
    if (plan.is_step() && d.live_axis >= 0) CHECK(d.slots_per_group >= 1);
  }
}

Plan plan_of(const Graph& graph, const DeviceCaps& caps) {
  auto plan = make_plan(graph, caps, Precision::kF32);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  return std::move(plan).value();
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every plan of every golden model keeps the baseline's limits") {
    for (const char* name : {"marian-base", "transformer-preln", "transformer-paper"}) {
      const GoldenGraphs model = golden_graphs(name);
      for (Tier tier : {Tier::kBaseline, Tier::kSubgroup}) {
        for (DeviceClass kind : {DeviceClass::kSoftware, DeviceClass::kDiscrete}) {
          DeviceCaps caps = caps_of_tier(tier);
          caps.device_class = kind;
          ForwardTaps taps;
          taps.attentions = taps.hidden_states = ForwardTaps::Tap::kOn;
          for (int64_t batch : {1, 64}) {
            check_within(plan_of(model.forward({batch, 17, 9}, taps), caps), caps);
            const StepShape shape{.batch = batch, .beams = 4, .source = 16, .capacity = 32};
            check_within(plan_of(model.prompt(shape), caps), caps);
            check_within(plan_of(model.step(shape), caps), caps);
          }
        }
      }
    }
  }

  TEST_CASE("plans of models share no memory between what is read and written") {
    const GoldenGraphs model = golden_graphs("transformer-postln");
    const DeviceCaps caps = caps_of_tier(Tier::kBaseline);
    const Plan plan = plan_of(model.forward({2, 9, 7}), caps);
    check_no_aliasing(plan);
    CHECK(plan.arena_bytes < plan.arena_naive_bytes);
    CHECK(plan.flops() > 0);
    CHECK(plan.bytes() > 0);
  }

  TEST_CASE("only dispatches over slots depend on the number of live rows") {
    const GoldenGraphs model = golden_graphs("marian-base");
    const DeviceCaps caps = caps_of_tier(Tier::kBaseline);
    const StepShape shape{.batch = 8, .beams = 2, .source = 16, .capacity = 32};
    const Plan step = plan_of(model.step(shape), caps);
    CHECK(step.is_step());
    CHECK(step.row_capacity == 16);
    for (const Dispatch& d : step.dispatches) CHECK(d.live_axis >= 0);
    const Plan encode = plan_of(model.prompt(shape), caps);
    CHECK_FALSE(encode.is_step());
    for (const Dispatch& d : encode.dispatches) CHECK(d.live_axis == -1);
  }

  TEST_CASE("no dispatch of a decoding step is longer than the device's limit") {
    const GoldenGraphs model = golden_graphs("marian-base");
    const StepShape shape{.batch = 16, .beams = 4, .source = 16, .capacity = 32};
    DeviceCaps caps = caps_of_tier(Tier::kBaseline);
    const Plan whole = plan_of(model.step(shape), caps);
    // One panel of 64 columns of a product of 64 rows with a weight of 32: the least of a product.
    caps.max_dispatch_flops = 2.0 * 64 * 64 * 32;
    const Plan plan = plan_of(model.step(shape), caps);
    CHECK(plan.dispatches.size() > whole.dispatches.size());
    CHECK(plan.flops() == doctest::Approx(whole.flops()));
    for (const PlanPiece& piece : all_pieces(plan, caps.max_dispatch_flops)) {
      CAPTURE(plan.dispatches[piece.dispatch].label);
      CHECK(piece.part.flops <= caps.max_dispatch_flops);
    }
  }

  TEST_CASE("a tensor beyond the device's range is refused by name") {
    const GoldenGraphs model = golden_graphs("marian-base");
    DeviceCaps caps = caps_of_tier(Tier::kBaseline);
    caps.limits.max_storage_range = 2000;
    const auto plan = make_plan(model.forward({1, 20, 20}), caps, Precision::kF32);
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code == ErrorCode::kUnsupported);
    CHECK(plan.error().message.find("2000 bytes") != std::string::npos);
    CHECK(plan.error().message.find("[") != std::string::npos);
  }

  TEST_CASE("the dump names buffers, kernels, labels, barriers and sums") {
    const GoldenGraphs model = golden_graphs("marian-base");
    const std::string dump =
        plan_of(model.forward({1, 5, 4}), caps_of_tier(Tier::kBaseline)).dump();
    for (const char* part : {"external", "constant", "arena @", "decoder.1", "barrier for",
                             "layer_norm_row__f32_f32_f32 [", "dispatches", "without reuse"}) {
      CHECK_MESSAGE(dump.find(part) != std::string::npos, part);
    }
  }
}

}  // namespace vkformer::testing
