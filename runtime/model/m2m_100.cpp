// M2M-100 (Fan et al., 2020) and NLLB: a pre-norm encoder-decoder with sinusoidal positions that
// are counted from the ids, past the padding. The target's language is forced as the first token.
#include "base/message.h"
#include "model/blocks/bart_layers.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class M2m100 : public EncoderDecoderFamily {
 public:
  using EncoderDecoderFamily::EncoderDecoderFamily;
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 private:
  std::string prefix_;
  BartEmbeddings embeddings_;
};

Status M2m100::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "model.", "encoder.layers.0.fc1.weight");
  embeddings_ = find_bart_embeddings(checkpoint, prefix_, block());
  return {};
}

Result<WeightTable> M2m100::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_bart_embeddings(checkpoint, embeddings_, facts(), block(), table);
  for (const StackConfig* stack : {&block().encoder, &block().decoder}) {
    const std::string from = prefix_ + stack->rows;
    add_bart_layers(table, *stack, from + ".layers");
    table.rows.push_back(norm_row(stack->rows + ".norm", from + ".layer_norm", facts().width));
  }
  VKF_ASSIGN(WeightRow positions,
             fairseq_positions("positions", facts().max_source + block().source.position_offset,
                               facts().width, facts().source_tokens.pad));
  table.rows.push_back(std::move(positions));
  ignore_bart_copies(prefix_, table);
  // Position tables that older versions of the library saved.
  table.ignored.push_back(prefix_ + "*.embed_positions.weight*");
  return table;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_m2m_100(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "m2m_100"};
  EncoderDecoderConfig block;
  VKF_ASSIGN(facts.architecture, get_architecture(config, "M2M100ForConditionalGeneration"));
  VKF_ASSIGN(facts.head, read_seq2seq_head(config, facts.architecture));
  if (facts.head != HeadKind::kNone) block.head = "head";
  VKF_CHECK(read_bart_sizes(
      config,
      {.activation = "relu", .width = 1024, .vocab = 128112, .scaled = BartDefaults::Scaled::kYes},
      facts, block));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_position_embeddings", 1024, kMostPositions));
  facts.max_target = facts.max_source;
  VKF_ASSIGN(int64_t pad, config.get_int_or("pad_token_id", 1));
  if (pad < 0 || pad >= facts.source_vocab) {
    return invalid_file(
        message({"[pad_token_id] in ", config.where(), " is ", pad,
                 ", but positions are counted from it, so that it must be a token: 0 to ",
                 facts.source_vocab - 1}));
  }
  facts.source_tokens = {.positions = TokenFacts::Positions::kFromIds, .pad = pad};
  facts.target_tokens = facts.source_tokens;
  for (StackConfig* stack : {&block.encoder, &block.decoder}) {
    stack->order = StackConfig::Order::kPre;
    stack->final_norm = StackConfig::FinalNorm::kYes;
  }
  for (TextEmbedding* embedding : {&block.source, &block.target}) {
    embedding->positions = "positions";
    embedding->position_offset = pad + 1;
    embedding->tokens = facts.source_tokens;
  }
  VKF_ASSIGN(GenerationFacts tokens,
             read_seq2seq_generation(files, {.pad = 1, .eos = 2, .decoder_start = 2}));
  return std::unique_ptr<ModelFamily>(
      new M2m100(std::move(facts), std::move(tokens), std::move(block)));
}

}  // namespace vkformer
