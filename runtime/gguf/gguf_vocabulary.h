// A tokenizer as the metadata of a GGUF file: the other way round than gguf/gguf_tokenizer.h. The
// result is read back and compared, so that a tokenizer that the format cannot say is refused.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "checkpoint/file_store.h"
#include "checkpoint/gguf_writer.h"

namespace vkformer {

// What a model's configuration says of tokens.
struct GgufTokenIds {
  std::optional<int64_t> bos, pad;
  std::vector<int64_t> ends;  // that end a text, the usual one first
};

// Puts tokens, merges or scores, special tokens and chat templates of a model's files. `rows`: of
// the model's embedding, which files have a token for each. A model without a tokenizer has none in
// its file. An error names the file and what the format cannot say.
Status put_gguf_vocabulary(const FileStore& files, const std::string& architecture, int64_t rows,
                           const GgufTokenIds& ids, GgufWriter& writer);

}  // namespace vkformer
