// SentencePiece's model files (Kudo and Richardson, 2018): a vocabulary of pieces with scores, how
// texts are normalized, and Unigram or BPE. The format is a protocol buffer
// (https://github.com/google/sentencepiece, sentencepiece_model.proto).
//
// Threading: pure functions.
#pragma once

#include "tokenizer_files/tokenizer_json.h"

namespace vkformer {

// The content of a tokenizer.json of the same ids. `name`: of the file, for messages. An error
// names the field and its value; a kind of model that vkformer does not compute is kUnsupported.
Result<std::string> sentence_piece_json(std::string_view bytes, const std::string& name,
                                        const TokenizerSettings& settings);

}  // namespace vkformer
