// The tokenizer of a GGUF file as the content of a tokenizer.json and a tokenizer_config.json.
//
// Kinds (tokenizer.ggml.model) are gpt2, llama, bert and t5. gpt2 is byte-level BPE whose way of
// cutting words has a name (tokenizer.ggml.pre). llama is BPE of SentencePiece, bert is WordPiece
// and t5 is Unigram.
//
// Threading: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/gguf.h"

namespace vkformer {

// An error names the key and its value; a kind or a way of cutting words that vkformer does not
// know is kUnsupported.
Result<std::string> gguf_tokenizer_json(const GgufFile& file);
// Special tokens by their roles, and chat templates.
Result<std::string> gguf_tokenizer_config(const GgufFile& file);

// The name in files of the way that a tokenizer.json of byte-level BPE cuts words; "" where none of
// the known ways is the same.
std::string gguf_word_cut(const nlohmann::json& tokenizer);
// The steps in a Sequence, whose list has the name `key`, or a step alone, or none. They are given
// as a list, without what only offsets depend on.
nlohmann::json gguf_steps(const nlohmann::json& step, const char* key);

}  // namespace vkformer
