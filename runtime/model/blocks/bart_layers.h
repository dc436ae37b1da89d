// The weight names and configuration keys that BART (Lewis et al., 2019) shares with Marian,
// M2M-100, PEGASUS, Blenderbot and Whisper.
#pragma once

#include "model/blocks/encoder_decoder.h"

namespace vkformer {

// Whether k_proj has a bias (Whisper's has none).
enum class KeyBias : uint8_t { kNo, kYes };

// Rows of every layer of a stack whose layers are "<from>.<i>", and its cross-attention's if it has
// one.
void add_bart_layers(WeightTable& table, const StackConfig& stack, const std::string& from,
                     KeyBias key_bias = KeyBias::kYes);

// What a stack of tokens has around its layers.
struct BartSurroundings {
  enum class EmbeddingNorm : uint8_t { kNo, kYes } embedding_norm = EmbeddingNorm::kYes;
  // kLearned, or the sinusoids of Vaswani et al., 2017; kFairseq: those of fairseq, for positions
  // that are counted from the ids, past the padding.
  enum class Positions : uint8_t {
    kLearned,
    kSinusoidal,
    kFairseq
  } positions = Positions::kLearned;
  int64_t position_offset = 0;  // rows of the table before position 0
};
// Names the rows that the stack's embedding reads, "<stack.rows>.positions" and ".embed_norm".
void set_bart_embedding(const BartSurroundings& around, const StackConfig& stack,
                        TextEmbedding& embedding);
// Rows of a stack whose tensors' names begin with `from` ("model.encoder"): of its layers, its
// `positions` positions and its norms. Sinusoids are computed where the file has none.
Status add_bart_stack(const Checkpoint& checkpoint, const StackConfig& stack,
                      const BartSurroundings& around, const std::string& from, int64_t positions,
                      WeightTable& table);
// The sinusoids (rows, D) of Vaswani et al., 2017: sines in the first half of a row, cosines in the
// second.
Result<WeightRow> sinusoidal_row(const std::string& name, int64_t rows, int64_t width);
// fairseq's sinusoids (rows, D), that of padding zero: row p is position p, from pad + 1 on those
// of tokens.
Result<WeightRow> fairseq_positions(const std::string& name, int64_t rows, int64_t width,
                                    int64_t pad);

// What stands in for a key that is missing.
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
// Reads the sizes of one stack, "encoder" or "decoder", whose width is set.
Status read_bart_stack(const JsonConfig& config, const BartDefaults& defaults,
                       const std::string& which, StackConfig& stack);
// Reads the sizes that all of these families spell alike (d_model, encoder_layers,
// decoder_attention_heads, ...) into `facts` and both stacks of `block`.
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
