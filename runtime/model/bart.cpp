// BART (Lewis et al., 2019), a post-norm encoder-decoder with learned positions and a norm after
// the embeddings. Others changed a part of it: mBART (Liu et al., 2020), PEGASUS (Zhang et al.,
// 2020) and Blenderbot (Roller et al., 2020).
#include "base/message.h"
#include "model/blocks/bart_layers.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

// What the families differ in, by the library's defaults where a key may be missing.
struct BartKind {
  const char* family;
  const char* classes;  // that its class names begin with
  BartDefaults sizes;
  TokenDefaults tokens;
  int64_t max_positions;
  // kPre: norms are before the sublayers, and one is at the end of each stack.
  StackConfig::Order order = StackConfig::Order::kPost;
  BartSurroundings around;
};

class Bart : public EncoderDecoderFamily {
 public:
  Bart(ModelFacts facts, GenerationFacts tokens, EncoderDecoderConfig block, const BartKind& kind)
      : EncoderDecoderFamily(std::move(facts), std::move(tokens), std::move(block)), kind_(kind) {}
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 private:
  BartKind kind_;
  std::string prefix_;
  BartEmbeddings embeddings_;
};

Status Bart::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "model.", "encoder.layers.0.fc1.weight");
  embeddings_ = find_bart_embeddings(checkpoint, prefix_, block());
  return {};
}

Result<WeightTable> Bart::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_bart_embeddings(checkpoint, embeddings_, facts(), block(), table);
  VKF_CHECK(add_bart_stack(checkpoint, block().encoder, kind_.around, prefix_ + "encoder",
                           facts().max_source, table));
  VKF_CHECK(add_bart_stack(checkpoint, block().decoder, kind_.around, prefix_ + "decoder",
                           facts().max_target, table));
  ignore_bart_copies(prefix_, table);
  return table;
}

// Switches of older configurations, which each family has set in stone.
Status refuse_variants(const JsonConfig& config, const BartKind& kind) {
  const bool pre_norm = kind.order == StackConfig::Order::kPre;
  const std::pair<const char*, bool> switches[] = {
      {"normalize_before", pre_norm},
      {"add_final_layer_norm", pre_norm},
      {"normalize_embedding", kind.around.embedding_norm == BartSurroundings::EmbeddingNorm::kYes},
      {"static_position_embeddings",
       kind.around.positions == BartSurroundings::Positions::kSinusoidal}};
  for (const auto& [key, own] : switches) {
    VKF_ASSIGN(const bool set, config.get_bool_or(key, own));
    if (set != own) {
      return unsupported(
          message({"[", key, "] is ", (set ? "true" : "false"), " in ", config.where(), "; a ",
                   kind.family, " has ", (own ? "true" : "false"), " there"}));
    }
  }
  return {};
}

Result<std::unique_ptr<ModelFamily>> load_bart_kind(const ModelFiles& files, const BartKind& kind) {
  const JsonConfig& config = files.config;
  VKF_CHECK(refuse_variants(config, kind));
  ModelFacts facts{.family = kind.family};
  EncoderDecoderConfig block;
  VKF_ASSIGN(facts.architecture,
             get_architecture(config, std::string(kind.classes) + "ForConditionalGeneration"));
  VKF_ASSIGN(facts.head, read_seq2seq_head(config, facts.architecture));
  if (facts.head != HeadKind::kNone) block.head = "head";
  VKF_CHECK(read_bart_sizes(config, kind.sizes, facts, block));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_position_embeddings", kind.max_positions, kMostPositions));
  facts.max_target = facts.max_source;
  for (StackConfig* stack : {&block.encoder, &block.decoder}) {
    stack->order = kind.order;
    if (kind.order == StackConfig::Order::kPre) stack->final_norm = StackConfig::FinalNorm::kYes;
  }
  set_bart_embedding(kind.around, block.encoder, block.source);
  set_bart_embedding(kind.around, block.decoder, block.target);
  VKF_ASSIGN(GenerationFacts tokens, read_seq2seq_generation(files, kind.tokens));
  return std::unique_ptr<ModelFamily>(
      new Bart(std::move(facts), std::move(tokens), std::move(block), kind));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_bart(const ModelFiles& files) {
  return load_bart_kind(files, {.family = "bart",
                                .classes = "Bart",
                                .sizes = {.width = 1024, .vocab = 50265},
                                .tokens = {.pad = 1, .eos = 2, .decoder_start = 2},
                                .max_positions = 1024,
                                .around = {.position_offset = 2}});
}

Result<std::unique_ptr<ModelFamily>> load_mbart(const ModelFiles& files) {
  return load_bart_kind(files, {.family = "mbart",
                                .classes = "MBart",
                                .sizes = {.width = 1024, .vocab = 50265},
                                .tokens = {.pad = 1, .eos = 2},
                                .max_positions = 1024,
                                .order = StackConfig::Order::kPre,
                                .around = {.position_offset = 2}});
}

Result<std::unique_ptr<ModelFamily>> load_pegasus(const ModelFiles& files) {
  return load_bart_kind(files, {.family = "pegasus",
                                .classes = "Pegasus",
                                .sizes = {.width = 1024, .vocab = 50265},
                                .tokens = {.pad = 0, .eos = 1, .decoder_start = 0},
                                .max_positions = 1024,
                                .order = StackConfig::Order::kPre,
                                .around = {.embedding_norm = BartSurroundings::EmbeddingNorm::kNo,
                                           .positions = BartSurroundings::Positions::kSinusoidal}});
}

Result<std::unique_ptr<ModelFamily>> load_blenderbot(const ModelFiles& files) {
  const BartDefaults sizes{.encoder_layers = 2,
                           .decoder_layers = 24,
                           .heads = 32,
                           .ffn = 10240,
                           .width = 2560,
                           .vocab = 8008};
  return load_bart_kind(files,
                        {.family = "blenderbot",
                         .classes = "Blenderbot",
                         .sizes = sizes,
                         .tokens = {.pad = 0, .eos = 2, .decoder_start = 1},
                         .max_positions = 128,
                         .order = StackConfig::Order::kPre,
                         .around = {.embedding_norm = BartSurroundings::EmbeddingNorm::kNo}});
}

}  // namespace vkformer
