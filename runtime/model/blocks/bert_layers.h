// Families that are BERT (Devlin et al., 2018) under other names. Each is an encoder over words,
// learned positions or rotary ones and token types, and the heads that are put on it. A family's
// own file says how its checkpoints call things, what its configuration's defaults are and what its
// heads look like.
#pragma once

#include "model/blocks/distance_bias.h"
#include "model/blocks/encoder_only.h"

namespace vkformer {

// Modules of one layer, after the layer's path.
struct BertLayerNames {
  std::string query = "attention.self.query";
  std::string key = "attention.self.key";
  std::string value = "attention.self.value";
  std::string qkv;  // one module of all three, [q | k | v]; or empty
  std::string out = "attention.output.dense";
  std::string out_norm = "attention.output.LayerNorm";
  std::string gate;  // of the feed-forward layer: activation(gate x) * up x; or empty
  std::string up = "intermediate.dense";
  std::string down = "output.dense";
  std::string down_norm = "output.LayerNorm";
};

// How checkpoints of a family call what the block computes. What is in the base model stands after
// `prefix` in files of a model with a head; a base model saved alone lacks it.
struct BertNames {
  std::string prefix = "bert.";
  std::string older_prefix;  // what older files have in its place, or empty
  std::string words = "embeddings.word_embeddings.weight";
  std::string positions = "embeddings.position_embeddings.weight";
  std::string types = "embeddings.token_type_embeddings.weight";  // empty: no token types
  std::string embedding_norm = "embeddings.LayerNorm";            // empty: none
  std::string projection;           // from the embedding's width to D, or empty
  std::vector<std::string> layers;  // path of each layer that has weights
  std::string final_norm;           // module of a norm after the last layer, or empty
  // Tensors (E / 2) of rotary frequencies, of which the first that the file has counts. None of
  // them: theta's.
  std::vector<std::string> frequencies;
  BucketTable distances;      // biases of scores in the base model; no tensor: none
  BertLayerNames layer = {};  // after those paths
  // Whether query, key and value have biases, the projection of attention's output, the
  // feed-forward layer, and norms.
  enum class Bias : uint8_t { kNo, kYes } qkv_bias = Bias::kYes;
  Bias out_bias = Bias::kYes;
  Bias ffn_bias = Bias::kYes;
  Bias norm_bias = Bias::kYes;
  std::string pooler;                       // module in the base model, or empty
  std::string decoder;                      // output of the masked-word head; tied if absent
  std::vector<std::string> decoder_biases;  // what files call its bias; a message names the last
  std::vector<std::string> ignored;         // tensors of heads that this model may not have
};

// Configuration keys and what stands in for those that are missing.
struct BertDefaults {
  int64_t vocab = 30522;
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t ffn = 3072;
  int64_t positions = 512;
  int64_t types = 2;  // 0: the family has none
  double epsilon = 1e-12;
  const char* activation = "gelu";
  // What position_embedding_type must be where a configuration has it.
  const char* position_type = "absolute";
  const char* head_width_key = nullptr;  // of a head's width where it is not D / H
  const char* positions_key = "max_position_embeddings";
  const char* epsilon_key = "layer_norm_eps";
  const char* width_key = "hidden_size";
  const char* layers_key = "num_hidden_layers";
  const char* heads_key = "num_attention_heads";
  const char* ffn_key = "intermediate_size";
  const char* activation_key = "hidden_act";
};

// What a family's file fills in.
struct BertConfig {
  ModelFacts facts;
  EncoderConfig block;
  BertNames names;
  int64_t embedding_width = 0;       // D of words, positions and types
  std::vector<WeightRow> head_rows;  // of heads, but for pooler and decoder
};

// Reads sizes, labels and the head's kind, and refuses what the block does not do: decoders,
// relative positions, heads that it does not know.
Result<BertConfig> read_bert_config(const ModelFiles& files, const BertDefaults& defaults,
                                    const std::string& base_class);
// The same of families with another stack: the head of the class that the model was saved from.
Result<HeadKind> read_encoder_head(const JsonConfig& config, const std::string& architecture);

// Positions as RoBERTa counts them. Those of real tokens are pad_token_id + 1, + 2, ..., that of
// pad tokens is pad_token_id. The table has rows for all of them.
Status read_positions_after_pad(const JsonConfig& config, BertConfig& bert);
// Rotary positions of whole heads in every layer instead of a table; `theta` stands in for a
// missing rope_theta.
Status read_rotary_positions(const JsonConfig& config, double theta, BertConfig& bert);
// An embedding without a table of positions.
void drop_position_table(BertConfig& bert);
// Positions as RoBERTa's of families whose pad token has that id whatever the configuration says.
Status set_positions_after_pad(const JsonConfig& config, int64_t pad, BertConfig& bert);

// Heads; each adds its configuration and its rows.
// Those that all of these families call alike. Of tokens they are logits (B, S, classes) of
// `classifier`. Of spans they are start_logits and end_logits (B, S), the two rows of `qa_outputs`.
// Others: nothing.
void add_shared_head(BertConfig& bert);
// The names of BERT's own checkpoints, and its heads: masked words, classes of the pooled token,
// the shared ones otherwise.
BertNames bert_names(const std::string& prefix, int64_t layers);
void add_bert_head(BertConfig& bert);
// The heads of RoBERTa and its kin (Longformer): masked words and classes by their names, the
// shared ones otherwise.
void add_roberta_head(BertConfig& bert);
// logits (B, classes) = output(activation(dense x)) of the first token.
void add_sequence_head(BertConfig& bert, const std::string& dense, ActivationKind activation,
                       const std::string& output);
// logits (B, classes) of the pooled first token.
void add_pooled_head(BertConfig& bert, const std::string& output);
// logits (B, S, V) = decoder(norm(activation(dense x))).
void add_masked_head(BertConfig& bert, const std::string& dense, ActivationKind activation,
                     const std::string& norm);

// start_logits and end_logits (B, S): heads like `shape` but for the output, and the output's rows,
// which are the first and the second of `module`.
std::vector<HeadConfig> span_heads(const HeadConfig& shape);
std::vector<WeightRow> span_rows(const std::string& module, int64_t width);

// The row of the token embedding, and of an output layer that may be tied to it. Tied they are one
// row, "words", with the output layer's bias. `decoder` is empty where there is no such layer.
struct TiedWords {
  std::string words;                // tensor of the embedding
  std::string decoder;              // module of the output layer, or empty
  std::vector<std::string> biases;  // of the output layer, as BertNames lists them; or none
};
// The name of the output layer's row: "decoder" where the file has its own tensor, else "words".
std::string decoder_row(const Checkpoint& checkpoint, const TiedWords& names);
void add_word_rows(const Checkpoint& checkpoint, const TiedWords& names, int64_t vocab,
                   int64_t width, WeightTable& table);

std::unique_ptr<ModelFamily> make_bert(BertConfig bert);

}  // namespace vkformer
