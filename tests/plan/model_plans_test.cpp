// Plans of whole models in numbers: dispatches and barriers of a layer, and the arena's bytes
// against the fewest possible.
#include <set>
#include <tuple>

#include "ops/op.h"
#include "support/golden_graphs.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

Plan plan_of(const Graph& graph, DeviceClass device = DeviceClass::kSoftware) {
  DeviceCaps caps = caps_of_tier(Tier::kBaseline);
  caps.device_class = device;
  auto plan = make_plan(graph, caps, Precision::kF32);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  return std::move(plan).value();
}

struct LayerCounts {
  size_t dispatches = 0;
  size_t barriers = 0;

  bool operator==(const LayerCounts&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const LayerCounts& counts) {
  return stream << counts.dispatches << " dispatches, " << counts.barriers << " barriers";
}

// Of the second layer, whose rows begin with `rows`.
LayerCounts counts_of(const Plan& plan, const std::string& rows) {
  LayerCounts counts;
  for (const Dispatch& d : plan.dispatches) counts.dispatches += d.label.starts_with(rows) ? 1 : 0;
  for (const Barrier& b : plan.barriers) {
    counts.barriers += plan.dispatches[b.before_dispatch].label.starts_with(rows) ? 1 : 0;
  }
  return counts;
}

LayerCounts forward_counts(const char* name, const char* rows, const ForwardShape& shape) {
  const GoldenGraphs model = golden_graphs(name);
  const LayerCounts counts = counts_of(plan_of(model.forward(shape)), rows);
  CHECK(counts == counts_of(plan_of(model.forward(shape), DeviceClass::kDiscrete), rows));
  return counts;
}

LayerCounts step_counts(const char* name, const char* rows, DeviceClass device) {
  const GoldenGraphs model = golden_graphs(name);
  const StepShape shape{.batch = 2, .beams = 2, .source = 16, .capacity = 32, .prompt = 4};
  return counts_of(plan_of(model.step(shape), device), rows);
}

// The arena may take a tenth more than what is alive at the widest dispatch.
void check_arena(const Plan& plan, const std::string& what) {
  CAPTURE(what);
  CHECK(plan.arena_bytes >= plan.arena_bound_bytes);
  CHECK_MESSAGE(
      static_cast<double>(plan.arena_bytes) <= 1.1 * static_cast<double>(plan.arena_bound_bytes),
      plan.arena_bytes << " bytes, but " << plan.arena_bound_bytes << " are alive");
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a layer of a full pass is so many dispatches and barriers") {
    CHECK(forward_counts("bert-base", "encoder.1.", {2, 20}) == LayerCounts{7, 7});
    CHECK(forward_counts("vit-base", "encoder.1.", {2, 0, 0, 32, 32}) == LayerCounts{7, 7});
    CHECK(forward_counts("gpt2-base", "decoder.1.", {2, 20}) == LayerCounts{7, 7});
    CHECK(forward_counts("llama-gqa", "decoder.1.", {2, 20}) == LayerCounts{8, 8});
    CHECK(forward_counts("t5-gated", "encoder.1.", {2, 20, 10}) == LayerCounts{7, 7});
  }

  TEST_CASE("a layer of a decoding step is so many dispatches and barriers") {
    const auto counts = [](const char* name) {
      return step_counts(name, "decoder.1.", DeviceClass::kSoftware);
    };
    CHECK(counts("llama-gqa") == LayerCounts{8, 8});
    CHECK(counts("gpt2-base") == LayerCounts{8, 8});
    // Its two branches need no barrier between them.
    CHECK(counts("gptneox-parallel") == LayerCounts{8, 7});
    CHECK(counts("t5-gated") == LayerCounts{12, 12});
    CHECK(counts("t5-relu") == LayerCounts{12, 12});
    CHECK(counts("bart-base") == LayerCounts{12, 12});
  }

  TEST_CASE("what a text begins with is one dispatch, norm and all") {
    const auto first_two = [](const Plan& plan) {
      return std::string(plan.dispatches[0].op) + ", " + plan.dispatches[1].op;
    };
    for (const char* name : {"bert-base", "distilbert-base", "electra-base", "longformer-bare",
                             "albert-base", "nystromformer-short"}) {
      CAPTURE(name);
      CHECK(first_two(plan_of(golden_graphs(name).forward({2, 20}))) == "embedding, matmul");
    }
    const StepShape step{.batch = 2, .beams = 2, .source = 16, .capacity = 32, .prompt = 4};
    CHECK(first_two(plan_of(golden_graphs("bart-base").step(step))) == "embedding, matmul");
  }

  TEST_CASE("on a GPU the norms of a step are part of the products behind them") {
    const auto counts = [](const char* name) {
      return step_counts(name, "decoder.1.", DeviceClass::kDiscrete);
    };
    CHECK(counts("llama-gqa") == LayerCounts{6, 6});
    CHECK(counts("gpt2-base") == LayerCounts{6, 6});
    CHECK(counts("gptneox-parallel") == LayerCounts{6, 6});
    CHECK(counts("t5-gated") == LayerCounts{9, 9});
    CHECK(counts("t5-relu") == LayerCounts{9, 9});
    CHECK(counts("bart-base") == LayerCounts{12, 12});  // after residual sums
  }

  TEST_CASE("the arena of a model's pass takes a tenth more than is alive at one time at most") {
    size_t models = 0;
    for (const GoldenCase& golden : golden_cases_with("model/config.json")) {
      const GoldenGraphs model = golden_graphs(golden.name);
      const ModelFacts& facts = model.family->facts();
      if (facts.source == SourceKind::kArrays) continue;  // shaped by their own inputs
      ForwardShape shape{8, std::min<int64_t>(48, facts.max_source), 0, facts.grid.height,
                         facts.grid.width};
      if (facts.kind == ModelKind::kEncoderDecoder) {
        shape.target = std::min<int64_t>(24, facts.max_target);
      }
      Graph graph;
      ModelBuilder builder(graph, model.weights);
      if (!model.family->build_forward(builder, shape, {})) continue;  // sizes that it refuses
      check_arena(plan_of(graph), golden.name + " forward");
      ++models;
      StepShape step{.batch = 8, .beams = 4, .source = shape.source, .capacity = 32, .prompt = 8};
      step.height = shape.height;
      step.width = shape.width;
      Graph prompt, next;
      ModelBuilder prompt_builder(prompt, model.weights), next_builder(next, model.weights);
      if (!model.family->build_prompt(prompt_builder, step)) continue;  // does not generate
      check_arena(plan_of(prompt), golden.name + " prompt");
      if (!model.family->build_step(next_builder, step)) continue;  // has no language head
      check_arena(plan_of(next), golden.name + " step");
    }
    CHECK(models > 90);
  }

  TEST_CASE("twice the tokens take twice the arena, and no more") {
    for (const char* name : {"bert-base", "roberta-base", "modernbert-base", "gpt2-base",
                             "llama-gqa", "t5-gated", "bart-base", "longformer-bare"}) {
      const GoldenGraphs model = golden_graphs(name);
      const bool both = model.family->facts().kind == ModelKind::kEncoderDecoder;
      const auto arena = [&](int64_t tokens) {
        const Plan plan = plan_of(model.forward({1, tokens, both ? tokens : 0}));
        return static_cast<double>(plan.arena_bytes);
      };
      CAPTURE(name);
      CHECK(arena(8192) <= 2.05 * arena(4096));
    }
  }

  TEST_CASE("no tensor of a file is stored twice, tied heads neither") {
    for (const GoldenCase& golden : golden_cases_with("model/config.json")) {
      const GoldenGraphs model = golden_graphs(golden.name);
      std::set<std::tuple<std::string, int64_t, int64_t>> stored;
      for (const PackedWeight& weight : model.weights) {
        if (weight.first_column > 0) continue;  // the same row's next slice
        if (weight.row.make) continue;          // computed, perhaps of a part of its sources
        // A row of gains may have those that all heads share once for each head.
        const std::set<std::string> sources(weight.row.sources.begin(), weight.row.sources.end());
        const bool gains = weight.row.layout == WeightLayout::kTable;
        CHECK_MESSAGE((gains || sources.size() == weight.row.sources.size()), weight.row.name);
        // Rows of parts have other inputs of one tensor.
        const int64_t input = weight.row.part ? weight.row.part->first_input : 0;
        for (const std::string& source : sources) {
          CHECK_MESSAGE(stored.insert({source, weight.row.first_row, input}).second,
                        golden.name << ": " << source << " again as " << weight.row.name);
        }
      }
    }
  }
}

}  // namespace vkformer::testing
