// Short forms for the tests of picture families.
#pragma once

#include "model/encoder_cases.h"

namespace vkformer::testing {

// The pass over pictures of that shape with everything handed out.
inline Graph picture_graph(const GoldenGraphs& model, const ForwardShape& shape) {
  ForwardTaps taps;
  taps.attentions = taps.hidden_states = ForwardTaps::Tap::kOn;
  return model.forward(shape, taps);
}

// The shape of an external tensor of a graph; empty where it has none of that name.
inline Shape external_shape(const Graph& graph, const std::string& name) {
  const TensorId id = graph.find_external(name);
  return id == kNoTensor ? Shape{} : graph.tensor(id).shape;
}

// A pass over such pictures is refused, with these parts in the message.
inline void check_pass_refused(const GoldenGraphs& model, const ForwardShape& shape,
                               const ForwardTaps& taps, const std::vector<std::string>& parts) {
  Graph graph;
  ModelBuilder builder(graph, model.weights);
  const Status built = model.family->build_forward(builder, shape, taps);
  REQUIRE_FALSE(built.ok());
  CAPTURE(built.error().message);
  for (const std::string& part : parts) CHECK(test::contains(built.error().message, part));
}

}  // namespace vkformer::testing
