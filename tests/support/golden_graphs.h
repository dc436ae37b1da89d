// The graphs of a golden model, without a device: for the tests of planning and of model files.
#pragma once

#include <memory>
#include <vector>

#include "model/model.h"
#include "model/model_builder.h"
#include "support/golden.h"

namespace vkformer::testing {

struct GoldenGraphs {
  std::unique_ptr<ModelFamily> family;
  std::vector<PackedWeight> weights;

  Graph forward(const ForwardShape& shape, const ForwardTaps& taps = {}) const {
    Graph graph;
    ModelBuilder builder(graph, weights);
    const Status built = family->build_forward(builder, shape, taps);
    REQUIRE_MESSAGE(built.ok(), built.error().message);
    return graph;
  }
  Graph prompt(const StepShape& shape) const {
    Graph graph;
    ModelBuilder builder(graph, weights);
    const Status built = family->build_prompt(builder, shape);
    REQUIRE_MESSAGE(built.ok(), built.error().message);
    return graph;
  }
  Graph step(const StepShape& shape) const {
    Graph graph;
    ModelBuilder builder(graph, weights);
    const auto result = family->build_step(builder, shape);
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    builder.mark_output(result->logits, "logits");
    return graph;
  }
};

inline GoldenGraphs golden_graphs(const std::string& name,
                                  WeightFormat format = WeightFormat::kAsStored) {
  const std::string directory = golden_case(name).path("model");
  auto family = load_family(*make_directory_store(directory));
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  auto checkpoint = Checkpoint::open(directory);
  REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
  REQUIRE((*family)->prepare(*checkpoint).ok());
  auto table = (*family)->weight_table(*checkpoint);
  REQUIRE_MESSAGE(table.ok(), table.error().message);
  auto weights = resolve_weights(*table, *checkpoint, format);
  REQUIRE_MESSAGE(weights.ok(), weights.error().message);
  return {std::move(family).value(), std::move(weights).value()};
}

}  // namespace vkformer::testing
