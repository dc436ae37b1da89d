// The inputs of a pass, checked and turned into the words that graphs are fed with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/model.h"
#include "session/token_rows.h"

namespace vkformer {

// Words by the name of a feed (ModelFamily::build_forward lists them).
using FeedWords = std::map<std::string, std::vector<uint32_t>>;

struct ForwardInputs {
  ForwardShape shape;
  FeedWords words;
  // Which optional feeds the graph shall have.
  ForwardTaps::Tap decoder_mask = ForwardTaps::Tap::kOff;
  ForwardTaps::Tap positions = ForwardTaps::Tap::kOff;
};

// What the model's encoder, or a model that is one stack, reads: input_ids, attention_mask,
// token_type_ids, position_ids (B,S); pixel_values (B,C,H,W); input_features (B,mel,frames).
// Tensors of other names are not looked at.
Result<ForwardInputs> read_source(const ModelFacts& facts, const TensorMap& inputs);
// The same and, where given, what the decoder reads: decoder_input_ids, decoder_attention_mask.
Result<ForwardInputs> read_forward_inputs(const ModelFacts& facts, const TensorMap& inputs);

// The words of token rows: `prefix`input_ids, `prefix`key_mask, and the positions and key_positions
// that follow from them.
FeedWords token_words(const TokenRows& rows, const TokenFacts& facts, const std::string& prefix);

}  // namespace vkformer
