// DistilBERT (Sanh et al., 2019): BERT without token types and pooler, with its own heads.
#include "model/blocks/bert_layers.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

constexpr BertDefaults kDistilBertDefaults{.layers = 6,
                                           .types = 0,
                                           .width_key = "dim",
                                           .layers_key = "n_layers",
                                           .heads_key = "n_heads",
                                           .ffn_key = "hidden_dim",
                                           .activation_key = "activation"};
// No key sets it.
constexpr float kDistilBertEpsilon = 1e-12f;

BertNames distilbert_names(int64_t layers) {
  BertNames names{.prefix = "distilbert.", .types = ""};
  names.layer = {.query = "attention.q_lin",
                 .key = "attention.k_lin",
                 .value = "attention.v_lin",
                 .out = "attention.out_lin",
                 .out_norm = "sa_layer_norm",
                 .up = "ffn.lin1",
                 .down = "ffn.lin2",
                 .down_norm = "output_layer_norm"};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("transformer.layer." + std::to_string(i));
  }
  names.decoder = "vocab_projector";
  names.decoder_biases = {"vocab_projector.bias"};
  names.ignored = {"vocab_*", "pre_classifier.*", "classifier.*", "qa_outputs.*"};
  return names;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_distilbert(const ModelFiles& files) {
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, kDistilBertDefaults, "DistilBertModel"));
  bert.block.stack.epsilon = kDistilBertEpsilon;
  bert.names = distilbert_names(bert.block.stack.layers);
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, "vocab_transform", bert.block.stack.activation, "vocab_layer_norm");
      break;
    case HeadKind::kSequence:
      add_sequence_head(bert, "pre_classifier", ActivationKind::kRelu, "classifier");
      break;
    default:
      add_shared_head(bert);
  }
  return make_bert(std::move(bert));
}

}  // namespace vkformer
