// What families that are a DeBERTa v2 or v3 with another head share with it.
#pragma once

#include "model/blocks/bert_layers.h"
#include "model/blocks/disentangled_attention.h"

namespace vkformer {

// The encoder without a head. `bert` has no form yet: DisentangledForm, or what derives from it.
struct DebertaConfig {
  BertConfig bert;
  DisentangledConfig form;
};

// Reads a config.json with the model_type "deberta-v2"; refuses what the block does not do.
Result<DebertaConfig> read_deberta_v2(const ModelFiles& files);

}  // namespace vkformer
