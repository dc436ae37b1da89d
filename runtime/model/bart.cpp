// BART (Lewis et al., 2019), a post-norm encoder-decoder with learned positions and a norm after
// the embeddings, and mBART (Liu et al., 2020), which has its norms before the sublayers and one at
// the end of each stack.
#include "base/message.h"
#include "model/blocks/bart_layers.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

// Rows of the position tables before position 0: fairseq counted on from a padding index of 1.
constexpr int64_t kBartPositionOffset = 2;

// Switches of older configurations that the two families have set in stone: an mBART has true
// where a BART has false.
constexpr const char* kNormSwitches[] = {"normalize_before", "add_final_layer_norm"};

class Bart : public EncoderDecoderFamily {
 public:
  using EncoderDecoderFamily::EncoderDecoderFamily;
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 private:
  void add_stack_rows(WeightTable& table, const StackConfig& stack, int64_t positions) const;

  std::string prefix_;
  BartEmbeddings embeddings_;
};

Status Bart::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "model.", "encoder.layers.0.fc1.weight");
  embeddings_ = find_bart_embeddings(checkpoint, prefix_, block());
  return {};
}

void Bart::add_stack_rows(WeightTable& table, const StackConfig& stack, int64_t positions) const {
  const std::string from = prefix_ + stack.rows;
  const int64_t d = stack.width;
  add_bart_layers(table, stack, from + ".layers");
  table.rows.push_back(norm_row(stack.rows + ".embed_norm", from + ".layernorm_embedding", d));
  table.rows.push_back(table_row(stack.rows + ".positions", {from + ".embed_positions.weight"},
                                 {positions + kBartPositionOffset}, d));
  if (stack.final_norm == StackConfig::FinalNorm::kYes) {
    table.rows.push_back(norm_row(stack.rows + ".norm", from + ".layer_norm", d));
  }
}

Result<WeightTable> Bart::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_bart_embeddings(checkpoint, embeddings_, facts(), block(), table);
  add_stack_rows(table, block().encoder, facts().max_source);
  add_stack_rows(table, block().decoder, facts().max_target);
  ignore_bart_copies(prefix_, table);
  return table;
}

Status refuse_variants(const JsonConfig& config, bool pre_norm) {
  for (const char* key : kNormSwitches) {
    VKF_ASSIGN(bool set, config.get_bool_or(key, pre_norm));
    if (set != pre_norm) {
      return unsupported(message({"[", key, "] is ", (set ? "true" : "false"), " in ",
                                  config.where(), "; a BART has false there and an mBART true"}));
    }
  }
  VKF_ASSIGN(bool normed, config.get_bool_or("normalize_embedding", true));
  VKF_ASSIGN(bool fixed, config.get_bool_or("static_position_embeddings", false));
  if (normed && !fixed) return {};
  return unsupported(
      message({"[", std::string(normed ? "static_position_embeddings" : "normalize_embedding"),
               "] in ", config.where(),
               " asks for a variant that is not supported: BART and mBART have learned positions "
               "and a norm after the embeddings"}));
}

Result<std::unique_ptr<ModelFamily>> load(const ModelFiles& files, const std::string& family,
                                          bool pre_norm) {
  const JsonConfig& config = files.config;
  VKF_CHECK(refuse_variants(config, pre_norm));
  ModelFacts facts{.family = family};
  EncoderDecoderConfig block;
  VKF_ASSIGN(facts.architecture,
             get_architecture(config, pre_norm ? "MBartForConditionalGeneration"
                                               : "BartForConditionalGeneration"));
  VKF_ASSIGN(facts.head, read_seq2seq_head(config, facts.architecture));
  if (facts.head != HeadKind::kNone) block.head = "head";
  VKF_CHECK(read_bart_sizes(config, {.width = 1024, .vocab = 50265}, facts, block));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_position_embeddings", 1024, kMostPositions));
  facts.max_target = facts.max_source;
  for (StackConfig* stack : {&block.encoder, &block.decoder}) {
    if (!pre_norm) continue;
    stack->order = StackConfig::Order::kPre;
    stack->final_norm = StackConfig::FinalNorm::kYes;
  }
  block.source.positions = "encoder.positions";
  block.source.norm = "encoder.embed_norm";
  block.target.positions = "decoder.positions";
  block.target.norm = "decoder.embed_norm";
  block.source.position_offset = block.target.position_offset = kBartPositionOffset;
  const TokenDefaults defaults = pre_norm ? TokenDefaults{.pad = 1, .eos = 2}
                                          : TokenDefaults{.pad = 1, .eos = 2, .decoder_start = 2};
  VKF_ASSIGN(GenerationFacts tokens, read_seq2seq_generation(files, defaults));
  return std::unique_ptr<ModelFamily>(
      new Bart(std::move(facts), std::move(tokens), std::move(block)));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_bart(const ModelFiles& files) {
  return load(files, "bart", false);
}

Result<std::unique_ptr<ModelFamily>> load_mbart(const ModelFiles& files) {
  return load(files, "mbart", true);
}

}  // namespace vkformer
