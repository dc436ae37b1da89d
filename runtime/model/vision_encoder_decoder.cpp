// A picture that a decoder with cross-attention describes or reads (Hugging Face's
// VisionEncoderDecoderModel). The encoder is a ViT, a DeiT or a Swin. The decoder is a GPT-2,
// TrOCR's (Li et al., 2021) or mBART's (Donut; Kim et al., 2021). A projection is between them
// where their widths differ.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/message.h"
#include "model/blocks/bart_layers.h"
#include "model/blocks/named_decoder.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/family_list.h"
#include "model/gpt2.h"
#include "model/swin.h"
#include "model/vit.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

const char* const kProjection = "enc_to_dec_proj";
constexpr int64_t kGpt2Token = 50256;  // begins and ends a text of GPT-2

// What makes memory of pictures: its rows begin with "encoder", as its tensors' names do.
class PictureEncoder {
 public:
  virtual ~PictureEncoder() = default;
  virtual Status prepare(const Checkpoint&) { return {}; }
  virtual Status add_rows(const Checkpoint& checkpoint, WeightTable& table) const = 0;
  virtual int64_t width() const = 0;
  // The rows of memory that a picture of height x width pixels becomes.
  virtual int64_t tokens(int64_t height, int64_t width) const = 0;
  virtual Result<TensorId> build(ModelBuilder& builder, const ForwardShape& shape,
                                 const ForwardTaps& taps) const = 0;
  virtual void set_facts(ModelFacts& facts) const = 0;
};

class VitPictures : public PictureEncoder {
 public:
  explicit VitPictures(VitEncoder encoder) : encoder_(std::move(encoder)) {}
  Status add_rows(const Checkpoint& checkpoint, WeightTable& table) const override {
    return add_vit_rows(table, checkpoint, encoder_, "encoder.");
  }
  int64_t width() const override { return encoder_.stack.width; }
  int64_t tokens(int64_t, int64_t) const override { return encoder_.picture.tokens(); }
  Result<TensorId> build(ModelBuilder& b, const ForwardShape& shape,
                         const ForwardTaps& taps) const override {
    VKF_ASSIGN(const TensorId x, add_picture_embedding(b, encoder_.picture, shape.batch));
    const StackRun run{.batch = shape.batch, .tokens = encoder_.picture.tokens(), .taps = taps};
    return add_stack(b, encoder_.stack, run, x);
  }
  void set_facts(ModelFacts& facts) const override {
    facts.encoder_layers = encoder_.stack.layers;
    facts.encoder_heads = encoder_.stack.heads;
    facts.max_source = encoder_.picture.tokens();
    facts.grid = encoder_.picture.picture;
  }

 private:
  VitEncoder encoder_;
};

// Without a norm after the last stage; pictures may have any size.
class SwinPictures : public PictureEncoder {
 public:
  explicit SwinPictures(SwinEncoder encoder) : encoder_(std::move(encoder)) {}
  Status prepare(const Checkpoint& checkpoint) override {
    return encoder_.prepare(checkpoint, "encoder.");
  }
  Status add_rows(const Checkpoint& checkpoint, WeightTable& table) const override {
    return encoder_.add_rows(checkpoint, "encoder.", table);
  }
  int64_t width() const override { return encoder_.config().out_width(); }
  int64_t tokens(int64_t height, int64_t width) const override {
    return encoder_.config().tokens(height, width);
  }
  Result<TensorId> build(ModelBuilder& b, const ForwardShape& shape,
                         const ForwardTaps& taps) const override {
    return encoder_.build(b, shape, taps);
  }
  void set_facts(ModelFacts& facts) const override {
    const SwinEncoder::Config& c = encoder_.config();
    const GridFacts& picture = c.embedding.picture;
    facts.encoder_layers = c.stages();
    facts.encoder_heads = *std::max_element(c.heads.begin(), c.heads.end());
    facts.max_source = c.tokens(picture.height, picture.width);
    facts.grid.channels = picture.channels;
  }

 private:
  SwinEncoder encoder_;
};

// Where a text decoder's tensors are, and what is around its layers.
struct TextDecoder {
  std::string prefix;  // "decoder.model.decoder"
  std::string words;   // of the embedding, after the prefix
  std::string head;    // the whole name; absent where the embedding is the head
  TokenDefaults tokens;
  std::optional<BartSurroundings> bart;  // none: a GPT-2
};

class VisionEncoderDecoder : public EncoderDecoderFamily {
 public:
  VisionEncoderDecoder(ModelFacts facts, GenerationFacts tokens, EncoderDecoderConfig block,
                       std::unique_ptr<PictureEncoder> encoder, TextDecoder decoder)
      : EncoderDecoderFamily(std::move(facts), std::move(tokens), std::move(block)),
        encoder_(std::move(encoder)),
        decoder_(std::move(decoder)) {}

  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  int64_t source_tokens(const ForwardShape& shape) const override {
    return encoder_->tokens(shape.height, shape.width);
  }

 protected:
  Result<Memory> encode(ModelBuilder& builder, const ForwardShape& shape,
                        const ForwardTaps& taps) const override;

 private:
  bool projects() const {
    return encoder_->width() != block().decoder.width && block().decoder.memory_width == 0;
  }

  std::unique_ptr<PictureEncoder> encoder_;
  TextDecoder decoder_;
  std::string words_;
  std::string head_;  // the head, or the embedding again
};

Status VisionEncoderDecoder::prepare(const Checkpoint& checkpoint) {
  words_ = decoder_.prefix + decoder_.words;
  head_ = first_present(checkpoint, {decoder_.head, words_});
  block().target.words = head_ == words_ ? "head" : "embed";
  return encoder_->prepare(checkpoint);
}

Result<WeightTable> VisionEncoderDecoder::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const ModelFacts& f = facts();
  table.rows.push_back(embedding_row("head", head_, f.target_vocab, f.width));
  if (words_ != head_)
    table.rows.push_back(embedding_row("embed", words_, f.target_vocab, f.width));
  VKF_CHECK(encoder_->add_rows(checkpoint, table));
  if (decoder_.bart) {
    VKF_CHECK(add_bart_stack(checkpoint, block().decoder, *decoder_.bart, decoder_.prefix,
                             f.max_target, table));
  } else {
    add_gpt2_rows(table, block().decoder, f.max_target, decoder_.prefix);
  }
  if (projects()) {
    table.rows.push_back(linear_row(kProjection, {kProjection}, f.width, encoder_->width()));
  }
  return table;
}

Result<Memory> VisionEncoderDecoder::encode(ModelBuilder& b, const ForwardShape& shape,
                                            const ForwardTaps& taps) const {
  Memory memory{.tokens = source_tokens(shape)};
  VKF_ASSIGN(memory.states, encoder_->build(b, shape, taps));
  memory.output = memory.states;
  if (projects()) {
    VKF_ASSIGN(memory.states, add_named_linear(b, kProjection, memory.states));
  }
  return memory;
}

Result<std::unique_ptr<PictureEncoder>> read_encoder(const JsonConfig& config) {
  const JsonConfig nested = config.object("encoder");
  VKF_CHECK(nested.status());
  VKF_ASSIGN(std::string type, nested.get_string("model_type"));
  if (type == "vit" || type == "deit") {
    VKF_ASSIGN(VitEncoder vit,
               read_vit_encoder(nested, {.class_tokens = type == "vit" ? kVitTokens : kDeitTokens},
                                "encoder", "encoder_"));
    return std::unique_ptr<PictureEncoder>(new VitPictures(std::move(vit)));
  }
  if (type == "donut-swin") {
    VKF_ASSIGN(SwinEncoder::Config swin, SwinEncoder::read(nested, "encoder.", "encoder_"));
    if (!swin.embedding.positions.empty()) {
      return unsupported(message({"[encoder.use_absolute_embeddings] is true in ", config.where(),
                                  "; a donut-swin with a table of positions is not supported"}));
    }
    return std::unique_ptr<PictureEncoder>(new SwinPictures(SwinEncoder(std::move(swin))));
  }
  return unsupported(message({"[encoder.model_type] in ", config.where(), " is '", type,
                              "'; supported are vit, deit and donut-swin"}));
}

Status read_gpt2_decoder(const JsonConfig& nested, ModelFacts& facts, EncoderDecoderConfig& block,
                         TextDecoder& decoder) {
  VKF_CHECK(read_gpt2_stack(nested, block.decoder));
  block.decoder.taps = "decoder_";
  block.target.positions = "positions";
  decoder.prefix = "decoder.transformer.";
  decoder.words = "wte.weight";
  decoder.head = "decoder.lm_head.weight";
  decoder.tokens = {.eos = kGpt2Token, .decoder_start = kGpt2Token};
  VKF_ASSIGN(facts.target_vocab, get_size_or(nested, "vocab_size", 50257, kMostVocabulary));
  VKF_ASSIGN(facts.max_target, size_by_either(nested, "n_positions", "max_position_embeddings",
                                              1024, kMostPositions));
  return {};
}

// TrOCR's positions are counted from the ids where they are sinusoids.
Status read_trocr_surroundings(const JsonConfig& nested, ModelFacts& facts,
                               EncoderDecoderConfig& block, BartSurroundings& around) {
  VKF_ASSIGN(const bool normed, nested.get_bool_or("layernorm_embedding", true));
  if (!normed) around.embedding_norm = BartSurroundings::EmbeddingNorm::kNo;
  VKF_ASSIGN(const bool learned, nested.get_bool_or("use_learned_position_embeddings", true));
  if (learned) return {};
  around.positions = BartSurroundings::Positions::kFairseq;
  VKF_ASSIGN(const int64_t pad, nested.get_int_or("pad_token_id", 1));
  if (pad < 0 || pad >= facts.target_vocab) {
    return invalid_file(message({"[decoder.pad_token_id] in ", nested.where(), " is ", pad,
                                 ", but positions are counted from it: it must be a token, 0 to ",
                                 facts.target_vocab - 1}));
  }
  facts.target_tokens = {.positions = TokenFacts::Positions::kFromIds, .pad = pad};
  block.target.tokens = facts.target_tokens;
  around.position_offset = pad + 1;
  return {};
}

// TrOCR's decoder, or mBART's, which has its norms before the sublayers.
Status read_bart_decoder(const JsonConfig& nested, const std::string& type, ModelFacts& facts,
                         EncoderDecoderConfig& block, TextDecoder& decoder) {
  const bool trocr = type == "trocr";
  StackConfig& stack = block.decoder;
  VKF_ASSIGN(stack.width, get_size_or(nested, "d_model", 1024, kMostWidth));
  VKF_CHECK(read_bart_stack(nested, {}, "decoder", stack));
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(facts.target_vocab, get_size_or(nested, "vocab_size", 50265, kMostVocabulary));
  VKF_ASSIGN(facts.max_target,
             get_size_or(nested, "max_position_embeddings", trocr ? 512 : 1024, kMostPositions));
  VKF_ASSIGN(const bool scaled, nested.get_bool_or("scale_embedding", false));
  if (scaled) block.target.scale = std::sqrt(static_cast<float>(stack.width));
  decoder.bart = BartSurroundings{.position_offset = 2};
  if (trocr) {
    VKF_CHECK(read_trocr_surroundings(nested, facts, block, *decoder.bart));
  } else {
    stack.order = StackConfig::Order::kPre;
    stack.final_norm = StackConfig::FinalNorm::kYes;
  }
  set_bart_embedding(*decoder.bart, stack, block.target);
  decoder.prefix = "decoder.model.decoder";
  decoder.words = ".embed_tokens.weight";
  decoder.head = trocr ? "decoder.output_projection.weight" : "decoder.lm_head.weight";
  decoder.tokens = {.pad = 1, .eos = 2, .decoder_start = trocr ? 2 : 0};
  return {};
}

Status read_decoder(const JsonConfig& config, const PictureEncoder& encoder, ModelFacts& facts,
                    EncoderDecoderConfig& block, TextDecoder& decoder) {
  const JsonConfig nested = config.object("decoder");
  VKF_CHECK(nested.status());
  VKF_ASSIGN(std::string type, nested.get_string("model_type"));
  if (type == "gpt2") {
    VKF_CHECK(read_gpt2_decoder(nested, facts, block, decoder));
  } else if (type == "trocr" || type == "mbart") {
    VKF_CHECK(read_bart_decoder(nested, type, facts, block, decoder));
  } else {
    return unsupported(message({"[decoder.model_type] in ", config.where(), " is '", type,
                                "'; supported are gpt2, trocr and mbart"}));
  }
  VKF_ASSIGN(bool cross, nested.get_bool_or("add_cross_attention", true));
  if (!cross) {
    return unsupported(message({"[decoder.add_cross_attention] is false in ", config.where(),
                                "; a decoder that cannot see its encoder is not supported"}));
  }
  block.decoder.cross = StackConfig::Cross::kYes;
  if (nested.has("cross_attention_hidden_size") && encoder.width() != block.decoder.width) {
    VKF_ASSIGN(block.decoder.memory_width,
               get_size(nested, "cross_attention_hidden_size", kMostWidth));
    if (type != "trocr" || block.decoder.memory_width != encoder.width()) {
      return unsupported(message({"[decoder.cross_attention_hidden_size] in ", config.where(),
                                  " is ", block.decoder.memory_width,
                                  ", which omits the projection between an "
                                  "encoder of width ",
                                  encoder.width(), " and a ", type, " of width ",
                                  block.decoder.width, ", which needs one"}));
    }
  }
  block.head = "head";
  facts.width = block.decoder.width;
  facts.decoder_layers = block.decoder.layers;
  facts.decoder_heads = block.decoder.heads;
  return {};
}

// What neither the model's own configuration nor generation_config.json states, the decoder's does.
Result<TokenDefaults> read_defaults(const JsonConfig& config, const TokenDefaults& own) {
  const JsonConfig nested = config.object("decoder");
  TokenDefaults defaults;
  VKF_ASSIGN(defaults.eos, nested.get_int_or("eos_token_id", own.eos));
  VKF_ASSIGN(defaults.pad, nested.get_int_or("pad_token_id", own.pad < 0 ? defaults.eos : own.pad));
  VKF_ASSIGN(int64_t bos, nested.get_int_or("bos_token_id", own.decoder_start));
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
  VKF_ASSIGN(std::unique_ptr<PictureEncoder> encoder, read_encoder(config));
  EncoderDecoderConfig block;
  TextDecoder decoder;
  VKF_CHECK(read_decoder(config, *encoder, facts, block, decoder));
  encoder->set_facts(facts);
  VKF_ASSIGN(TokenDefaults defaults, read_defaults(config, decoder.tokens));
  VKF_ASSIGN(GenerationFacts tokens, read_seq2seq_generation(files, defaults));
  return std::unique_ptr<ModelFamily>(new VisionEncoderDecoder(std::move(facts), std::move(tokens),
                                                               std::move(block), std::move(encoder),
                                                               std::move(decoder)));
}

}  // namespace vkformer
