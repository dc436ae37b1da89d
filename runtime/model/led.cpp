// LED, the Longformer encoder-decoder (Beltagy, Peters and Cohan, 2020): BART with a Longformer for
// an encoder and learned positions that begin at row 0.
#include "model/blocks/bart_layers.h"
#include "model/blocks/longformer_form.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

constexpr const char* kAttention = "self_attn.longformer_self_attn.";

class Led : public EncoderDecoderFamily {
 public:
  Led(ModelFacts facts, GenerationFacts tokens, EncoderDecoderConfig block, LongformerConfig form)
      : EncoderDecoderFamily(std::move(facts), std::move(tokens), std::move(block)),
        form_(std::move(form)) {}
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;

 protected:
  Result<Memory> encode(ModelBuilder& builder, const ForwardShape& shape,
                        const ForwardTaps& taps) const override;

 private:
  void add_encoder_layer(const std::string& to, const std::string& from, WeightTable& table) const;
  void add_front_rows(WeightTable& table, const StackConfig& stack, int64_t positions) const;

  LongformerForm form_;
  std::string prefix_;
  BartEmbeddings embeddings_;
};

Status Led::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "led.", "encoder.layers.0.fc1.weight");
  embeddings_ = find_bart_embeddings(checkpoint, prefix_, block());
  return {};
}

void Led::add_encoder_layer(const std::string& to, const std::string& from,
                            WeightTable& table) const {
  const int64_t d = facts().width;
  const int64_t ffn = block().encoder.ffn;
  const std::string attention = from + kAttention;
  table.rows.push_back(linear_row(
      to + ".self.qkv", {attention + "query", attention + "key", attention + "value"}, 3 * d, d));
  table.rows.push_back(linear_row(to + ".self.out", {from + "self_attn.output"}, d, d));
  table.rows.push_back(norm_row(to + ".self.norm", from + "self_attn_layer_norm", d));
  table.rows.push_back(linear_row(to + ".ffn.up", {from + "fc1"}, ffn, d));
  table.rows.push_back(linear_row(to + ".ffn.down", {from + "fc2"}, d, ffn));
  table.rows.push_back(norm_row(to + ".ffn.norm", from + "final_layer_norm", d));
  form_.add_layer_rows(to, from, d, table);
}

void Led::add_front_rows(WeightTable& table, const StackConfig& stack, int64_t positions) const {
  const std::string from = prefix_ + stack.rows;
  const int64_t d = stack.width;
  table.rows.push_back(norm_row(stack.rows + ".embed_norm", from + ".layernorm_embedding", d));
  table.rows.push_back(
      table_row(stack.rows + ".positions", {from + ".embed_positions.weight"}, {positions}, d));
}

Result<WeightTable> Led::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_bart_embeddings(checkpoint, embeddings_, facts(), block(), table);
  for (int64_t i = 0; i < block().encoder.layers; ++i) {
    const std::string number = std::to_string(i);
    add_encoder_layer("encoder." + number, prefix_ + "encoder.layers." + number + ".", table);
  }
  add_bart_layers(table, block().decoder, prefix_ + "decoder.layers");
  add_front_rows(table, block().encoder, facts().max_source);
  add_front_rows(table, block().decoder, facts().max_target);
  ignore_bart_copies(prefix_, table);
  return table;
}

std::vector<std::string> Led::input_names() const {
  return form_.input_names();
}

Status Led::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  return form_.read_inputs(inputs, result);
}

Result<Memory> Led::encode(ModelBuilder& b, const ForwardShape& shape,
                           const ForwardTaps& taps) const {
  VKF_ASSIGN(TextStates text,
             add_text_stack(b, block().encoder, block().source, shape, taps, &form_));
  return Memory{.states = text.states, .tokens = shape.source, .mask = text.mask};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_led(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "led"};
  EncoderDecoderConfig block;
  VKF_ASSIGN(facts.architecture, get_architecture(config, "LEDForConditionalGeneration"));
  VKF_ASSIGN(facts.head, read_seq2seq_head(config, facts.architecture));
  if (facts.head != HeadKind::kNone) block.head = "head";
  VKF_CHECK(read_bart_sizes(config, {.width = 1024, .vocab = 50265}, facts, block));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_encoder_position_embeddings", 16384, kMostPositions));
  VKF_ASSIGN(facts.max_target,
             get_size_or(config, "max_decoder_position_embeddings", 1024, kMostPositions));
  block.source.positions = "encoder.positions";
  block.source.norm = "encoder.embed_norm";
  block.target.positions = "decoder.positions";
  block.target.norm = "decoder.embed_norm";
  LongformerConfig form{.heads = block.encoder.heads, .module = kAttention};
  VKF_ASSIGN(form.windows, read_attention_windows(config, block.encoder.layers));
  VKF_ASSIGN(GenerationFacts tokens,
             read_seq2seq_generation(files, {.pad = 1, .eos = 2, .decoder_start = 2}));
  return std::unique_ptr<ModelFamily>(
      new Led(std::move(facts), std::move(tokens), std::move(block), std::move(form)));
}

}  // namespace vkformer
