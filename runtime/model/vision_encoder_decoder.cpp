// A ViT or DeiT that a GPT-2 with cross-attention describes in words (Hugging Face's
// VisionEncoderDecoderModel), with a projection between them where their widths differ.
#include "base/message.h"
#include "model/blocks/encoder_decoder.h"
#include "model/blocks/named_decoder.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/family_list.h"
#include "model/gpt2.h"
#include "model/vit.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

const char* const kProjection = "enc_to_dec_proj";
constexpr int64_t kGpt2Token = 50256;  // begins and ends a text of GPT-2

class VisionEncoderDecoder : public EncoderDecoderFamily {
 public:
  VisionEncoderDecoder(ModelFacts facts, GenerationFacts tokens, EncoderDecoderConfig block,
                       VitEncoder encoder)
      : EncoderDecoderFamily(std::move(facts), std::move(tokens), std::move(block)),
        encoder_(std::move(encoder)) {}

  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 protected:
  Result<Memory> encode(ModelBuilder& builder, const ForwardShape& shape,
                        const ForwardTaps& taps) const override;
  int64_t source_tokens(const ForwardShape&) const override { return encoder_.picture.tokens(); }

 private:
  bool projects() const { return encoder_.stack.width != block().decoder.width; }

  VitEncoder encoder_;
  std::string words_ = "decoder.transformer.wte.weight";
  std::string head_;  // the head, or the embedding again
};

Status VisionEncoderDecoder::prepare(const Checkpoint& checkpoint) {
  head_ = first_present(checkpoint, {"decoder.lm_head.weight", words_});
  block().target.words = head_ == words_ ? "head" : "embed";
  return {};
}

Result<WeightTable> VisionEncoderDecoder::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const ModelFacts& f = facts();
  table.rows.push_back(embedding_row("head", head_, f.target_vocab, f.width));
  if (words_ != head_)
    table.rows.push_back(embedding_row("embed", words_, f.target_vocab, f.width));
  VKF_CHECK(add_vit_rows(table, checkpoint, encoder_, "encoder."));
  add_gpt2_rows(table, block().decoder, f.max_target, "decoder.transformer.");
  if (projects()) {
    table.rows.push_back(linear_row(kProjection, {kProjection}, f.width, encoder_.stack.width));
  }
  return table;
}

Result<Memory> VisionEncoderDecoder::encode(ModelBuilder& b, const ForwardShape& shape,
                                            const ForwardTaps& taps) const {
  VKF_ASSIGN(TensorId x, add_picture_embedding(b, encoder_.picture, shape.batch));
  Memory memory{.tokens = encoder_.picture.tokens()};
  const StackRun run{.batch = shape.batch, .tokens = memory.tokens, .taps = taps};
  VKF_ASSIGN(memory.states, add_stack(b, encoder_.stack, run, x));
  memory.output = memory.states;
  if (projects()) {
    VKF_ASSIGN(memory.states, add_named_linear(b, kProjection, memory.states));
  }
  return memory;
}

Result<VitEncoder> read_encoder(const JsonConfig& config) {
  const JsonConfig nested = config.object("encoder");
  VKF_CHECK(nested.status());
  VKF_ASSIGN(std::string type, nested.get_string("model_type"));
  if (type == "vit" || type == "deit") {
    return read_vit_encoder(
        nested, type == "vit" ? VitEncoder::Tokens::kClass : VitEncoder::Tokens::kDistillation,
        "encoder", "encoder_");
  }
  return unsupported(message({"[encoder.model_type] in ", config.where(), " is '", type,
                              "'; supported are vit and deit"}));
}

Status read_decoder(const JsonConfig& config, const VitEncoder& encoder, ModelFacts& facts,
                    EncoderDecoderConfig& block) {
  const JsonConfig nested = config.object("decoder");
  VKF_CHECK(nested.status());
  VKF_ASSIGN(std::string type, nested.get_string("model_type"));
  if (type != "gpt2") {
    return unsupported(message(
        {"[decoder.model_type] in ", config.where(), " is '", type, "'; supported is gpt2"}));
  }
  VKF_ASSIGN(bool cross, nested.get_bool_or("add_cross_attention", true));
  if (!cross) {
    return unsupported(message({"[decoder.add_cross_attention] is false in ", config.where(),
                                "; a decoder that cannot see its encoder is not supported"}));
  }
  VKF_CHECK(read_gpt2_stack(nested, block.decoder));
  block.decoder.taps = "decoder_";
  block.decoder.cross = StackConfig::Cross::kYes;
  if (nested.has("cross_attention_hidden_size") && encoder.stack.width != block.decoder.width) {
    return unsupported(
        message({"[decoder.cross_attention_hidden_size] in ", config.where(),
                 " leaves out the projection between an encoder of width ", encoder.stack.width,
                 " and a GPT-2 of width ", block.decoder.width, ", which needs one"}));
  }
  block.head = "head";
  block.target.positions = "positions";
  facts.width = block.decoder.width;
  facts.decoder_layers = block.decoder.layers;
  facts.decoder_heads = block.decoder.heads;
  VKF_ASSIGN(facts.target_vocab, get_size_or(nested, "vocab_size", 50257, kMostVocabulary));
  VKF_ASSIGN(facts.max_target, size_by_either(nested, "n_positions", "max_position_embeddings",
                                              1024, kMostPositions));
  return {};
}

// What neither the model's own configuration nor generation_config.json states, the decoder's does.
Result<TokenDefaults> read_defaults(const JsonConfig& config) {
  const JsonConfig nested = config.object("decoder");
  TokenDefaults defaults;
  VKF_ASSIGN(defaults.eos, nested.get_int_or("eos_token_id", kGpt2Token));
  VKF_ASSIGN(defaults.pad, nested.get_int_or("pad_token_id", defaults.eos));
  VKF_ASSIGN(int64_t bos, nested.get_int_or("bos_token_id", kGpt2Token));
  VKF_ASSIGN(bos, config.get_int_or("bos_token_id", bos));
  VKF_ASSIGN(defaults.decoder_start, nested.get_int_or("decoder_start_token_id", bos));
  return defaults;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_vision_encoder_decoder(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "vision-encoder-decoder", .source = SourceKind::kPictures};
  facts.head = HeadKind::kLanguage;
  VKF_ASSIGN(facts.architecture, get_architecture(config, "VisionEncoderDecoderModel"));
  VKF_ASSIGN(VitEncoder encoder, read_encoder(config));
  EncoderDecoderConfig block;
  VKF_CHECK(read_decoder(config, encoder, facts, block));
  block.encoder = encoder.stack;
  facts.encoder_layers = encoder.stack.layers;
  facts.encoder_heads = encoder.stack.heads;
  facts.max_source = encoder.picture.tokens();
  facts.grid = encoder.picture.picture;
  VKF_ASSIGN(TokenDefaults defaults, read_defaults(config));
  VKF_ASSIGN(GenerationFacts tokens, read_seq2seq_generation(files, defaults));
  return std::unique_ptr<ModelFamily>(new VisionEncoderDecoder(
      std::move(facts), std::move(tokens), std::move(block), std::move(encoder)));
}

}  // namespace vkformer
