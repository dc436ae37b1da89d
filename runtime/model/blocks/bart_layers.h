// The weight names and configuration keys that BART (Lewis et al., 2019) shares with Marian,
// M2M-100, PEGASUS, Blenderbot and Whisper.
#pragma once

#include "model/blocks/encoder_decoder.h"

namespace vkformer {

// Whether k_proj has a bias (Whisper's has none).
enum class KeyBias : uint8_t { kNo, kYes };

// Rows of every layer of a stack whose layers are "<from>.<i>", and its cross-attention's if it has
// one (with keys and values from an encoder as wide as the stack).
void add_bart_layers(WeightTable& table, const StackConfig& stack, const std::string& from,
                     KeyBias key_bias = KeyBias::kYes);

// Sizes that all of them spell alike: d_model, encoder_layers, decoder_attention_heads, ...; fills
// facts and both stacks, which `defaults` stand in for where a key is missing.
struct BartDefaults {
  int64_t encoder_layers = 12;
  int64_t decoder_layers = 12;
  int64_t heads = 16;
  int64_t ffn = 4096;
  const char* activation = "gelu";
  int64_t width = 0;                                               // D; 0: the key must be there
  int64_t vocab = 0;                                               // V; 0: the key must be there
  enum class Scaled : uint8_t { kNo, kYes } scaled = Scaled::kNo;  // scale_embedding
};
Status read_bart_sizes(const JsonConfig& config, const BartDefaults& defaults, ModelFacts& facts,
                       EncoderDecoderConfig& block);

// Tied embeddings are stored once: which tensors of a file are the source embedding, the target
// embedding and the head.
struct BartEmbeddings {
  std::string source;
  std::string target;
  std::string head;
};
// By presence in the file, whose names begin with `prefix` ("model." or empty). Names the rows that
// `block`'s embeddings read: "head", "decoder.embed", "encoder.embed".
BartEmbeddings find_bart_embeddings(const Checkpoint& checkpoint, const std::string& prefix,
                                    EncoderDecoderConfig& block);
// Those rows, the head's with final_logits_bias where the file has it.
void add_bart_embeddings(const Checkpoint& checkpoint, const BartEmbeddings& names,
                         const ModelFacts& facts, const EncoderDecoderConfig& block,
                         WeightTable& table);
// Tied copies that older versions of the library saved besides, for WeightTable::ignored.
void ignore_bart_copies(const std::string& prefix, WeightTable& table);

}  // namespace vkformer
