// The layer of Perceiver models: attention of a few queries to an input or to themselves, and a
// feed-forward layer. The widths of queries, inputs, scores and values all may differ.
//
//   y = [x +] out(attention(norm x, norm inputs)), z = y + down(act(up(norm y)))
//
// Weight rows under its prefix: norm, kv_norm, q, k, v, out, ffn.norm, ffn.up, ffn.down.
#pragma once

#include "model/model.h"
#include "ops/activation.h"
#include "ops/score_terms.h"

namespace vkformer {

struct LatentLayer {
  std::string rows;   // prefix of its weight rows
  std::string from;   // prefix of its tensors in the file
  int64_t width = 0;  // D, of queries
  int64_t input = 0;  // width of the inputs; 0: it attends to itself
  int64_t qk = 0;     // H * E
  int64_t v = 0;      // H * Ev
  int64_t heads = 1;  // H
  int64_t ffn = 0;    // F
  enum class Residual : uint8_t { kNo, kYes } residual = Residual::kYes;  // of the queries
  ActivationKind activation = ActivationKind::kGelu;

  int64_t source() const { return input > 0 ? input : width; }
};

// Why its widths and heads do not fit, or success; `where` names the file of the configuration.
Status check_latent_layer(const LatentLayer& layer, const std::string& where);

void add_latent_layer_rows(const LatentLayer& layer, WeightTable& table);

// What one layer runs over.
struct LatentRun {
  int64_t batch = 0;            // B
  int64_t queries = 0;          // T
  int64_t keys = 0;             // S
  TensorId inputs = kNoTensor;  // (B, S, any), or none: the queries themselves
  TensorId mask = kNoTensor;    // key mask (words), U32, or none
  std::string map;              // of the attention map that is handed out; empty: none
  ForwardTaps taps = {};
};

// x (B, T, D), or (T, D) where all items have the same queries -> (B, T, D).
Result<TensorId> add_latent_layer(ModelBuilder& builder, const LatentLayer& layer,
                                  const LatentRun& run, TensorId x);

}  // namespace vkformer
