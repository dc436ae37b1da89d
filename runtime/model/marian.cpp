// Marian (Junczys-Dowmunt et al., 2018) as Hugging Face's MarianMTModel saves it. It is a post-norm
// encoder-decoder with sinusoidal positions and, usually, one embedding for source, target and
// head.
#include "base/message.h"
#include "model/blocks/bart_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class Marian : public EncoderDecoderFamily {
 public:
  using EncoderDecoderFamily::EncoderDecoderFamily;
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 private:
  BartEmbeddings embeddings_;
};

Status Marian::prepare(const Checkpoint& checkpoint) {
  embeddings_ = find_bart_embeddings(checkpoint, "model.", block());
  return {};
}

Result<WeightTable> Marian::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_bart_embeddings(checkpoint, embeddings_, facts(), block(), table);
  add_bart_layers(table, block().encoder, "model.encoder.layers");
  add_bart_layers(table, block().decoder, "model.decoder.layers");
  VKF_ASSIGN(WeightRow positions, sinusoidal_row("positions", facts().max_source, facts().width));
  table.rows.push_back(std::move(positions));
  ignore_bart_copies("model.", table);
  // Position tables that older versions of the library saved.
  table.ignored.push_back("model.*.embed_positions.weight");
  return table;
}

Status refuse_marian_variants(const JsonConfig& config) {
  for (const char* key : {"normalize_before", "normalize_embedding", "add_final_layer_norm"}) {
    VKF_ASSIGN(bool set, config.get_bool_or(key, false));
    if (set) {
      return unsupported(message(
          {"[", key, "] is true in ", config.where(), "; this Marian variant is not supported"}));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_marian(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_CHECK(refuse_marian_variants(config));
  ModelFacts facts{.family = "marian", .head = HeadKind::kLanguage};
  EncoderDecoderConfig block{.head = "head"};
  VKF_ASSIGN(facts.architecture, get_architecture(config, "MarianMTModel"));
  VKF_CHECK(read_bart_sizes(config, {}, facts, block));
  VKF_ASSIGN(facts.target_vocab,
             get_size_or(config, "decoder_vocab_size", facts.source_vocab, kMostVocabulary));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_position_embeddings", 1024, kMostPositions));
  facts.max_target = facts.max_source;
  block.source.positions = block.target.positions = "positions";
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(
      new Marian(std::move(facts), std::move(tokens), std::move(block)));
}

}  // namespace vkformer
