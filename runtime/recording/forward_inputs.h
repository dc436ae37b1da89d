// The inputs of a pass, checked and turned into the words that graphs are fed with.
#pragma once

#include <string>

#include "model/model.h"
#include "recording/token_rows.h"
#include "vkformer/session.h"

namespace vkformer {

// What tensors are given for: one pass, or a generation, which makes its own positions and target.
enum class InputUse : uint8_t { kPass, kGeneration };
// An error for a tensor whose name the model does not take; it names the nearest one.
Status check_input_names(const ModelFamily& family, const TensorMap& inputs, InputUse use);

// What the model's encoder, or a model that is one stack, reads. These are input_ids,
// attention_mask, token_type_ids, position_ids (B,S); pixel_values (B,C,H,W); input_features
// (B,mel,frames). If the family reads its own arrays, there is nothing: callers ask
// ModelFamily::read_inputs next. Tensors of other names are not looked at: check_input_names comes
// first.
Result<ForwardInputs> read_source(
    const ModelFacts& facts, const TensorMap& inputs,
    RunOptions::LongInputs long_inputs = RunOptions::LongInputs::kRefuse);
// The same, what the family reads itself and, where given, what the decoder reads:
// decoder_input_ids, decoder_attention_mask (ModelFacts::target_names).
Result<ForwardInputs> read_forward_inputs(
    const ModelFamily& family, const TensorMap& inputs,
    RunOptions::LongInputs long_inputs = RunOptions::LongInputs::kRefuse);

// Token types of a generation, which has none: zeros, as tokenizers give them, are as good as no
// token_type_ids at all.
Status check_zero_types(const TensorMap& inputs, const TokenRows& rows);

// The words of token rows: `prefix`input_ids, `prefix`key_mask, and the positions, key_positions
// and kept_rows that follow from them.
FeedWords token_words(const TokenRows& rows, const TokenFacts& facts, const std::string& prefix);

}  // namespace vkformer
