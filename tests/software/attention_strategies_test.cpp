// Attention's strategies for software devices: what is chosen.
#include "ops/merged_projection.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("software devices of few lanes keep queries in registers") {
    const AttentionCase c{
        .batch = 2, .heads = 3, .kv_heads = 3, .queries = 17, .keys = 17, .head_width = 8};
    Graph graph;
    const TensorId qkv = graph.add_external("qkv", DType::kF32, {2, 17, 72});
    REQUIRE(add_attention(graph, {.q = qkv, .kv = qkv}, merged_attrs(c)).ok());
    DeviceCaps software = caps_of_tier(Tier::kSubgroup);
    software.device_class = DeviceClass::kSoftware;
    software.subgroup_size = 8;
    software.compiler.has_int64 = true;
    const auto lanes = make_plan(graph, software, Precision::kF32);
    REQUIRE(lanes.ok());
    CHECK(lanes->dump().find("attention_lanes__f32_f32_f32_subgroup_int64 [3 x 6 x 1]") !=
          std::string::npos);
    // Long sequences take two queries a lane.
    AttentionCase longer = c;
    longer.queries = longer.keys = 65;
    Graph pairs;
    const TensorId wide = pairs.add_external("qkv", DType::kF32, {2, 65, 72});
    REQUIRE(add_attention(pairs, {.q = wide, .kv = wide}, merged_attrs(longer)).ok());
    const auto paired = make_plan(pairs, software, Precision::kF32);
    REQUIRE(paired.ok());
    CHECK(paired->dump().find("attention_lanes__f32_f32_f32_subgroup_int64 [5 x 6 x 1]") !=
          std::string::npos);
  }

  TEST_CASE("drivers that want literals hand rows round in quads where that is possible") {
    DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    caps.device_class = DeviceClass::kSoftware;
    caps.subgroup_size = 4;
    caps.compiler.wants_literals = caps.compiler.has_quads = true;
    const auto kernel = [&](const AttentionCase& c) {
      Graph graph;
      const int64_t width = 3 * int64_t{c.heads} * c.head_width;
      const TensorId qkv = graph.add_external("qkv", DType::kF32, {c.batch, c.queries, width});
      REQUIRE(add_attention(graph, {.q = qkv, .kv = qkv}, merged_attrs(c)).ok());
      const auto plan = make_plan(graph, caps, Precision::kF32);
      REQUIRE(plan.ok());
      return std::string(kernel_info(plan->dispatches[0].kernel).name);
    };
    const AttentionCase c{
        .batch = 2, .heads = 3, .kv_heads = 3, .queries = 17, .keys = 17, .head_width = 8};
    const std::string literal = "attention_literal__f32_f32_f32_subgroup";
    const std::string tiled = "attention_tiled__f32_f32_f32_subgroup";
    CHECK(kernel(c) == literal);
    AttentionCase other = c;
    other.head_width = other.value_width = 6;  // rows of k do not start at multiples of 4
    CHECK(kernel(other) == tiled);
    other.head_width = other.value_width = 132;  // more columns than invocations
    CHECK(kernel(other) == tiled);
    other.head_width = other.value_width = 128;
    CHECK(kernel(other) == literal);
    AttentionCase one = c;
    one.queries = one.keys = 1;
    CHECK(kernel(one) == tiled);
    caps.compiler.has_quads = false;
    CHECK(kernel(c) == tiled);
    caps.compiler.has_quads = true;
    caps.compiler.wants_literals = false;
    CHECK(kernel(c) == tiled);
  }
}

}  // namespace vkformer::testing
