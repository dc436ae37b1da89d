// Embedder: texts to vectors.
//
// Threading and lifetime: as all tasks (tasks.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "vkformer/tasks.h"

namespace vkformer {

// How states become one vector.
enum class Pooling : uint8_t {
  kModel,  // as sentence-transformers' files beside the model say; without them, kMean
  kMean,   // the mean over a text's tokens
  kFirst,  // the first token's state
  kLast,   // the last token's state
};

// What a vector's values are.
enum class VectorValues : uint8_t {
  kFloat,  // F32
  kInt8,   // I8: rounded multiples of a vector's largest magnitude / 127, which cosines do not need
  kBinary,  // U8: 1 where a value is above 0; eight values a byte, the first in its highest bit
};

struct EmbedOptions {
  Pooling pooling = Pooling::kModel;
  // kUnit divides a vector by its length; kModel does so where the model's files say so.
  enum class Length : uint8_t { kModel, kUnit } length = Length::kModel;
  // What stands before every text: this one, the one of that name in
  // config_sentence_transformers.json, or that file's default prompt. "" is none.
  std::optional<std::string> prompt = std::nullopt;
  std::optional<std::string> prompt_name = std::nullopt;  // not with `prompt`
  // How many of the first values of each vector to take, for models trained to be cut so (Kusupati
  // et al. 2022, "Matryoshka Representation Learning"); 0: all. What is left has length 1 again
  // where the model's vectors have, and with kUnit.
  int dimensions = 0;
  VectorValues values = VectorValues::kFloat;
};

// Texts to vectors, with any model that reads tokens.
class VKFORMER_API Embedder : public Task {
 public:
  using Task::Task;
  static Result<Embedder> load(const Device& device, const ModelSource& source,
                               const TaskOptions& options = {});
  // One vector per text: (B,D); of kBinary (B,D/8), where D must be a multiple of 8.
  Result<Tensor> embed(std::span<const std::string> texts, const EmbedOptions& options = {});
};

}  // namespace vkformer
