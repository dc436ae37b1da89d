// Moonshine (Jeffries et al., 2024, "Moonshine: speech recognition for live transcription and voice
// commands"). Samples of sound go through three convolutions into a pre-norm encoder. A text
// decoder with gated layers follows. Both have partial rotary positions of interleaved pairs.
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/encoder_decoder.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/blocks/waveform_input.h"
#include "model/family_list.h"
#include "model/rope_reading.h"
#include "model/weight_rows.h"
#include "ops/group_norm.h"
#include "ops/unfold.h"

namespace vkformer {
namespace {

constexpr float kMoonshineEpsilon = 1e-5f;

// The convolutions for a width of D, which no configuration changes.
std::vector<SoundConv> moonshine_convs(int64_t d) {
  return {{1, d, 127, 64}, {d, 2 * d, 7, 3}, {2 * d, d, 3, 2}};
}

class Moonshine : public EncoderDecoderFamily {
 public:
  Moonshine(ModelFacts facts, GenerationFacts generation, EncoderDecoderConfig block,
            WaveformInput input, bool biased)
      : EncoderDecoderFamily(std::move(facts), std::move(generation), std::move(block)),
        input_(std::move(input)),
        biased_(biased) {}
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override {
    return input_.read(inputs, result);
  }

 protected:
  Result<Memory> encode(ModelBuilder& builder, const ForwardShape& shape,
                        const ForwardTaps& taps) const override;

 private:
  WeightRow projection(std::string to, const std::vector<std::string>& modules, int64_t n) const;
  void add_layer_rows(const StackConfig& stack, int64_t layer, WeightTable& table) const;

  WaveformInput input_;
  bool biased_;  // queries, keys and values
  std::string prefix_;
  std::string words_;  // the decoder's embedding in the file
  std::string head_;   // the head, or the embedding again
};

Status Moonshine::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "model.", "encoder.conv1.weight");
  words_ = prefix_ + "decoder.embed_tokens.weight";
  head_ = block().head.empty() ? words_ : first_present(checkpoint, {"proj_out.weight", words_});
  block().target.words = head_ == words_ ? "head" : "decoder.embed";
  return {};
}

// A part of attention, of rows (n, D).
WeightRow Moonshine::projection(std::string to, const std::vector<std::string>& modules,
                                int64_t n) const {
  return biased_row(biased_, std::move(to), modules, n, facts().width);
}

void Moonshine::add_layer_rows(const StackConfig& stack, int64_t layer, WeightTable& table) const {
  const int64_t d = stack.width;
  const std::string to = stack.layer_rows(layer);
  const std::string from = prefix_ + stack.rows + ".layers." + std::to_string(layer) + ".";
  const std::string self = from + "self_attn.", cross = from + "encoder_attn.";
  const bool decoder = stack.cross == StackConfig::Cross::kYes;
  auto& rows = table.rows;
  rows.push_back(gain_row(to + ".self.norm", from + "input_layernorm", d));
  rows.push_back(
      projection(to + ".self.qkv", {self + "q_proj", self + "k_proj", self + "v_proj"}, 3 * d));
  rows.push_back(plain_linear_row(to + ".self.out", {self + "o_proj"}, d, d));
  if (decoder) {
    rows.push_back(gain_row(to + ".cross.norm", from + "post_attention_layernorm", d));
    rows.push_back(projection(to + ".cross.q", {cross + "q_proj"}, d));
    rows.push_back(projection(to + ".cross.kv", {cross + "k_proj", cross + "v_proj"}, 2 * d));
    rows.push_back(plain_linear_row(to + ".cross.out", {cross + "o_proj"}, d, d));
  }
  const char* norm = decoder ? "final_layernorm" : "post_attention_layernorm";
  rows.push_back(gain_row(to + ".ffn.norm", from + norm, d));
  WeightRow up =
      linear_row(to + ".ffn.up", {from + "mlp.fc1"}, decoder ? 2 * stack.ffn : stack.ffn, d);
  // Pairs of a gate and what it multiplies; the file has the gates second.
  for (int64_t i = 0; decoder && i < stack.ffn; ++i) {
    up.row_order.push_back(u32(stack.ffn + i));
    up.row_order.push_back(u32(i));
  }
  rows.push_back(std::move(up));
  rows.push_back(linear_row(to + ".ffn.down", {from + "mlp.fc2"}, d, stack.ffn));
}

Result<WeightTable> Moonshine::weight_table(const Checkpoint&) const {
  WeightTable table;
  const ModelFacts& f = facts();
  const int64_t d = f.width;
  auto& rows = table.rows;
  rows.push_back(embedding_row("head", head_, f.target_vocab, d));
  if (words_ != head_) rows.push_back(embedding_row("decoder.embed", words_, f.target_vocab, d));
  const std::string encoder = prefix_ + "encoder.";
  for (size_t i = 0; i < input_.convs.size(); ++i) {
    const SoundConv& conv = input_.convs[i];
    const std::string to = "conv." + std::to_string(i);
    const std::string from = encoder + "conv" + std::to_string(i + 1);
    const int64_t taps = conv.in * conv.kernel;
    rows.push_back(biased_row(i > 0, to, {from}, conv.out, taps));
  }
  rows.push_back(norm_row("conv.0.norm", encoder + "groupnorm", d));
  for (const StackConfig* stack : {&block().encoder, &block().decoder}) {
    for (int64_t i = 0; i < stack->layers; ++i) add_layer_rows(*stack, i, table);
  }
  rows.push_back(gain_row("encoder.norm", encoder + "layer_norm", d));
  rows.push_back(gain_row("decoder.norm", prefix_ + "decoder.norm", d));
  table.ignored = {"proj_out.weight", "*.rotary_emb.inv_freq"};
  return table;
}

Result<Memory> Moonshine::encode(ModelBuilder& b, const ForwardShape& shape,
                                 const ForwardTaps& taps) const {
  Graph& g = b.graph();
  VKF_ASSIGN(const WaveformSource source, add_waveform_source(b, input_, shape));
  TensorId x = source.samples;
  for (size_t i = 0; i < input_.convs.size(); ++i) {
    const std::string name = "conv." + std::to_string(i);
    g.set_scope(name);
    UnfoldAttrs unfold{.source = {.order = i == 0 ? ChannelOrder::kFirst : ChannelOrder::kLast}};
    unfold.window.kernel_width = u32(input_.convs[i].kernel);
    unfold.window.stride_width = u32(input_.convs[i].stride);
    VKF_ASSIGN(x, add_unfold(g, x, unfold));
    const auto activation = i == 0 ? ActivationKind::kTanh : ActivationKind::kGelu;
    VKF_ASSIGN(x, add_named_linear(b, name, x, {.activation = activation}));
    if (i > 0) continue;
    VKF_ASSIGN(const TensorId gain, b.norm(name + ".norm"));
    VKF_ASSIGN(x, add_group_norm(g, x, gain, {.groups = 1, .epsilon = kMoonshineEpsilon}));
  }
  StackRun run{.batch = shape.batch, .tokens = shape.source};
  run.taps = taps;
  run.terms.words = source.mask;
  run.terms.params.key_mask_offset = 0;
  VKF_ASSIGN(const TensorId states, add_stack(b, block().encoder, run, x));
  return Memory{.states = states, .tokens = shape.source, .mask = source.mask};
}

// --- Configuration
// --------------------------------------------------------------------------------

// Rotary positions of a head. The library takes frequencies of the truncated width, also where that
// is odd, and turns pairs, the last one of which is then wider.
Result<RotarySetup> read_moonshine_rotary(const JsonConfig& config, int64_t head, int64_t most) {
  VKF_ASSIGN(const uint32_t part, read_rotary_width(config, head, 0.9));
  RotarySetup rotary{.width = (part + 1) / 2 * 2, .pairs = RotaryPairs::kInterleaved};
  if (rotary.width == 0 || rotary.width > static_cast<uint64_t>(head)) {
    return invalid_file(
        message({"[partial_rotary_factor] in ", config.where(), " rotates ", part, " of ", head,
                 " columns of a head, but must leave from 1 column to an even "
                 "number within the head."}));
  }
  VKF_ASSIGN(rotary.scaling, read_model_rotary(config, {.max_positions = most}));
  if (part % 2 == 0) {
    VKF_CHECK(check_rotary_scaling(rotary.scaling, rotary.width, config.where()));
    return rotary;
  }
  if (rotary.scaling.kind != RotaryScalingKind::kDefault) {
    return unsupported(message({"[rope_parameters] in ", config.where(),
                                " scales the positions of an odd number of columns, ", part,
                                ", which is not implemented; use the rope_type default."}));
  }
  for (uint32_t i = 0; i < rotary.width / 2; ++i) {
    rotary.scaling.frequencies.push_back(
        std::pow(rotary.scaling.theta, -2.0 * static_cast<double>(i) / static_cast<double>(part)));
  }
  return rotary;
}

Status read_moonshine_stack(const JsonConfig& config, const std::string& which,
                            StackConfig& stack) {
  stack.rows = which;
  stack.taps = which + "_";
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 288, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, which + "_num_hidden_layers", 6, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, which + "_num_attention_heads", 8, kMostWidth));
  const std::string keys = which + "_num_key_value_heads";
  VKF_ASSIGN(const int64_t kv_heads, get_size_or(config, keys, stack.heads, kMostWidth));
  if (kv_heads != stack.heads) {
    return unsupported(message({"[", keys, "] in ", config.where(), " is ", kv_heads,
                                ", but there are ", stack.heads,
                                " heads of queries; heads that share keys are not implemented, "
                                "nor does the original library run them."}));
  }
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 1152, kMostWidth));
  const bool decoder = which == "decoder";
  VKF_ASSIGN(stack.activation,
             get_activation(config, which + "_hidden_act", decoder ? "silu" : "gelu"));
  if (decoder) {
    stack.gate = StackConfig::Gate::kYes;
    stack.causal = StackConfig::Causal::kYes;
    stack.cross = StackConfig::Cross::kYes;
  }
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  return {};
}

Status read_moonshine_sizes(const JsonConfig& config, ModelFacts& facts,
                            EncoderDecoderConfig& block) {
  VKF_CHECK(read_moonshine_stack(config, "encoder", block.encoder));
  VKF_CHECK(read_moonshine_stack(config, "decoder", block.decoder));
  // The original class gives both stacks the encoder's heads.
  if (block.encoder.heads != block.decoder.heads) {
    return unsupported(message({"[decoder_num_attention_heads] in ", config.where(), " is ",
                                block.decoder.heads, ", but the encoder has ", block.encoder.heads,
                                " heads; both must have as many."}));
  }
  facts.width = block.encoder.width;
  facts.encoder_layers = block.encoder.layers;
  facts.decoder_layers = block.decoder.layers;
  facts.encoder_heads = facts.decoder_heads = block.encoder.heads;
  VKF_ASSIGN(facts.target_vocab, get_size_or(config, "vocab_size", 32768, kMostVocabulary));
  VKF_ASSIGN(facts.max_target, get_size_or(config, "max_position_embeddings", 512, kMostPositions));
  facts.max_source = kMostPositions;  // frames; no table limits them
  VKF_ASSIGN(const RotarySetup rotary,
             read_moonshine_rotary(config, block.encoder.head(), facts.max_target));
  for (StackConfig* stack : {&block.encoder, &block.decoder}) {
    stack->kinds = {{.rotary = 0}};
    stack->rotaries = {rotary};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_moonshine(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "moonshine", .source = SourceKind::kWaveform};
  EncoderDecoderConfig block;
  VKF_ASSIGN(facts.architecture, get_architecture(config, "MoonshineForConditionalGeneration"));
  VKF_ASSIGN(facts.head, read_seq2seq_head(config, facts.architecture));
  if (facts.head != HeadKind::kNone) block.head = "head";
  VKF_CHECK(read_moonshine_sizes(config, facts, block));
  VKF_ASSIGN(const bool biased, config.get_bool_or("attention_bias", false));
  WaveformInput input{.convs = moonshine_convs(facts.width),
                      .frames = WaveformInput::Frames::kBySample,
                      .mask = WaveformInput::Mask::kAlways};
  facts.wave = input.facts();
  VKF_ASSIGN(GenerationFacts tokens,
             read_seq2seq_generation(files, {.pad = 0, .eos = 2, .decoder_start = 1}));
  return std::unique_ptr<ModelFamily>(new Moonshine(std::move(facts), std::move(tokens),
                                                    std::move(block), std::move(input), biased));
}

}  // namespace vkformer
