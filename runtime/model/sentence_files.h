// What sentence-transformers' files beside a model say: how its states become one embedding.
#pragma once

#include "model/model.h"

namespace vkformer {

class Checkpoint;
struct WeightTable;

// Reads modules.json and the configurations of its modules (Pooling, Dense, Normalize) where the
// model has them; nothing is pooled without.
Result<SentenceFacts> read_sentence_files(const FileStore& files);

// Adds the tensors of the dense modules to the model's.
Status add_sentence_tensors(const FileStore& files, const SentenceFacts& sentence,
                            Checkpoint& checkpoint);
// Adds their rows: "sentence.0" and so on, by the number of the step. Names that begin with a
// module's folder are theirs alone.
void add_sentence_rows(const SentenceFacts& sentence, WeightTable& table);
// The row of step `index`.
std::string sentence_row(size_t index);

}  // namespace vkformer
