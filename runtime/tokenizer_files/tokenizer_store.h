// A store whose tokenizer.json is made of the tokenizer files that it has in its place. They are
// SentencePiece's tokenizer.model or spiece.model, tiktoken's ranks, tekken.json, vocab.txt, or
// vocab.json with merges.txt.
//
// Threading and lifetime: as FileStore.
#pragma once

#include "checkpoint/file_store.h"

namespace vkformer {

// `files`, or a store over it where it has such a file and no tokenizer.json.
std::shared_ptr<const FileStore> with_tokenizer(std::shared_ptr<const FileStore> files);

// The names of those files, in the order in which they are looked for.
std::vector<std::string> tokenizer_file_names();

// The content of a tokenizer.json that stands for the file of that name in `files`.
Result<std::string> tokenizer_json_of(const FileStore& files, const std::string& name);

}  // namespace vkformer
