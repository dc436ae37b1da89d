// The encoder of DINOv2 (Oquab et al., 2023) and of its form with registers (Darcet et al., 2023).
// It runs by itself or inside a model that reads its states.
#pragma once

#include "model/blocks/picture_layers.h"
#include "model/blocks/picture_tokens.h"

namespace vkformer {

struct Dinov2Encoder {
  PictureEmbedding embedding;  // class_tokens: the class and the registers
  StackConfig stack;
  ProjectionBias bias = ProjectionBias::kYes;
  PositionFilter filter = PositionFilter::kBicubic;
  PictureTokens tokens;  // once prepared

  int64_t registers() const { return embedding.class_tokens - 1; }

  // Reads tokens and positions, of tensors whose names begin with `prefix`.
  Status prepare(const Checkpoint& checkpoint, const std::string& prefix);
  // Rows of patches, layers and the last norm, "<stack.rows>.norm".
  void add_rows(const std::string& prefix, WeightTable& table) const;
};

// What a configuration describes, where pictures have patches of `patch` pixels unless it says so.
Result<Dinov2Encoder> read_dinov2_encoder(const JsonConfig& config, int64_t patch,
                                          int64_t registers);

}  // namespace vkformer
