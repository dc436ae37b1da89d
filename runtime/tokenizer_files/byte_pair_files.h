// Tokenizers of byte-level BPE in files other than tokenizer.json: vocab.json with merges.txt
// (GPT-2), tiktoken's lists of ranks, and Mistral's tekken.json.
//
// Threading: pure functions.
#pragma once

#include "tokenizer_files/tokenizer_json.h"

namespace vkformer {

// Each gives the content of a tokenizer.json of the same ids. An error names the file and what is
// wrong in it; a tokenizer class or pattern that vkformer does not know is kUnsupported.
Result<std::string> vocabulary_and_merges_json(const FileStore& files,
                                               const TokenizerSettings& settings);
// `name`: of the file, which says how words are cut.
Result<std::string> tiktoken_json(const FileStore& files, const std::string& name,
                                  const TokenizerSettings& settings);
Result<std::string> tekken_json(const FileStore& files, const std::string& name,
                                const TokenizerSettings& settings);

// Whether text is a list of ranks as tiktoken has it: base64, a space, a number.
bool is_tiktoken(std::string_view text);

}  // namespace vkformer
