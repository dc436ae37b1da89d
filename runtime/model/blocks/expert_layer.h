// A feed-forward layer of experts (Shazeer et al., 2017, "Outrageously large neural networks"). A
// router chooses K of X small layers for every row. Some families add one that every row takes.
//
// Weight rows that it asks for, under the layer's prefix:
//   router            (X, D), in f32; with a gated shared expert (X + 1, D), its gate last
//   choice            table (1, X) of biases for the choice, with choice_bias
//   experts.up, experts.down    of all experts (WeightRow::experts)
//   shared.up, shared.down      of the shared expert, where shared_ffn > 0
// Where the stack's gate is set, an up is pairs of a column of the gate projection and one of the
// up projection.
#pragma once

#include "ops/expert_route.h"
#include "ops/experts.h"

namespace vkformer {

class ModelBuilder;
struct StackConfig;

struct ExpertSetup {
  ExpertRouteAttrs route;       // X, K, and how rows choose
  int64_t ffn = 0;              // F of one expert
  bool choice_bias = false;     // added to scores for the choice alone
  float gate_limit = 0.0f;      // ExpertsAttrs::gate_limit
  int64_t shared_ffn = 0;       // F of the shared expert; 0: none
  bool shared_gated = false;    // the shared expert's output times the sigmoid of a logit
  std::vector<uint8_t> layers;  // whether a layer has experts; empty: no layer

  bool of_layer(int64_t layer) const {
    const auto i = static_cast<size_t>(layer);
    return i < layers.size() && layers[i] != 0;
  }
};

// x (..., D) -> down.alpha times the layer + down.residual, if any (..., D). `rows` is the prefix
// of the weight rows: "decoder.3.ffn".
Result<TensorId> add_expert_layer(ModelBuilder& builder, const StackConfig& stack,
                                  const std::string& rows, TensorId x, const LinearAttrs& down);

}  // namespace vkformer
