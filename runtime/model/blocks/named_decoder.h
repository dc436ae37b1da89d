// What decoder-only families have in common beside their layers. It is which head a configuration
// names, the tied or separate output embedding, and the prefix of files with a head.
#pragma once

#include "model/blocks/decoder_only.h"

namespace vkformer {

// How files of a family call what is not part of a layer.
struct DecoderNames {
  std::string prefix;  // of the stack in files saved with a head: "model."
  std::string words;   // token embedding (V, D) of the stack: "embed_tokens.weight"
  std::string head;    // output embedding (V, D), without prefix: "lm_head.weight"
  // Prefixes of files of other ages, and what precedes the head in them.
  std::vector<std::string> prefixes = {};
  std::vector<std::string> head_prefixes = {};
  std::string head_bias;  // tensor of its bias (V), without prefix, or empty
  // kYes: a file without the output embedding has it in the token embedding.
  enum class Tied : uint8_t { kNo, kYes } tied = Tied::kNo;
};

// Reads the architecture, which has a language head, one that classifies texts, or none. It sets
// facts, and block.head or block.classes. It names what is not supported. `fallback` is the class
// where the configuration states none. A model that embeds sentences (facts.sentence) is read
// without its head, as sentence-transformers reads it; its file often has none.
Status read_decoder_head(const JsonConfig& config, const std::string& fallback, ModelFacts& facts,
                         DecoderConfig& block);

// A size by the family's own key, or by the one that other families have for it.
Result<int64_t> size_by_either(const JsonConfig& config, const std::string& own,
                               const std::string& other, int64_t fallback, int64_t most);

// WeightRow::row_order of a projection ((H + 2 Hkv) E, D) that a file has by group of heads that
// share keys and values. Its order is [group][queries of its heads | key | value][E]. Our order is
// q of all heads, then k, then v.
std::vector<uint32_t> grouped_qkv_order(int64_t heads, int64_t kv_heads, int64_t head_width);

// Facts that follow from the block: kind, sizes, and the same limits for source and target.
void set_decoder_facts(const DecoderConfig& block, int64_t vocabulary, int64_t most_tokens,
                       ModelFacts& facts);

// Adds the rows of the embeddings; a family adds those of its stack.
class NamedDecoder : public DecoderFamily {
 public:
  NamedDecoder(ModelFacts facts, GenerationFacts generation, DecoderConfig block,
               DecoderNames names);

  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 protected:
  // Of the stack's tensors; what the file has, once prepared.
  const std::string& prefix() const { return names_.prefix; }
  // Rows of the stack, whose tensors' names begin with `prefix`, and what to ignore.
  virtual void add_rows(const std::string& prefix, WeightTable& table) const = 0;
  // Of the classifying head, which most families call "score" and give no bias.
  virtual void add_class_rows(WeightTable& table) const;

 private:
  DecoderNames names_;
};

}  // namespace vkformer
