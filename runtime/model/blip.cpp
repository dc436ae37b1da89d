// BLIP (Li et al., 2022) as it describes pictures: a pre-norm stack over patches, and BERT's stack
// of words, made causal, that attends to it.
#include <optional>

#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/blocks/encoder_decoder.h"
#include "model/blocks/picture_embedding.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/combine.h"

namespace vkformer {
namespace {

const char* const kCaptions = "BlipForConditionalGeneration";
const char* const kWords = "text_decoder.bert.";
const char* const kHead = "text_decoder.cls.predictions.";

TiedWords blip_words() {
  const std::string decoder = std::string(kHead) + "decoder";
  return {.words = std::string(kWords) + "embeddings.word_embeddings.weight",
          .decoder = decoder,
          // A head that is tied has the second one alone.
          .biases = {decoder + ".bias", std::string(kHead) + "bias"}};
}

class Blip : public EncoderDecoderFamily {
 public:
  Blip(ModelFacts facts, GenerationFacts tokens, EncoderDecoderConfig block,
       PictureEmbedding picture)
      : EncoderDecoderFamily(std::move(facts), std::move(tokens), std::move(block)),
        picture_(std::move(picture)) {}

  Status prepare(const Checkpoint& checkpoint) override {
    block().head = decoder_row(checkpoint, blip_words());
    return {};
  }
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;
  int64_t source_tokens(const ForwardShape&) const override { return picture_.tokens(); }

 protected:
  Result<Memory> encode(ModelBuilder& builder, const ForwardShape& shape,
                        const ForwardTaps& taps) const override;

 private:
  Status add_picture_rows(const Checkpoint& checkpoint, WeightTable& table) const;
  void add_text_rows(const Checkpoint& checkpoint, WeightTable& table) const;

  PictureEmbedding picture_;
};

Status Blip::add_picture_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const StackConfig& s = block().encoder;
  const int64_t d = s.width;
  const std::string from = "vision_model.embeddings.";
  table.rows.push_back(linear_row(picture_.patches, {from + "patch_embedding"}, d,
                                  picture_.picture.channels * picture_.patch.count()));
  const std::string places = from + "position_embedding";
  const std::string token = from + "class_embedding";
  VKF_ASSIGN(WeightRow positions, position_row(checkpoint, picture_, places, {token}, d));
  table.rows.push_back(std::move(positions));
  table.ignored.insert(table.ignored.end(), {places, token});
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string layer = "vision_model.encoder.layers." + std::to_string(i) + ".";
    const std::string attention = layer + "self_attn.";
    table.rows.push_back(norm_row(to + ".self.norm", layer + "layer_norm1", d));
    table.rows.push_back(linear_row(to + ".self.qkv", {attention + "qkv"}, 3 * d, d));
    table.rows.push_back(linear_row(to + ".self.out", {attention + "projection"}, d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", layer + "layer_norm2", d));
    table.rows.push_back(linear_row(to + ".ffn.up", {layer + "mlp.fc1"}, s.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {layer + "mlp.fc2"}, d, s.ffn));
  }
  table.rows.push_back(norm_row(s.rows + ".norm", "vision_model.post_layernorm", d));
  return {};
}

void Blip::add_text_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const StackConfig& s = block().decoder;
  const int64_t d = s.width;
  const std::string from = std::string(kWords) + "embeddings.";
  add_word_rows(checkpoint, blip_words(), facts().target_vocab, d, table);
  table.rows.push_back(table_row(block().target.positions, {from + "position_embeddings.weight"},
                                 {facts().max_target}, d));
  table.rows.push_back(norm_row(block().target.norm, from + "LayerNorm", d));
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string layer = std::string(kWords) + "encoder.layer." + std::to_string(i) + ".";
    const std::string own = layer + "attention.";
    const std::string cross = layer + "crossattention.";
    const std::string q = "self.query", k = "self.key", v = "self.value";
    table.rows.push_back(linear_row(to + ".self.qkv", {own + q, own + k, own + v}, 3 * d, d));
    table.rows.push_back(linear_row(to + ".self.out", {own + "output.dense"}, d, d));
    table.rows.push_back(norm_row(to + ".self.norm", own + "output.LayerNorm", d));
    table.rows.push_back(linear_row(to + ".cross.q", {cross + q}, d, d));
    table.rows.push_back(
        linear_row(to + ".cross.kv", {cross + k, cross + v}, 2 * d, s.memory_width));
    table.rows.push_back(linear_row(to + ".cross.out", {cross + "output.dense"}, d, d));
    table.rows.push_back(norm_row(to + ".cross.norm", cross + "output.LayerNorm", d));
    table.rows.push_back(linear_row(to + ".ffn.up", {layer + "intermediate.dense"}, s.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {layer + "output.dense"}, d, s.ffn));
    table.rows.push_back(norm_row(to + ".ffn.norm", layer + "output.LayerNorm", d));
  }
  const std::string head = std::string(kHead) + "transform.";
  table.rows.push_back(linear_row(block().head_dense, {head + "dense"}, d, d));
  table.rows.push_back(norm_row(block().head_norm, head + "LayerNorm", d));
}

Result<WeightTable> Blip::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_text_rows(checkpoint, table);
  VKF_CHECK(add_picture_rows(checkpoint, table));
  // Positions that older versions of the library saved, and the other bias of a tied head.
  table.ignored.insert(table.ignored.end(),
                       {"*embeddings.position_ids", std::string(kHead) + "bias"});
  return table;
}

Result<Memory> Blip::encode(ModelBuilder& b, const ForwardShape& shape,
                            const ForwardTaps& taps) const {
  VKF_ASSIGN(const TensorId x, add_picture_embedding(b, picture_, shape.batch));
  const StackRun run{.batch = shape.batch, .tokens = picture_.tokens(), .taps = taps};
  Memory memory{.tokens = picture_.tokens()};
  VKF_ASSIGN(memory.states, add_stack(b, block().encoder, run, x));
  return memory;
}

// The library hands the picture's states out twice.
Status Blip::build_forward(ModelBuilder& b, const ForwardShape& shape,
                           const ForwardTaps& taps) const {
  VKF_CHECK(EncoderDecoderFamily::build_forward(b, shape, taps));
  const TensorId states = b.graph().find_external(block().memory_output);
  b.graph().set_scope("image_embeds");
  VKF_ASSIGN(const TensorId copy,
             add_combine(b.graph(), states, states, {.alpha = 0.5f, .beta = 0.5f}));
  b.mark_output(copy, "image_embeds");
  return {};
}

Result<PictureEmbedding> read_pictures(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "encoder";
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 12, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 3072, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(PictureEmbedding picture, read_picture_embedding(config, {.picture = {384, 384}}));
  picture.patches = "encoder.patches";
  picture.positions = "encoder.positions";
  return picture;
}

Status read_texts(const JsonConfig& config, ModelFacts& facts, EncoderDecoderConfig& block) {
  StackConfig& stack = block.decoder;
  stack.rows = "decoder";
  stack.taps = "decoder_";
  stack.order = StackConfig::Order::kPost;
  stack.causal = StackConfig::Causal::kYes;
  stack.cross = StackConfig::Cross::kYes;
  stack.memory_width = block.encoder.width;
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 8, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 3072, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-12));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(facts.target_vocab, get_size_or(config, "vocab_size", 30524, kMostVocabulary));
  VKF_ASSIGN(facts.max_target, get_size_or(config, "max_position_embeddings", 512, kMostPositions));
  VKF_ASSIGN(const bool decodes, config.get_bool_or("is_decoder", true));
  if (!decodes) {
    return unsupported(message({"[text_config.is_decoder] is false in ", config.where(),
                                "; a decoder that does not attend to the picture is not "
                                "supported."}));
  }
  block.target = {.words = "words", .positions = "decoder.positions", .norm = "decoder.embed_norm"};
  block.head_dense = "head.dense";
  block.head_activation = stack.activation;
  block.head_norm = "head.norm";
  block.memory_output = "last_hidden_state";
  block.states_output = "decoder_last_hidden_state";
  return {};
}

// A caption begins and ends with tokens of the text's configuration, whatever else says.
Result<GenerationFacts> read_caption_tokens(const ModelFiles& files, const JsonConfig& texts) {
  VKF_ASSIGN(GenerationFacts tokens, read_generation(texts, files.generation));
  VKF_ASSIGN(const int64_t end, texts.get_int_or("sep_token_id", 102));
  tokens.eos = {end};
  VKF_ASSIGN(tokens.pad, texts.get_int_or("pad_token_id", 0));
  VKF_ASSIGN(tokens.decoder_start, texts.get_int_or("bos_token_id", 30522));
  return tokens;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_blip(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "blip", .source = SourceKind::kPictures};
  facts.head = HeadKind::kLanguage;
  VKF_ASSIGN(facts.architecture, get_architecture(config, kCaptions));
  if (facts.architecture != kCaptions) {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', which is not supported; of this family ", kCaptions, " is."}));
  }
  const JsonConfig pictures = config.object("vision_config");
  const JsonConfig texts = config.object("text_config");
  VKF_CHECK(pictures.status());
  VKF_CHECK(texts.status());
  EncoderDecoderConfig block;
  VKF_ASSIGN(PictureEmbedding picture, read_pictures(pictures, block.encoder));
  VKF_CHECK(read_texts(texts, facts, block));
  facts.width = block.decoder.width;
  facts.encoder_layers = block.encoder.layers;
  facts.encoder_heads = block.encoder.heads;
  facts.decoder_layers = block.decoder.layers;
  facts.decoder_heads = block.decoder.heads;
  facts.max_source = picture.tokens();
  facts.grid = picture.picture;
  facts.target_names = ModelFacts::TargetNames::kEither;
  VKF_ASSIGN(GenerationFacts tokens, read_caption_tokens(files, texts));
  return std::unique_ptr<ModelFamily>(
      new Blip(std::move(facts), std::move(tokens), std::move(block), std::move(picture)));
}

}  // namespace vkformer
