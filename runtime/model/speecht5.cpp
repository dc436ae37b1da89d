// SpeechT5 for speech recognition (Ao et al., 2021). Samples of audio go through wav2vec 2.0's
// convolutions into a post-norm encoder with relative keys (Shaw et al., 2018). A text decoder with
// sinusoidal positions follows.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/bart_layers.h"
#include "model/blocks/relative_attention.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/blocks/stack_attention.h"
#include "model/blocks/waveform_stem.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/combine.h"
#include "ops/gather_rows.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostReach = 65536;
constexpr const char* kEncoderModule = "speecht5.encoder.";
constexpr const char* kDecoderModule = "speecht5.decoder.";

struct SpeechT5Config {
  WaveformStem stem;
  PositionConv position;
  int64_t reach = 0;  // tokens; farther keys count as this far
  int64_t pad = 1;
};

class SpeechT5 : public EncoderDecoderFamily {
 public:
  SpeechT5(ModelFacts facts, GenerationFacts generation, EncoderDecoderConfig block,
           SpeechT5Config config)
      : EncoderDecoderFamily(std::move(facts), std::move(generation), std::move(block)),
        c_(std::move(config)),
        input_{.convs = c_.stem.convs, .mask = WaveformInput::Mask::kAlways} {}
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override {
    return input_.read(inputs, result);
  }

 protected:
  Result<Memory> encode(ModelBuilder& builder, const ForwardShape& shape,
                        const ForwardTaps& taps) const override;

 private:
  void add_stack_rows(const StackConfig& stack, const std::string& from, WeightTable& table) const;
  Result<WeightRow> relative_row(const Checkpoint& checkpoint, const std::string& from) const;
  Result<TensorId> add_sinusoids(ModelBuilder& b, const ForwardShape& shape, TensorId x) const;

  SpeechT5Config c_;
  WaveformInput input_;
  std::string words_;  // the decoder's embedding in the file
  std::string head_;   // the head, or the embedding again
};

Status SpeechT5::prepare(const Checkpoint& checkpoint) {
  words_ = std::string(kDecoderModule) + "prenet.embed_tokens.weight";
  head_ = first_present(checkpoint, {"text_decoder_postnet.lm_head.weight", words_});
  block().target.words = head_ == words_ ? "head" : "decoder.embed";
  return {};
}

void SpeechT5::add_stack_rows(const StackConfig& stack, const std::string& from,
                              WeightTable& table) const {
  const int64_t d = stack.width;
  const bool decoder = stack.cross == StackConfig::Cross::kYes;
  auto& rows = table.rows;
  for (int64_t i = 0; i < stack.layers; ++i) {
    const std::string to = stack.layer_rows(i);
    const std::string layer = from + "layers." + std::to_string(i) + ".";
    const std::string self = layer + (decoder ? "self_attn." : "attention.");
    rows.push_back(linear_row(to + ".self.qkv", {self + "q_proj", self + "k_proj", self + "v_proj"},
                              3 * d, d));
    rows.push_back(linear_row(to + ".self.out", {self + "out_proj"}, d, d));
    rows.push_back(
        norm_row(to + ".self.norm", layer + (decoder ? "self_attn_layer_norm" : "layer_norm"), d));
    if (decoder) {
      const std::string cross = layer + "encoder_attn.";
      rows.push_back(linear_row(to + ".cross.q", {cross + "q_proj"}, d, d));
      rows.push_back(linear_row(to + ".cross.kv", {cross + "k_proj", cross + "v_proj"}, 2 * d, d));
      rows.push_back(linear_row(to + ".cross.out", {cross + "out_proj"}, d, d));
      rows.push_back(norm_row(to + ".cross.norm", layer + "encoder_attn_layer_norm", d));
    }
    const std::string feed = layer + "feed_forward.";
    rows.push_back(linear_row(to + ".ffn.up", {feed + "intermediate_dense"}, stack.ffn, d));
    rows.push_back(linear_row(to + ".ffn.down", {feed + "output_dense"}, d, stack.ffn));
    rows.push_back(norm_row(to + ".ffn.norm", layer + "final_layer_norm", d));
  }
}

// The keys of distances j - i from -R to R (2R + 1, E). The file has 2R rows by i - j from -R on,
// the last of which stands for all greater distances.
Result<WeightRow> SpeechT5::relative_row(const Checkpoint& checkpoint,
                                         const std::string& from) const {
  const auto e = static_cast<size_t>(block().encoder.head());
  const int64_t reach = c_.reach;
  VKF_ASSIGN(const std::vector<float> stored,
             read_floats(checkpoint, from + "embed_positions.pe_k.weight",
                         {2 * reach, block().encoder.head()}));
  std::vector<float> table;
  for (int64_t after = -reach; after <= reach; ++after) {
    const auto row = static_cast<size_t>(std::min(reach - after, 2 * reach - 1));
    const auto begin = stored.begin() + static_cast<ptrdiff_t>(row * e);
    table.insert(table.end(), begin, begin + static_cast<ptrdiff_t>(e));
  }
  return computed_row("encoder.relative", std::move(table), 2 * reach + 1, block().encoder.head());
}

Result<WeightTable> SpeechT5::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const ModelFacts& f = facts();
  const int64_t d = f.width;
  auto& rows = table.rows;
  rows.push_back(embedding_row("head", head_, f.target_vocab, d));
  if (words_ != head_) rows.push_back(embedding_row("decoder.embed", words_, f.target_vocab, d));
  const std::string prenet = std::string(kEncoderModule) + "prenet.";
  add_stem_rows(c_.stem, prenet + "feature_encoder.conv_layers.", table);
  const int64_t last = c_.stem.convs.back().out;
  const std::string project = prenet + "feature_projection.";
  rows.push_back(norm_row("features.norm", project + "layer_norm", last));
  rows.push_back(linear_row("features.projection", {project + "projection"}, d, last));
  VKF_ASSIGN(WeightRow positions,
             position_conv_row(checkpoint, prenet + "pos_conv_embed.conv.", c_.position));
  rows.push_back(std::move(positions));
  const std::string encoder = std::string(kEncoderModule) + "wrapped_encoder.";
  rows.push_back(norm_row("encoder.first_norm", encoder + "layer_norm", d));
  VKF_ASSIGN(WeightRow relative, relative_row(checkpoint, encoder));
  rows.push_back(std::move(relative));
  add_stack_rows(block().encoder, encoder, table);
  add_stack_rows(block().decoder, std::string(kDecoderModule) + "wrapped_decoder.", table);
  VKF_ASSIGN(WeightRow target,
             fairseq_positions("decoder.positions", f.max_target + c_.pad + 1, d, c_.pad));
  rows.push_back(std::move(target));
  // Used in training only, computed here, or the head where it is the embedding.
  table.ignored = {"*masked_spec_embed", "*pos_conv_embed.*", "*.embed_positions.*",
                   "*.pos_sinusoidal_embed.*", "text_decoder_postnet.lm_head.weight"};
  return table;
}

// x (B, T, D) + the sinusoids of frames, which are counted from pad + 1 on.
Result<TensorId> SpeechT5::add_sinusoids(ModelBuilder& b, const ForwardShape& shape,
                                         TensorId x) const {
  Graph& g = b.graph();
  const int64_t d = facts().width, first = c_.pad + 1;
  g.set_scope("encoder.positions");
  VKF_ASSIGN(WeightRow row, fairseq_positions("", shape.source + first, d, c_.pad));
  const std::vector<float> values(row.computed.begin() + first * d, row.computed.end());
  const TensorId table = b.host_floats("encoder.sinusoids", {shape.source, d}, values);
  std::vector<uint32_t> same(static_cast<size_t>(shape.batch * shape.source));
  std::iota(same.begin(), same.end(), 0u);
  const TensorId indices =
      b.host_tensor("encoder.frames", DType::kU32, {shape.batch, shape.source}, std::move(same));
  return add_gather_rows(g, {.x = x, .indices = indices, .addend = table});
}

// Attention of qkv (B, T, 3 D) whose scores have q_i . r_d of the distance d = j - i, too.
Result<TensorId> add_relative_keys_attention(const LayerSite& site, TensorId qkv, TensorId relative,
                                             uint32_t reach) {
  Graph& g = site.b.graph();
  const auto elements = u32(element_count(g.tensor(qkv).shape));
  site.b.graph().set_scope(site.rows() + ".self");
  VKF_ASSIGN(const TensorId joined, add_joined(g, std::array{qkv, relative}));
  AttentionAttrs attrs = own_attrs(site);
  attrs.relative = {
      .kinds = VKF_RELATIVE_KEYS | VKF_RELATIVE_ONE_HEAD, .offset = elements, .reach = reach};
  return attend(site, {.q = joined, .kv = joined, .terms = site.run.terms.words}, attrs,
                tap_of(site, site.c.taps));
}

Result<Memory> SpeechT5::encode(ModelBuilder& b, const ForwardShape& shape,
                                const ForwardTaps& taps) const {
  const StackConfig& stack = block().encoder;
  VKF_ASSIGN(const WaveformSource source, add_waveform_source(b, input_, shape));
  VKF_ASSIGN(TensorId x, add_stem(b, c_.stem, source.samples));
  VKF_ASSIGN(x, add_named_norm(b, stack, "features.norm", x));
  VKF_ASSIGN(x, add_named_linear(b, "features.projection", x));
  VKF_ASSIGN(const TensorId around, add_position_conv(b, c_.position, x));
  VKF_ASSIGN(x, add_combine(b.graph(), around, x, {}));
  VKF_ASSIGN(x, add_sinusoids(b, shape, x));
  VKF_ASSIGN(x, add_named_norm(b, stack, "encoder.first_norm", x));
  VKF_ASSIGN(const TensorId relative, b.table("encoder.relative"));
  StackRun run{.batch = shape.batch, .tokens = shape.source};
  run.taps = taps;
  run.terms.words = source.mask;
  run.terms.params.key_mask_offset = 0;
  run.attend = [relative, reach = u32(c_.reach)](const LayerSite& site, TensorId, TensorId qkv) {
    return add_relative_keys_attention(site, qkv, relative, reach);
  };
  VKF_ASSIGN(const TensorId states, add_stack(b, stack, run, x));
  return Memory{.states = states, .tokens = shape.source, .mask = source.mask};
}

// --- Configuration
// --------------------------------------------------------------------------------

Status read_speecht5_stack(const JsonConfig& config, const std::string& which, StackConfig& stack) {
  stack.rows = which;
  stack.taps = which + "_";
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  const int64_t layers = which == "encoder" ? 12 : 6;
  VKF_ASSIGN(stack.layers, get_size_or(config, which + "_layers", layers, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, which + "_attention_heads", 12, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.ffn, get_size_or(config, which + "_ffn_dim", 3072, kMostWidth));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  return {};
}

Status read_speecht5_sizes(const JsonConfig& config, ModelFacts& facts,
                           EncoderDecoderConfig& block) {
  VKF_CHECK(read_speecht5_stack(config, "encoder", block.encoder));
  VKF_CHECK(read_speecht5_stack(config, "decoder", block.decoder));
  block.decoder.causal = StackConfig::Causal::kYes;
  block.decoder.cross = StackConfig::Cross::kYes;
  facts.width = block.encoder.width;
  facts.encoder_layers = block.encoder.layers;
  facts.decoder_layers = block.decoder.layers;
  facts.encoder_heads = block.encoder.heads;
  facts.decoder_heads = block.decoder.heads;
  VKF_ASSIGN(facts.target_vocab, get_size_or(config, "vocab_size", 81, kMostVocabulary));
  VKF_ASSIGN(facts.max_target, get_size_or(config, "max_text_positions", 450, kMostPositions));
  facts.max_source = kMostPositions;  // frames; sinusoids are computed for as many as there are
  VKF_ASSIGN(const bool scaled, config.get_bool_or("scale_embedding", false));
  if (scaled) block.target.scale = std::sqrt(static_cast<float>(facts.width));
  if (facts.width % 2 == 0 && facts.width > 2) return {};
  return invalid_file(message({"[hidden_size] in ", config.where(), " is ", facts.width,
                               ", but sinusoidal positions need an even one above 2."}));
}

Status read_speecht5_positions(const JsonConfig& config, ModelFacts& facts,
                               EncoderDecoderConfig& block, SpeechT5Config& c) {
  VKF_CHECK(read_waveform_stem(config, c.stem));
  c.position = {.width = facts.width, .activation = c.stem.activation};
  VKF_CHECK(read_position_conv(config, c.position));
  VKF_ASSIGN(c.reach, get_size_or(config, "encoder_max_relative_position", 160, kMostReach));
  VKF_ASSIGN(c.pad, config.get_int_or("pad_token_id", 1));
  if (c.pad < 1 || c.pad >= facts.target_vocab) {
    return unsupported(message({"[pad_token_id] in ", config.where(), " is ", c.pad,
                                ", but positions are counted from it, and frames need it to be "
                                "a token above 0: 1 to ",
                                facts.target_vocab - 1, "."}));
  }
  facts.target_tokens = {.positions = TokenFacts::Positions::kFromIds, .pad = c.pad};
  block.target.tokens = facts.target_tokens;
  block.target.positions = "decoder.positions";
  block.target.position_offset = c.pad + 1;
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_speecht5(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "speecht5", .source = SourceKind::kWaveform};
  const std::string recognizer = "SpeechT5ForSpeechToText";
  VKF_ASSIGN(facts.architecture, get_architecture(config, recognizer));
  if (facts.architecture != recognizer) {
    return unsupported(
        message({"[architectures] in ", config.where(), " names a ", facts.architecture,
                 "; of this family ", recognizer, " is supported."}));
  }
  facts.head = HeadKind::kLanguage;
  EncoderDecoderConfig block;
  block.head = "head";
  SpeechT5Config c;
  VKF_CHECK(read_speecht5_sizes(config, facts, block));
  VKF_CHECK(read_speecht5_positions(config, facts, block, c));
  facts.wave = WaveformInput{.convs = c.stem.convs}.facts();
  VKF_ASSIGN(GenerationFacts tokens,
             read_seq2seq_generation(files, {.pad = 1, .eos = 2, .decoder_start = 2}));
  return std::unique_ptr<ModelFamily>(
      new SpeechT5(std::move(facts), std::move(tokens), std::move(block), std::move(c)));
}

}  // namespace vkformer
