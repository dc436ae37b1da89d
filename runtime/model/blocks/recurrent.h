// Recurrent encoders and what they share with their decoders. They are GRU or LSTM layers in one or
// both directions over the real tokens of every row, wherever padding is.
//
// The host lists where real tokens are (add_token_order). Rows of tokens are gathered to the front
// in reading order and in reverse, run, and put back. So no kernel knows of masks, and padding
// costs nothing but its time.
//
// Weight rows by layer i and direction (forward, backward): encoder.i.<direction>.input (G Hd, in)
// and encoder.i.<direction>.state (G Hd, Hd). Both have biases.
#pragma once

#include "model/model.h"
#include "ops/recurrent_cell.h"

namespace vkformer {

struct RecurrentEncoder {
  CellKind cell = CellKind::kGru;
  enum class Directions : uint8_t { kForward, kBoth } directions = Directions::kBoth;
  int64_t layers = 1;
  int64_t width = 0;  // He of each direction

  int64_t sides() const { return directions == Directions::kBoth ? 2 : 1; }
  int64_t output() const { return sides() * width; }  // C
};

// Where the weights of a cell are, by torch's names. "<from>.weight_ih<suffix>" (G Hd, input) with
// bias_ih becomes the rows "<to>.input", weight_hh (G Hd, width) with bias_hh "<to>.state".
struct CellRows {
  std::string to;      // "encoder.0.forward"
  std::string from;    // "encoder"
  std::string suffix;  // "_l0_reverse"
  int64_t input = 0;   // features
  int64_t width = 0;   // Hd
};
void add_cell_rows(WeightTable& table, CellKind cell, const CellRows& rows);
// The rows of all layers and directions, from the module `from`, whose first layer reads `input`
// features.
void add_encoder_cells(WeightTable& table, const RecurrentEncoder& config, const std::string& from,
                       int64_t input);

struct RecurrentMemory {
  TensorId states = kNoTensor;    // (B, S, C), zeros at padding
  TensorId forward = kNoTensor;   // (B, He): the last layer's state after the last real token
  TensorId backward = kNoTensor;  // (B, He): the same in reverse, after the first; or none
};

// Adds to the words of a pass over (B, S) tokens, by their key mask, what add_recurrent_encoder
// feeds. order_forward and order_backward (B, S) are the rows of real tokens, in order and in
// reverse. place_forward and place_backward (B, S) are the way back. The last one is order_last
// (B).
void add_token_order(ForwardInputs& inputs);

// x (B, S, E) -> the memory. hidden_states taps are the inputs of the layers.
Result<RecurrentMemory> add_recurrent_encoder(ModelBuilder& builder, const RecurrentEncoder& config,
                                              const ForwardTaps& taps, TensorId x);

}  // namespace vkformer
