// A layer of a Conformer (Gulati et al., 2020): half a feed-forward layer, attention, a convolution
// along time, half a feed-forward layer, and a norm.
#pragma once

#include <array>
#include <string>

#include "checkpoint/checkpoint.h"
#include "model/model.h"

namespace vkformer {

// Modules of a layer in a file, after what the names of all its tensors begin with.
struct ConformerNames {
  std::array<std::string, 2> ffn_norm, ffn_up, ffn_down;
  std::string attention_norm;
  std::string q, k, v, out;
  std::string u, v_bias, positions;  // of relative positions: tensors (H, E) and a module
  std::string conv_norm;
  std::string gate;  // pointwise, of values and then their gates
  std::string depthwise, batch_norm;
  std::string conv_out;  // pointwise
  std::string norm;
};

struct ConformerLayer {
  int64_t width = 0, heads = 0, ffn = 0;
  int64_t kernel = 0;  // of the depthwise convolution, odd
  ActivationKind activation = ActivationKind::kSilu;
  enum class Positions : uint8_t { kNone, kRelative, kRotary } positions = Positions::kRelative;
  double base = 10000.0;  // of rotary positions
  ConformerNames names;
  // Whether linear layers have biases, and whether convolutions have.
  enum class Biases : uint8_t { kNo, kYes } linear = Biases::kYes, conv = Biases::kNo;
};

struct ConformerPass {
  ModelBuilder& b;
  int64_t batch, frames;
  TensorId mask;  // key mask (words), where any frame is masked
  ForwardTaps taps;
};

// Rows of layer number `layer`, whose tensors' names begin with `from`; table.ignored does not
// change.
Status add_conformer_rows(const Checkpoint& checkpoint, const ConformerLayer& config, int64_t layer,
                          const std::string& from, WeightTable& table);

// x (B, T, D) -> (B, T, D).
Result<TensorId> add_conformer_layer(const ConformerPass& pass, const ConformerLayer& config,
                                     int64_t layer, TensorId x);

}  // namespace vkformer
