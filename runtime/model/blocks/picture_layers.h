// What the layers of ViT, DeiT, Swin and CvT share: the names their weights have in files. The two
// that are not a plain stack also share a feed-forward layer, and attention whose map can be
// returned.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/blocks/stack.h"
#include "ops/attention.h"

namespace vkformer {

// Of queries, keys and values.
enum class ProjectionBias : uint8_t { kNo, kYes, kNotKeys };

// One layer: where its weights are and how wide they are.
struct PictureLayer {
  std::string to;          // prefix of the weight rows: self.norm, self.out, ffn.norm, ...
  std::string from;        // prefix of the tensors in the file
  std::string projection;  // module of query, key and value in the file: "attention.self"
  int64_t width = 0;       // D
  int64_t inner = 0;       // H * E
  int64_t ffn = 0;         // F
  ProjectionBias bias = ProjectionBias::kYes;
  // LayerScale's tensors in the file, after `from` and a dot, or empty.
  std::string attention_scale = {};
  std::string ffn_scale = {};
};

// Sets architecture, head and labels: the bare model, or one that classifies pictures. Errors name
// a class that is neither.
Status read_picture_head(const JsonConfig& config, const std::string& bare_class,
                         ModelFacts& facts);

// Rows self.norm, self.out, ffn.norm, ffn.up and ffn.down. Files name them as they did since the
// families came, or as version 5 of the library does.
void add_picture_layer_rows(WeightTable& table, const Checkpoint& checkpoint,
                            const PictureLayer& layer);
// Row self.qkv likewise.
void add_picture_projection_row(WeightTable& table, const Checkpoint& checkpoint,
                                const PictureLayer& layer);

// x + down(act(up(norm x))), x (B, T, D).
Result<TensorId> add_picture_feed_forward(ModelBuilder& builder, const StackConfig& stack,
                                          const std::string& rows, TensorId x);

// Attention, and its map as output <prefix>attentions.`map` where the taps ask for it; -1: no map.
Result<TensorId> add_seen_attention(ModelBuilder& builder, const AttentionInputs& inputs,
                                    const AttentionAttrs& attrs, const ForwardTaps& taps,
                                    int64_t map, const std::string& prefix = "");

}  // namespace vkformer
