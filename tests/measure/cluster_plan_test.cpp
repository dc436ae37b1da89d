// Plans of models on clusters that are only described.
#include "vkformer/cluster_plan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "support/golden.h"

namespace vkformer::testing {
namespace {

// Alike devices in one node, of which a model's matrices take some milliseconds.
ClusterOptions alike_devices(int64_t count) {
  ClusterOptions options;
  options.devices = {{.name = "a device",
                      .count = count,
                      .memory_bytes = uint64_t{1} << 30,
                      .read_rate = 1e8,
                      .launch = 1e-6,
                      .submit = 1e-5}};
  options.in_node = {.latency = 1e-6, .rate = 1e9};
  options.between_nodes = options.in_node;
  options.tokens = 64;
  return options;
}

ModelSource golden_source(const std::string& name) {
  return ModelSource::directory(golden_case(name).path("model"));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a plan of one device holds the whole model") {
    const auto plan = plan_cluster(golden_source("llama-gqa"), alike_devices(1));
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    REQUIRE(plan->splits.size() == 1);
    const ClusterSplit& split = plan->splits[0];
    CHECK(split.depth == 1);
    CHECK(split.pipelines == 1);
    CHECK(split.idle == 0);
    REQUIRE(split.stages.size() == 1);
    CHECK(split.stages[0].stage.work == doctest::Approx(1));
    CHECK(split.stages[0].cache_bytes > 0);
    CHECK(split.stages[0].memory_use > 0);
    CHECK(split.tokens_per_second == doctest::Approx(1 / split.step_seconds));
    CHECK(split.bubbles == doctest::Approx(0));
  }

  TEST_CASE("pipelines and depths share out the devices") {
    const auto plan = plan_cluster(golden_source("llama-gqa"), alike_devices(4));
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    REQUIRE(plan->splits.size() >= 3);
    const ClusterSplit& alone = plan->splits[0];
    CHECK(alone.pipelines == 4);
    CHECK(plan->splits[2].depth == 3);
    CHECK(plan->splits[2].idle == 1);
    for (const ClusterSplit& split : plan->splits) {
      CAPTURE(split.depth);
      CHECK(split.pipelines * split.depth + split.idle == 4);
      CHECK(split.tokens_per_second <= alone.tokens_per_second * 1.001);
      double work = 0;
      uint64_t weights = 0;
      for (const ClusterStage& stage : split.stages) {
        work += stage.stage.work;
        weights += stage.stage.weight_bytes;
      }
      CHECK(work == doctest::Approx(1));
      CHECK(weights >= alone.stages[0].stage.weight_bytes);
    }
    CHECK(plan->splits[plan->best].tokens_per_second == alone.tokens_per_second);
  }

  TEST_CASE("where one device is too small, pipelines are deeper; where all are, it says so") {
    ClusterOptions options = alike_devices(4);
    const auto whole = plan_cluster(golden_source("llama-gqa"), options);
    REQUIRE(whole.ok());
    const ClusterStage& stage = whole->splits[0].stages[0];
    options.devices[0].memory_bytes = stage.stage.weight_bytes;
    const auto plan = plan_cluster(golden_source("llama-gqa"), options);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    CHECK(plan->splits[0].depth >= 2);
    for (const ClusterStage& own : plan->splits[0].stages) CHECK(own.memory_use <= 0.9);
    options.devices[0].memory_bytes = 1000;
    const auto none = plan_cluster(golden_source("llama-gqa"), options);
    REQUIRE(!none.ok());
    CHECK(none.error().code == ErrorCode::kOutOfMemory);
  }

  TEST_CASE("smaller weights are read faster, and more texts share a reading") {
    ClusterOptions options = alike_devices(1);
    const auto wide = plan_cluster(golden_source("llama-gqa"), options);
    options.weights = WeightFormat::kF16;
    const auto half = plan_cluster(golden_source("llama-gqa"), options);
    REQUIRE(wide.ok());
    REQUIRE(half.ok());
    CHECK(half->splits[0].step_seconds < 0.7 * wide->splits[0].step_seconds);
    options.texts = 4;
    const auto texts = plan_cluster(golden_source("llama-gqa"), options);
    REQUIRE(texts.ok());
    CHECK(texts->splits[0].tokens_per_second ==
          doctest::Approx(4 * half->splits[0].tokens_per_second));
    options.devices[0].flops = 1e6;  // so slow that computing takes longer than reading
    const auto slow = plan_cluster(golden_source("llama-gqa"), options);
    REQUIRE(slow.ok());
    CHECK(slow->splits[0].tokens_per_second < texts->splits[0].tokens_per_second);
  }

  TEST_CASE("parts of a long prompt keep all devices of a pipeline at work") {
    ClusterOptions options = alike_devices(2);
    options.tokens = 128;
    options.devices[0].flops = 1e7;  // so slow that computing takes longer than reading
    const auto splits_with = [&](int64_t part) {
      options.prompt_part = part;
      auto plan = plan_cluster(golden_source("llama-gqa"), options);
      REQUIRE_MESSAGE(plan.ok(), plan.error().message);
      REQUIRE(plan->splits.size() == 2);
      return plan->splits;
    };
    const std::vector<ClusterSplit> whole = splits_with(0), parts = splits_with(8);
    // One pass leaves one of two devices waiting.
    CHECK(whole[1].prompt_bubbles > 0.45);
    CHECK(whole[1].first_token_seconds > 0.99 * whole[0].first_token_seconds);
    CHECK(parts[1].prompt_bubbles < 0.5 * whole[1].prompt_bubbles);
    CHECK(parts[1].first_token_seconds < 0.75 * whole[1].first_token_seconds);
    // A device alone gains nothing by parts.
    CHECK(parts[0].prompt_bubbles == doctest::Approx(0));
    CHECK(parts[0].first_token_seconds >= whole[0].first_token_seconds);
    // Tokens after the prompt are estimated as before.
    CHECK(parts[1].step_seconds == whole[1].step_seconds);
    // A prompt of one token is a step.
    options.tokens = 1;
    CHECK(splits_with(8)[1].first_token_seconds == parts[1].step_seconds);
  }

  TEST_CASE("devices and links that cannot be are refused") {
    const auto refused = [](const ClusterOptions& options) {
      const auto plan = plan_cluster(golden_source("llama-gqa"), options);
      return !plan.ok() && plan.error().code == ErrorCode::kInvalidArgument;
    };
    ClusterOptions options = alike_devices(2);
    options.nodes = 0;
    CHECK(refused(options));
    options = alike_devices(2);
    options.nodes = (1 << 16) + 1;
    CHECK(refused(options));
    options = alike_devices(2);
    options.devices.clear();
    CHECK(refused(options));
    options = alike_devices(1 << 16);
    options.nodes = 2;
    CHECK(refused(options));
    options = alike_devices(2);
    options.devices[0].read_rate = std::nan("");
    CHECK(refused(options));
    options = alike_devices(2);
    options.devices[0].launch = -1;
    CHECK(refused(options));
    options = alike_devices(2);
    options.in_node.rate = 0;
    CHECK(refused(options));
    options = alike_devices(1);
    options.in_node = options.between_nodes = {};  // of one device there are none
    CHECK(plan_cluster(golden_source("llama-gqa"), options).ok());
    options.nodes = 2;
    CHECK(refused(options));
    options = alike_devices(2);
    options.texts = 0;
    CHECK(refused(options));
    options = alike_devices(2);
    options.prompt_part = -1;
    CHECK(refused(options));
  }
}

}  // namespace vkformer::testing
