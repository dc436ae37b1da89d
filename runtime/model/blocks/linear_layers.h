// Families whose attention is linear in the number of tokens and whose files have one layout:
// Linformer, Performer and the linear Transformer. Their layers, embedding, names and switches are
// the same; what attention does is said by LinearMixing.
//
// Causal models generate by recurrence: what others cache for every position is one state per head
// and row (ops/linear_attention.h), whatever the length. A Performer with kernel_eps above 0 is the
// one that no recurrence reproduces beyond its first layer. Its c is taken over the whole row. So
// every new token may change the states of the ones before it, by about kernel_eps. Tokens are then
// computed once, with the c of their time.
#pragma once

#include "model/blocks/heads.h"
#include "model/blocks/text_embedding.h"
#include "ops/linear_attention.h"

namespace vkformer {

// What self-attention is.
struct LinearMixing {
  enum class Kind : uint8_t { kFeatures, kProjected } kind = Kind::kFeatures;
  // Of kFeatures.
  LinearFeatureAttrs features;
  int64_t omega_rows = 0;  // m of favor
  // Of kProjected: whose matrices a layer uses, and their sizes.
  enum class Sharing : uint8_t { kNone, kHeadwise, kKeyValue, kLayerwise } sharing = Sharing::kNone;
  int64_t projected = 0;  // P
  int64_t reach = 0;      // N, read from the file
};

struct LinearModelConfig {
  TextEmbedding embedding;
  StackConfig stack;  // its order, norms, sizes and whether it is causal
  LinearMixing mixing;
  std::string head;  // weight row of the output projection; empty: a bare stack
};

// Facts and configuration of all three, but for `mixing`.
struct LinearModelRead {
  ModelFacts facts;
  LinearModelConfig block;
  GenerationFacts tokens;
};
Result<LinearModelRead> read_linear_model(const ModelFiles& files, const std::string& family);

// The family that these configurations describe.
std::unique_ptr<ModelFamily> make_linear_model(LinearModelRead read);

}  // namespace vkformer
