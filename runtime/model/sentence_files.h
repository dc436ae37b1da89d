// What sentence-transformers' files beside a model say: how its states become one embedding.
#pragma once

#include "model/model.h"

namespace vkformer {

// Reads modules.json and the pooling module's config.json where the model has them; nothing is
// pooled without.
Result<SentenceFacts> read_sentence_files(const FileStore& files);

}  // namespace vkformer
