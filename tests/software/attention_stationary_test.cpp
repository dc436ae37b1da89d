// Attention whose keys pass by queries that stay, forced on every device that can.
#include "ops/attention_cases.h"

namespace vkformer::testing {
namespace {

constexpr const char* kKernel = "attention_stationary__f32_f32_f32_tables";

// As a device whose compiler wants literals.
DeviceCaps wanting_literals(DeviceCaps caps) {
  caps.device_class = DeviceClass::kSoftware;
  caps.compiler.wants_literals = true;
  caps.compiler.has_int64 = false;
  return caps;
}

std::string kernel_of(const PreparedOperator& op, const DeviceCaps& caps) {
  const auto plan = make_plan(op.graph, caps, Precision::kF32);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  REQUIRE(plan->dispatches.size() == 1);
  return std::string(kernel_info(plan->dispatches[0].kernel).name);
}

// The test device, if it has arrays of buffers.
std::shared_ptr<VulkanDevice> device_with_tables() {
  if (!have_test_device()) return nullptr;
  if (vulkan_of(*test_device())->caps().tables()) return vulkan_of(*test_device());
  MESSAGE("skipped: this device or tier has no arrays of buffers");
  return nullptr;
}

void check_problem(const AttentionCase& c, const AttentionProblem& p) {
  INFO(c.text());
  const PreparedOperator op = prepare_attention(c, p);
  GraphRunOptions options;
  options.poison = GraphRunOptions::Poison::kOn;
  options.repeats = 3;
  options.caps = wanting_literals(vulkan_of(*test_device())->caps());
  REQUIRE(kernel_of(op, *options.caps) == kKernel);
  const auto report = run_graph(vulkan_of(*test_device()), op.graph, op.inputs, options);
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  check_close(report->outputs.at("y"), reference_outputs(c, p).output,
              tolerance_for(DType::kF32, c.keys + c.head_width));
}

AttentionCase sized(int64_t queries, int64_t keys) {
  return {.queries = queries, .keys = keys, .head_width = 64, .value_width = 64};
}

void check_case(const AttentionCase& c) {
  check_problem(c, make_problem(c));
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("stationary attention over lengths around its rounds, and grouped heads") {
    if (!device_with_tables()) return;
    for (int64_t queries : {4, 5, 7, 8, 33}) {
      for (int64_t keys : {1, 3, 4, 5, 8, 63, 145}) check_case(sized(queries, keys));
    }
    for (int64_t kv_heads : {1, 2, 6}) {
      AttentionCase c = sized(9, 20);
      c.batch = 2;
      c.heads = 6;
      c.kv_heads = kv_heads;
      check_case(c);
    }
    check_case(sized(5, 1100));  // more rounds than the inner loop has at a time
  }

  TEST_CASE("stationary attention with every mask and bias, alone and together") {
    if (!device_with_tables()) return;
    // Other compilers take seconds for every kind of terms.
    const uint32_t step = vulkan_of(*test_device())->caps().compiler.wants_literals ? 1 : 5;
    for (uint32_t terms = 0; terms < 16; terms += step) {
      AttentionCase c = sized(21, 70);
      c.batch = c.heads = c.kv_heads = 2;
      c.terms = terms;
      for_each_mask(c, check_case);
    }
    for (int64_t offset : {0, -200, 5000, -5000}) {  // whole rounds and rows are empty
      AttentionCase c = sized(130, 130);
      c.masks.causal = true;
      c.masks.window_left = 3;
      c.masks.causal_offset = offset;
      check_case(c);
    }
  }

  TEST_CASE("stationary attention at extremes, and NaN and infinity where they are seen") {
    if (!device_with_tables()) return;
    for (float temperature : {1e-6f, 1e6f}) {
      AttentionCase c = sized(9, 66);
      c.temperature = temperature;
      check_case(c);
    }
    AttentionCase wild = sized(9, 66);
    wild.spread = 30.0f;
    check_case(wild);
    AttentionCase none = sized(5, 9);
    none.terms = AttentionCase::kKeyMask;
    AttentionProblem empty = make_problem(none);
    std::fill(empty.key_mask->bytes.begin(), empty.key_mask->bytes.end(), std::byte{0});
    set_element(empty.v, 3, kNan);
    check_problem(none, empty);
    for (float special : {kNan, kInfinity, -kInfinity}) {
      for (int place = 0; place < 3; ++place) {
        for (int64_t keys : {20, 19}) {
          AttentionCase c = sized(19, keys);
          c.masks.causal = true;
          AttentionProblem p = make_problem(c);
          // Element 2 of token 9, and of the last one, of q, k or v.
          Tensor& marked = place == 0 ? p.q : place == 1 ? p.k : p.v;
          set_element(marked, 9 * 64 + 2, special);
          set_element(marked, static_cast<size_t>(marked.count()) - 62, special);
          INFO("special ", special, " in ", place);
          check_problem(c, p);
        }
      }
    }
  }

  TEST_CASE("a query of stationary attention has the same bits whatever others there are") {
    const auto device = device_with_tables();
    if (!device) return;
    std::vector<float> first;
    for (int64_t queries : {4, 6, 11}) {
      AttentionCase c = sized(queries, 30);
      AttentionProblem p = make_problem(sized(11, 30));
      std::vector<float> q = *p.q.to_floats();
      q.resize(static_cast<size_t>(queries) * 64);
      p.q = Tensor::from_floats({1, 1, queries, 64}, q);
      GraphRunOptions options;
      options.caps = wanting_literals(device->caps());
      const PreparedOperator op = prepare_attention(c, p);
      const auto report = run_graph(device, op.graph, op.inputs, options);
      REQUIRE(report.ok());
      std::vector<float> y = *report->outputs.at("y").to_floats();
      y.resize(4 * 64);
      if (first.empty()) first = y;
      CHECK(y == first);
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("keys pass by where rows are whole parts of a table that holds them") {
    DeviceCaps caps = wanting_literals(caps_of_tier(Tier::kSubgroup));
    caps.subgroup_size = 4;
    caps.compiler.has_quads = true;
    caps.compiler.max_table_parts = 1000;
    const auto kernel = [&](const AttentionCase& c) {
      return kernel_of(prepare_attention(c, make_problem(c)), caps);
    };
    CHECK(kernel(sized(4, 9)) == kKernel);
    const std::string literal = "attention_literal__f32_f32_f32_subgroup";
    CHECK(kernel(sized(3, 9)) == literal);
    AttentionCase narrow = sized(8, 9);
    narrow.head_width = narrow.value_width = 32;
    CHECK(kernel(narrow) == literal);
    CHECK(kernel(sized(4, 500)) == kKernel);
    CHECK(kernel(sized(4, 501)) == literal);  // k and v are 1,002 rows
    caps.compiler.wants_literals = false;
    CHECK(kernel(sized(4, 9)) == "attention_tiled__f32_f32_f32_subgroup");
  }
}

}  // namespace vkformer::testing
