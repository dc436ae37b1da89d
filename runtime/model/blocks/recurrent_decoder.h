// A recurrent decoder of one layer with its alignment, for full passes, a generation's prompt and
// its steps.
//
//   bahdanau:      c = align(s before), s = cell([e; c], s before), logits = out([s; c; e])
//   luong kinds:   s = cell(e or [e; h~ before], s before), c = align(s), h~ = tanh(W_c [c; s]),
//                  logits = out(h~)
//   none:          s = cell(e, s before), logits = out(s)
//
// e is the embedding of the target token before. Weight rows: decoder.input (G Hd, in) and
// decoder.state (G Hd, Hd) with biases, attention.out (Hd, C + Hd), head (V, any). alignment.h has
// the others.
#pragma once

#include "model/blocks/alignment.h"
#include "ops/move_columns.h"
#include "ops/recurrent_cell.h"

namespace vkformer {

struct RecurrentDecoder {
  CellKind cell = CellKind::kGru;
  enum class Feeding : uint8_t { kNo, kYes } feeding = Feeding::kNo;  // of h~, to the next step
  AlignmentConfig alignment;
  int64_t embedding = 0;  // E

  int64_t width() const { return alignment.decoder_width; }
  int64_t state_width() const { return width() * states_of(cell); }
  bool aligned() const { return alignment.kind != AlignmentConfig::Kind::kNone; }
  bool early() const { return alignment.kind == AlignmentConfig::Kind::kBahdanau; }
  bool feeds() const { return aligned() && !early() && feeding == Feeding::kYes; }
  // Columns of a generation's state: [s | cell of an LSTM | h~ that is fed].
  int64_t line_width() const { return state_width() + (feeds() ? width() : 0); }
};

// What a pass over target tokens starts from.
struct DecoderStart {
  TensorId embedded = kNoTensor;  // e (B, T, E)
  TensorId state = kNoTensor;     // (B, state_width); its memory is written over
  AlignmentMemory memory;
};

struct DecoderStates {
  TensorId last = kNoTensor;      // last_hidden_state (B, T, Hd): s of bahdanau and none, else h~
  TensorId features = kNoTensor;  // (B, T, any), what the head reads
  TensorId weights = kNoTensor;   // (B, 1, T, S), where asked for
  TensorId state = kNoTensor;     // (B, state_width) after the last token
  TensorId fed = kNoTensor;       // h~ (B, Hd) of the last token, where it is fed
};

// Which map of the alignment a pass gives.
enum class AlignmentMap : uint8_t { kNone, kWeights, kScores };

Result<DecoderStates> add_recurrent_decoder(ModelBuilder& builder, const RecurrentDecoder& config,
                                            const DecoderStart& start, AlignmentMap map);

// One decoding step: e (slots, E), the memory and the cache of states (R, 2, line_width) -> `last`
// (slots, Hd) and `features` (slots, any).
struct DecoderStep {
  TensorId embedded = kNoTensor;
  AlignmentMemory memory;
  StateCache cache;
};
Result<DecoderStates> add_recurrent_step(ModelBuilder& builder, const RecurrentDecoder& config,
                                         const DecoderStep& step);

}  // namespace vkformer
