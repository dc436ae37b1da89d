// VITS (Kim et al., 2021, "Conditional variational autoencoder with adversarial learning for
// end-to-end text-to-speech"): a text spoken. A Transformer with relative positions (Shaw et al.,
// 2018) reads letters or phonemes. Flows (Durkan et al., 2019) or convolutions tell for how many
// frames each is spoken. A second pass makes a waveform of the frames: residual coupling flows over
// WaveNets (van den Oord et al., 2016), then HiFi-GAN.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/relative_attention.h"
#include "model/blocks/seeded_normals.h"
#include "model/blocks/stack_attention.h"
#include "model/blocks/text_embedding.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/mask_input.h"
#include "model/vits_config.h"
#include "model/weight_rows.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/conv.h"
#include "ops/gated_activation.h"
#include "ops/gather_rows.h"
#include "ops/inverse_spline.h"
#include "ops/layer_norm.h"
#include "ops/move_columns.h"
#include "weights/fold_batch_norm.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostTokens = 1 << 16;       // of a text
constexpr int64_t kMostSamplingRate = 768000;  // hertz
constexpr double kMostFrames = 1 << 18;        // of a text, more than an hour of speech
constexpr float kSeparableEpsilon = 1e-5f;     // which layer_norm_eps does not set
constexpr int64_t kDurationChannels = 2;
const char* const kSpeaker = "speaker";  // feed: the row of its embedding
const char* const kFrameRows =
    "frame_rows";  // feed: rows that stay, and none for those that do not

// Sizes that a pass has beside ForwardShape's own: whether texts are padded, whether a speaker was
// chosen.
enum MoreSizes : size_t { kMasked, kSpeakerChosen, kMoreSizes };

bool size_of(const ForwardShape& shape, MoreSizes which) {
  return shape.more.size() == kMoreSizes && shape.more[which] != 0;
}

// What a caller may set for a pass, or config.json's.
struct SpeechSettings {
  double noise = 0;
  double duration_noise = 0;
  double speaking_rate = 1;
  uint64_t seed = 0;
  int64_t speaker = -1;  // -1: none
};

std::string layer_of(const std::string& name, int64_t layer) {
  return name + "." + std::to_string(layer);
}

// One number of any shape with one element; `fallback` where the caller gave none.
Result<double> number_or(const TensorMap& inputs, const std::string& name, double fallback) {
  const auto found = inputs.find(name);
  if (found == inputs.end()) return fallback;
  if (element_count(found->second.shape) != 1) {
    return invalid_argument(message(
        {"[", name, "] has shape ", shape_text(found->second.shape), ", but must be one number."}));
  }
  VKF_ASSIGN(const std::vector<float> values, found->second.to_floats());
  return double{values[0]};
}

Result<double> scale_or(const TensorMap& inputs, const std::string& name, double fallback) {
  VKF_ASSIGN(const double value, number_or(inputs, name, fallback));
  if (std::isfinite(value) && value >= 0) return value;
  return invalid_argument(
      message({"[", name, "] is ", value, ", but must be finite and at least 0."}));
}

// Rows 0, 1, ... of x (B, T, C) with `addend` (1, C) added to each.
Result<TensorId> add_to_all(ModelBuilder& b, TensorId addend, TensorId x) {
  Shape rows = b.graph().tensor(x).shape;
  rows.pop_back();
  std::vector<uint32_t> same(static_cast<size_t>(element_count(rows)));
  std::iota(same.begin(), same.end(), 0u);
  const TensorId indices =
      b.host_tensor("rows." + shape_text(rows), DType::kU32, rows, std::move(same));
  return add_gather_rows(b.graph(), {.x = x, .indices = indices, .addend = addend});
}

// The linear layer `row` of the speaker's embedding: (1, C).
Result<TensorId> add_condition(ModelBuilder& b, const std::string& row) {
  Graph& g = b.graph();
  TensorId speaker = g.find_external(kSpeaker);
  if (speaker == kNoTensor) {
    speaker = g.add_external(kSpeaker, DType::kU32, {1});
    b.feed(kSpeaker, speaker);
  }
  g.set_scope(row);
  VKF_ASSIGN(const TensorId table, b.table("speakers"));
  VKF_ASSIGN(const TensorId embedding, add_gather_rows(g, {.x = table, .indices = speaker}));
  return add_named_linear(b, row, embedding);
}

// x (B, T, C) plus that, where a speaker was chosen.
Result<TensorId> add_speaker(ModelBuilder& b, const ForwardShape& shape, const std::string& row,
                             TensorId x) {
  if (!size_of(shape, kSpeakerChosen)) return x;
  VKF_ASSIGN(const TensorId condition, add_condition(b, row));
  return add_to_all(b, condition, x);
}

// What frames are made of.
struct FrameSource {
  int64_t width = 0;   // F
  int64_t frames = 0;  // T of every row
  double noise = 0;
  std::vector<float> normals;  // (B, T, F); empty without noise
};

// Appends the frames of row `batch` to both halves of all latents (B, T, F / 2). Each token has as
// many frames as its duration, with its means and log deviations, prior (S, 2 F).
void append_frames(const FrameSource& source, int64_t batch, int64_t length,
                   std::span<const int64_t> durations, std::span<const float> prior,
                   std::array<std::vector<float>, 2>& halves) {
  const int64_t width = source.width;
  size_t token = 0;
  int64_t left = durations.empty() ? 0 : durations[0];
  for (int64_t t = 0; t < source.frames; ++t) {
    while (token < durations.size() && left == 0) {
      left = ++token < durations.size() ? durations[token] : 0;
    }
    --left;
    const bool spoken = token < durations.size();
    const float* row = prior.data() + token * static_cast<size_t>(2 * width);
    for (int64_t f = 0; f < width; ++f) {
      double value = spoken ? double{row[f]} : 0.0;
      if (!source.normals.empty() && t < length) {
        const auto at = static_cast<size_t>((batch * source.frames + t) * width + f);
        const double deviation = std::exp(spoken ? double{row[width + f]} : 0.0);
        value += double{source.normals[at]} * deviation * source.noise;
      }
      halves[f < width / 2 ? 0 : 1].push_back(static_cast<float>(value));
    }
  }
}

class Vits : public ModelFamily {
 public:
  Vits(ModelFacts facts, VitsConfig config) : facts_(std::move(facts)), c_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override {
    return {"noise_scale", "noise_scale_duration", "seed", "speaker_id", "speaking_rate"};
  }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;
  Result<ForwardInputs> second_inputs(const TensorMap& inputs, TensorMap& outputs) const override;
  Result<ForwardShape> second_shape(const ForwardShape& first, int64_t frames) const override;
  Status build_second(ModelBuilder& builder, const ForwardShape& shape) const override;

 private:
  bool by_flows() const { return c_.durations == VitsConfig::Durations::kFlows; }
  WaveConv ffn_conv(int64_t layer, bool up) const;
  WaveConv duration_conv(int which) const;
  WaveConv wave_conv(int64_t flow, int64_t layer) const;

  Status add_encoder_rows(const Checkpoint& checkpoint, WeightTable& table) const;
  Status add_duration_rows(const Checkpoint& checkpoint, WeightTable& table) const;
  Status add_separable_rows(const Checkpoint& checkpoint, const std::string& to,
                            const std::string& from, WeightTable& table) const;
  void add_flow_rows(const Checkpoint& checkpoint, WeightTable& table) const;

  Result<SpeechSettings> read_settings(const TensorMap& inputs) const;
  // Frames of each token (B, S), by the log durations that the first pass gave.
  Result<std::vector<int64_t>> read_durations(const Tensor& raw, std::span<const uint8_t> kept,
                                              double rate) const;

  // The parts of a pass. `hide` makes rows of padding zeros.
  using Hide = std::function<Result<TensorId>(TensorId x)>;
  Result<TensorId> add_encoder(ModelBuilder& b, const ForwardShape& shape, const ForwardTaps& taps,
                               const Hide& hide) const;
  Result<TensorId> add_durations(ModelBuilder& b, const ForwardShape& shape, const Hide& hide,
                                 TensorId x) const;
  Result<TensorId> add_duration_flows(ModelBuilder& b, const ForwardShape& shape, const Hide& hide,
                                      TensorId x) const;
  Result<TensorId> add_separable(ModelBuilder& b, const std::string& rows, const Hide& hide,
                                 TensorId x) const;
  Result<TensorId> add_wave_net(ModelBuilder& b, const ForwardShape& shape, int64_t flow,
                                const Hide& hide, TensorId x) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  VitsConfig c_;
  // Of log durations that flows sample: what is subtracted, then what multiplies.
  double shift_ = 0, scale_ = 1;
};

WaveConv Vits::ffn_conv(int64_t layer, bool up) const {
  const int64_t d = c_.stack.width, f = c_.stack.ffn;
  return {.row = c_.stack.layer_rows(layer) + (up ? ".ffn.up" : ".ffn.down"),
          .in = up ? d : f,
          .out = up ? f : d,
          .kernel = c_.ffn_kernel,
          .pad = (c_.ffn_kernel - 1) / 2};
}

WaveConv Vits::duration_conv(int which) const {
  return {.row = layer_of("duration", which),
          .in = which == 0 ? c_.stack.width : c_.duration_width,
          .out = c_.duration_width,
          .kernel = c_.duration_kernel};
}

WaveConv Vits::wave_conv(int64_t flow, int64_t layer) const {
  int64_t dilation = 1;
  for (int64_t i = 0; i < layer; ++i) dilation *= c_.wave_dilation;
  return {.row = layer_of(layer_of("flow", flow), layer) + ".in",
          .in = c_.stack.width,
          .out = 2 * c_.stack.width,
          .kernel = c_.wave_kernel,
          .dilation = dilation};
}

Status Vits::prepare(const Checkpoint& checkpoint) {
  if (!by_flows()) return {};
  const std::string from = "duration_predictor.flows.0.";
  VKF_ASSIGN(const std::vector<float> shifts,
             read_floats(checkpoint, from + "translate", {kDurationChannels, 1}));
  VKF_ASSIGN(const std::vector<float> logs,
             read_floats(checkpoint, from + "log_scale", {kDurationChannels, 1}));
  shift_ = double{shifts[0]};
  scale_ = std::exp(-double{logs[0]});
  return {};
}

Status Vits::add_encoder_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const StackConfig& s = c_.stack;
  const int64_t d = s.width, e = s.head(), near = 2 * c_.window + 1;
  const bool bias = c_.bias == VitsConfig::Bias::kYes;
  table.rows.push_back(
      embedding_row("words", "text_encoder.embed_tokens.weight", facts_.source_vocab, d));
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string layer = "text_encoder.encoder.layers." + std::to_string(i) + ".";
    const std::string self = layer + "attention.";
    table.rows.push_back(biased_row(bias, to + ".self.qkv",
                                    {self + "q_proj", self + "k_proj", self + "v_proj"}, 3 * d, d));
    table.rows.push_back(biased_row(bias, to + ".self.out", {self + "out_proj"}, d, d));
    table.rows.push_back(norm_row(to + ".self.norm", layer + "layer_norm", d));
    // Keys, then values, of distances -window - 1 to window + 1; those of the ends stand for all
    // that are farther, and are zeros.
    std::vector<float> relative;
    for (const char* name : {"emb_rel_k", "emb_rel_v"}) {
      VKF_ASSIGN(const std::vector<float> stored,
                 read_floats(checkpoint, self + name, {1, near, e}));
      relative.resize(relative.size() + static_cast<size_t>(e), 0.0f);
      relative.insert(relative.end(), stored.begin(), stored.end());
      relative.resize(relative.size() + static_cast<size_t>(e), 0.0f);
    }
    table.rows.push_back(computed_row(to + ".relative", std::move(relative), 2 * (near + 2), e));
    table.ignored.push_back(self + "emb_rel_*");
    const std::string feed = layer + "feed_forward.";
    table.rows.push_back(wave_row(checkpoint, ffn_conv(i, true), feed + "conv_1"));
    table.rows.push_back(wave_row(checkpoint, ffn_conv(i, false), feed + "conv_2"));
    table.rows.push_back(norm_row(to + ".ffn.norm", layer + "final_layer_norm", d));
  }
  table.rows.push_back(linear_row("prior", {"text_encoder.project"}, 2 * c_.flow_width, d));
  return {};
}

Status Vits::add_separable_rows(const Checkpoint& checkpoint, const std::string& to,
                                const std::string& from, WeightTable& table) const {
  const SeparableConvs convs = c_.separable();
  const int64_t d = convs.width;
  for (int64_t i = 0; i < convs.layers; ++i) {
    const std::string conv = layer_of(from + "convs_dilated", i);
    VKF_ASSIGN(const std::vector<float> weight,
               read_floats(checkpoint, conv + ".weight", {d, 1, convs.kernel}));
    VKF_ASSIGN(const std::vector<float> bias, read_floats(checkpoint, conv + ".bias", {d}));
    // The operator has no dilation: what it skips are zeros of the kernel.
    const int64_t dilation = convs.dilation(i), covered = (convs.kernel - 1) * dilation + 1;
    std::vector<float> spread(static_cast<size_t>(d * covered), 0.0f);
    for (int64_t n = 0; n < d; ++n) {
      for (int64_t k = 0; k < convs.kernel; ++k) {
        spread[static_cast<size_t>(n * covered + k * dilation)] =
            weight[static_cast<size_t>(n * convs.kernel + k)];
      }
    }
    VKF_ASSIGN(std::vector<float> packed,
               pack_conv({.name = conv, .out = d, .weight = spread, .bias = bias}));
    const std::string row = layer_of(to, i);
    table.rows.push_back(computed_row(row + ".wide", std::move(packed), d, covered + 1));
    table.ignored.push_back(conv + ".*");
    table.rows.push_back(linear_row(row + ".dense", {layer_of(from + "convs_pointwise", i)}, d, d));
    table.rows.push_back(norm_row(row + ".wide_norm", layer_of(from + "norms_1", i), d));
    table.rows.push_back(norm_row(row + ".dense_norm", layer_of(from + "norms_2", i), d));
  }
  return {};
}

Status Vits::add_duration_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const std::string from = "duration_predictor.";
  const int64_t d = c_.stack.width;
  auto& rows = table.rows;
  if (c_.speakers > 0) {
    rows.push_back(linear_row("duration.speaker", {from + "cond"}, d, c_.speaker_width));
  }
  if (!by_flows()) {
    for (int i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i + 1);
      rows.push_back(wave_row(checkpoint, duration_conv(i), from + "conv_" + number));
      rows.push_back(
          norm_row(duration_conv(i).row + ".norm", from + "norm_" + number, c_.duration_width));
    }
    rows.push_back(linear_row("duration.out", {from + "proj"}, 1, c_.duration_width));
    return {};
  }
  rows.push_back(linear_row("duration.in", {from + "conv_pre"}, d, d));
  rows.push_back(linear_row("duration.out", {from + "conv_proj"}, d, d));
  VKF_CHECK(add_separable_rows(checkpoint, "duration.convs", from + "conv_dds.", table));
  const int64_t bins = c_.spline_bins;
  const auto scaled = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
  for (int64_t k = 2; k <= c_.duration_flows; ++k) {
    const std::string flow = layer_of(from + "flows", k) + ".", to = layer_of("duration.flow", k);
    rows.push_back(linear_row(to + ".in", {flow + "conv_pre"}, d, 1));
    rows.push_back(linear_row(to + ".out", {flow + "conv_proj"}, 3 * bins - 1, d));
    // Logits of widths and heights are divided by the root of the width.
    rows.back().row_scales.assign(static_cast<size_t>(3 * bins - 1), 1.0f);
    std::fill_n(rows.back().row_scales.begin(), 2 * bins, scaled);
    VKF_CHECK(add_separable_rows(checkpoint, to, flow + "conv_dds.", table));
  }
  // Read on the host, or used in training only.
  table.ignored.insert(table.ignored.end(),
                       {from + "flows.0.*", from + "flows.1.*", from + "post_*"});
  return {};
}

void Vits::add_flow_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const int64_t d = c_.stack.width, half = c_.flow_width / 2;
  auto& rows = table.rows;
  for (int64_t k = 0; k < c_.flows; ++k) {
    const std::string from = layer_of("flow.flows", k) + ".", to = layer_of("flow", k);
    // Channels are in reverse order before every other flow, the last one first.
    const bool reversed = (c_.flows - k) % 2 != 0;
    const WaveConv in{.row = to + ".in", .in = half, .out = d};
    rows.push_back(reversed ? reversed_inputs_row(checkpoint, in, from + "conv_pre")
                            : wave_row(checkpoint, in, from + "conv_pre"));
    rows.push_back(linear_row(to + ".out", {from + "conv_post"}, half, d));
    if (reversed) {
      rows.back().row_order.resize(static_cast<size_t>(half));
      std::iota(rows.back().row_order.rbegin(), rows.back().row_order.rend(), 0u);
    }
    const std::string net = from + "wavenet.";
    if (c_.speakers > 0) {
      const WaveConv all{
          .row = to + ".speaker", .in = c_.speaker_width, .out = 2 * d * c_.wave_layers};
      rows.push_back(wave_row(checkpoint, all, net + "cond_layer"));
    }
    for (int64_t i = 0; i < c_.wave_layers; ++i) {
      rows.push_back(wave_row(checkpoint, wave_conv(k, i), layer_of(net + "in_layers", i)));
      const std::string part = layer_of(net + "res_skip_layers", i);
      const bool last = i + 1 == c_.wave_layers;
      const int64_t whole = last ? d : 2 * d;
      const std::string layer = layer_of(to, i);
      if (!last) {
        rows.push_back(wave_part_row(checkpoint, {.row = layer + ".next", .in = d, .out = d}, part,
                                     {.whole = whole}));
      }
      rows.push_back(wave_part_row(checkpoint, {.row = layer + ".skip", .in = d, .out = d}, part,
                                   {.whole = whole, .first = whole - d}));
    }
  }
}

Result<WeightTable> Vits::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  VKF_CHECK(add_encoder_rows(checkpoint, table));
  VKF_CHECK(add_duration_rows(checkpoint, table));
  add_flow_rows(checkpoint, table);
  add_hifi_gan_rows(checkpoint, c_.vocoder, "decoder.", table);
  if (c_.speakers > 0) {
    table.rows.push_back(
        table_row("speakers", {"embed_speaker.weight"}, {c_.speakers}, c_.speaker_width));
    table.rows.push_back(
        linear_row("vocoder.speaker", {"decoder.cond"}, c_.vocoder.channels, c_.speaker_width));
  } else {
    // Layers for speakers that the model does not have.
    table.ignored.insert(table.ignored.end(), {"*.cond.*", "*.cond_layer.*"});
  }
  table.ignored.push_back("posterior_encoder.*");  // used in training only
  return table;
}

Result<SpeechSettings> Vits::read_settings(const TensorMap& inputs) const {
  SpeechSettings s;
  VKF_ASSIGN(s.noise, scale_or(inputs, "noise_scale", c_.noise));
  VKF_ASSIGN(s.duration_noise, scale_or(inputs, "noise_scale_duration", c_.duration_noise));
  VKF_ASSIGN(s.speaking_rate, scale_or(inputs, "speaking_rate", c_.speaking_rate));
  if (s.speaking_rate == 0) {
    return invalid_argument("[speaking_rate] is 0, but must be above it; 1 is the usual speed.");
  }
  for (const auto& [name, value] : inputs) {
    if (name != "seed" && name != "speaker_id") continue;
    VKF_ASSIGN(const std::vector<int64_t> numbers, value.to_ints());
    if (numbers.size() != 1) {
      return invalid_argument(message(
          {"[", name, "] has shape ", shape_text(value.shape), ", but must be one number."}));
    }
    if (name == "seed") {
      s.seed = static_cast<uint64_t>(numbers[0]);
    } else {
      s.speaker = numbers[0];
    }
  }
  if (inputs.count("speaker_id") == 0 || (s.speaker >= 0 && s.speaker < c_.speakers)) return s;
  if (c_.speakers == 0) {
    return invalid_argument(message({"[speaker_id] is ", s.speaker, ", but this ",
                                     facts_.architecture, " has one voice; omit it."}));
  }
  return invalid_argument(
      message({"[speaker_id] is ", s.speaker, ", but this model has the speakers 0 to ",
               c_.speakers - 1, "."}));
}

Status Vits::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  VKF_ASSIGN(const SpeechSettings settings, read_settings(inputs));
  const int64_t batch = result.shape.batch, tokens = result.shape.source;
  result.shape.more.assign(kMoreSizes, 0);
  const std::vector<uint32_t>& rows = result.words["kept_rows"];
  result.shape.more[kMasked] = std::count(rows.begin(), rows.end(), ~0u) > 0 ? 1 : 0;
  if (settings.speaker >= 0) {
    result.shape.more[kSpeakerChosen] = 1;
    result.words[kSpeaker] = {static_cast<uint32_t>(settings.speaker)};
  }
  if (!by_flows()) return {};
  const auto count = static_cast<size_t>(batch * tokens);
  std::vector<float> noise(kDurationChannels * count, 0.0f);
  if (settings.duration_noise > 0) noise = SeededNormals(settings.seed).next(noise.size());
  // (B, 2, S), a tensor for each channel.
  for (int64_t channel = 0; channel < kDurationChannels; ++channel) {
    std::vector<float> values;
    for (int64_t i = 0; i < batch; ++i) {
      for (int64_t t = 0; t < tokens; ++t) {
        const auto at = static_cast<size_t>((i * kDurationChannels + channel) * tokens + t);
        values.push_back(static_cast<float>(settings.duration_noise) * noise[at]);
      }
    }
    result.words[layer_of("duration_noise", channel)] = float_words(values);
  }
  return {};
}

// Attention of qkv (B, T, 3 D), whose keys and values have embeddings of their distance (4 reach +
// 2, E), too.
Result<TensorId> add_relative_attention(const LayerSite& site, TensorId qkv, int64_t reach) {
  Graph& g = site.b.graph();
  const auto elements = u32(element_count(g.tensor(qkv).shape));
  VKF_ASSIGN(const TensorId relative, site.b.table(site.rows() + ".relative"));
  g.set_scope(site.rows() + ".self");
  VKF_ASSIGN(const TensorId joined, add_joined(g, std::array{qkv, relative}));
  AttentionAttrs attrs = own_attrs(site);
  attrs.relative = {.kinds = VKF_RELATIVE_KEYS | VKF_RELATIVE_VALUES | VKF_RELATIVE_ONE_HEAD,
                    .offset = elements,
                    .reach = u32(reach)};
  return attend(site, {.q = joined, .kv = joined, .terms = site.run.terms.words}, attrs,
                tap_of(site, site.c.taps));
}

Result<TensorId> Vits::add_encoder(ModelBuilder& b, const ForwardShape& shape,
                                   const ForwardTaps& taps, const Hide& hide) const {
  const StackConfig& s = c_.stack;
  const TextEmbedding words{.words = "words",
                            .scale = static_cast<float>(std::sqrt(static_cast<double>(s.width)))};
  VKF_ASSIGN(const EmbeddedTokens embedded,
             add_text_embedding(b, s, words, {}, {shape.batch, shape.source}));
  TensorId x = embedded.x;
  StackRun run{.batch = shape.batch, .tokens = shape.source, .taps = taps};
  run.terms = add_stack_terms(b, s, "key_mask", shape.batch, shape.source);
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string rows = s.layer_rows(i);
    if (taps.hidden_states == ForwardTaps::Tap::kOn) {
      b.mark_output(x, "hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(TensorId h, add_named_linear(b, rows + ".self.qkv", x));
    VKF_ASSIGN(h, add_relative_attention({b, s, run, i}, h, c_.window + 1));
    VKF_ASSIGN(x, add_named_linear(b, rows + ".self.out", h, {.residual = x}));
    VKF_ASSIGN(x, add_named_norm(b, s, rows + ".self.norm", x));
    VKF_ASSIGN(h, hide(x));
    VKF_ASSIGN(h, add_wave_conv(b, ffn_conv(i, true), h, {.activation = s.activation}));
    VKF_ASSIGN(h, hide(h));
    VKF_ASSIGN(x, add_wave_conv(b, ffn_conv(i, false), h, {.residual = x}));
    VKF_ASSIGN(x, add_named_norm(b, s, rows + ".ffn.norm", x));
  }
  return hide(x);
}

Result<TensorId> Vits::add_durations(ModelBuilder& b, const ForwardShape& shape, const Hide& hide,
                                     TensorId x) const {
  if (by_flows()) return add_duration_flows(b, shape, hide, x);
  VKF_ASSIGN(x, add_speaker(b, shape, "duration.speaker", x));
  for (int i = 0; i < 2; ++i) {
    const WaveConv conv = duration_conv(i);
    VKF_ASSIGN(x, hide(x));
    VKF_ASSIGN(x, add_wave_conv(b, conv, x, {.activation = ActivationKind::kRelu}));
    VKF_ASSIGN(x, add_named_norm(b, c_.stack, conv.row + ".norm", x));
  }
  return add_named_linear(b, "duration.out", x);
}

// x (B, S, D) through separable convolutions, each added to what it reads.
Result<TensorId> Vits::add_separable(ModelBuilder& b, const std::string& rows, const Hide& hide,
                                     TensorId x) const {
  Graph& g = b.graph();
  const SeparableConvs convs = c_.separable();
  const auto normed = [&](const std::string& name, TensorId h) -> Result<TensorId> {
    g.set_scope(name);
    VKF_ASSIGN(const TensorId gain, b.norm(name));
    VKF_ASSIGN(h, add_layer_norm(g, {.x = h, .gain_bias = gain}, {.epsilon = kSeparableEpsilon}));
    return add_activation(g, h, {ActivationKind::kGelu});
  };
  for (int64_t i = 0; i < convs.layers; ++i) {
    const std::string row = layer_of(rows, i);
    const int64_t covered = (convs.kernel - 1) * convs.dilation(i) + 1;
    VKF_ASSIGN(TensorId h, hide(x));
    g.set_scope(row + ".wide");
    VKF_ASSIGN(const TensorId table, b.table(row + ".wide"));
    ConvAttrs conv{.groups = u32(convs.width)};
    conv.window.kernel_width = u32(covered);
    conv.window.pad_left = u32(covered / 2);
    VKF_ASSIGN(h, add_conv(g, h, table, conv));
    VKF_ASSIGN(h, normed(row + ".wide_norm", h));
    VKF_ASSIGN(h, add_named_linear(b, row + ".dense", h));
    VKF_ASSIGN(h, normed(row + ".dense_norm", h));
    g.set_scope(row + ".sum");
    VKF_ASSIGN(x, add_combine(g, x, h, {}));
  }
  return hide(x);
}

// The second channel of what the flows make of noise, before its shift and scale: (B, S, 1).
Result<TensorId> Vits::add_duration_flows(ModelBuilder& b, const ForwardShape& shape,
                                          const Hide& hide, TensorId x) const {
  Graph& g = b.graph();
  VKF_ASSIGN(x, add_named_linear(b, "duration.in", x));
  VKF_ASSIGN(x, add_speaker(b, shape, "duration.speaker", x));
  VKF_ASSIGN(x, add_separable(b, "duration.convs", hide, x));
  VKF_ASSIGN(x, add_named_linear(b, "duration.out", x));
  VKF_ASSIGN(x, hide(x));
  std::array<TensorId, kDurationChannels> channels{};
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::string name = layer_of("duration_noise", static_cast<int64_t>(i));
    channels[i] = g.add_external(name, DType::kF32, {shape.batch, shape.source, 1});
    b.feed(name, channels[i]);
  }
  // Each flow exchanges the channels, and the first one then says what becomes of the second.
  for (int64_t k = c_.duration_flows; k >= 2; --k) {
    const std::string flow = layer_of("duration.flow", k);
    std::swap(channels[0], channels[1]);
    VKF_ASSIGN(TensorId h, add_named_linear(b, flow + ".in", channels[0], {.residual = x}));
    VKF_ASSIGN(h, add_separable(b, flow, hide, h));
    VKF_ASSIGN(h, add_named_linear(b, flow + ".out", h));
    // (B, S, 1, 3 K - 1), so that each number has a row.
    Shape& shape_of = g.tensor(h).shape;
    shape_of.insert(shape_of.end() - 1, 1);
    g.set_scope(flow + ".spline");
    VKF_ASSIGN(channels[1], add_inverse_spline(g, channels[1], h,
                                               {.bins = u32(c_.spline_bins),
                                                .bound = static_cast<float>(c_.spline_bound)}));
  }
  if (c_.duration_flows > 1) return channels[1];
  // What the host feeds cannot be what it reads.
  g.set_scope("duration.noise");
  return add_combine(g, channels[1], channels[1], {.alpha = 0.5f, .beta = 0.5f});
}

Status Vits::build_forward(ModelBuilder& b, const ForwardShape& shape,
                           const ForwardTaps& taps) const {
  const Hide hide = [&](TensorId x) -> Result<TensorId> {
    return size_of(shape, kMasked) ? hide_masked_rows(b, "", x) : Result<TensorId>(x);
  };
  VKF_ASSIGN(const TensorId x, add_encoder(b, shape, taps, hide));
  VKF_ASSIGN(const TensorId prior, add_named_linear(b, "prior", x));
  b.mark_output(prior, "prior");
  VKF_ASSIGN(const TensorId durations, add_durations(b, shape, hide, x));
  b.mark_output(durations, "log_durations");
  return {};
}

Result<std::vector<int64_t>> Vits::read_durations(const Tensor& raw, std::span<const uint8_t> kept,
                                                  double rate) const {
  VKF_ASSIGN(const std::vector<float> logs, raw.to_floats());
  const auto tokens = static_cast<size_t>(raw.shape[1]);
  std::vector<int64_t> durations;
  double frames = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    if (i % tokens == 0) frames = 0;
    const double log = (double{logs[i]} - shift_) * scale_;
    const double duration = kept[i] == 0 ? 0 : std::ceil(std::exp(log) / rate);
    frames += duration;
    if (!(frames <= kMostFrames)) {
      return invalid_argument(
          message({"[input_ids] token ", i % tokens, " of row ", i / tokens, " would last ",
                   duration, " frames, but a text may have ", kMostFrames,
                   " in all; give a shorter text, a higher speaking_rate or a lower "
                   "noise_scale_duration."}));
    }
    durations.push_back(static_cast<int64_t>(duration));
  }
  return durations;
}

Result<ForwardInputs> Vits::second_inputs(const TensorMap& inputs, TensorMap& outputs) const {
  VKF_ASSIGN(const SpeechSettings settings, read_settings(inputs));
  const Tensor raw = std::move(outputs.extract("log_durations").mapped());
  const Tensor given = std::move(outputs.extract("prior").mapped());
  const int64_t batch = raw.shape[0], tokens = raw.shape[1], width = c_.flow_width;
  std::vector<uint8_t> kept(static_cast<size_t>(batch * tokens), 1);
  const auto mask = inputs.find("attention_mask");
  if (mask != inputs.end()) {
    VKF_ASSIGN(kept, mask_flags("attention_mask", mask->second));
  }
  VKF_ASSIGN(const std::vector<int64_t> durations,
             read_durations(raw, kept, settings.speaking_rate));
  VKF_ASSIGN(const std::vector<float> prior, given.to_floats());
  std::vector<int64_t> lengths, samples;
  for (int64_t i = 0; i < batch; ++i) {
    const auto row = durations.begin() + i * tokens;
    lengths.push_back(std::max<int64_t>(1, std::accumulate(row, row + tokens, int64_t{0})));
    int64_t per_frame = lengths.back();
    for (const HifiGan::Stage& stage : c_.vocoder.stages) per_frame *= stage.rate;
    samples.push_back(per_frame);
  }
  const int64_t frames = *std::max_element(lengths.begin(), lengths.end());
  FrameSource source{.width = width, .frames = frames, .noise = settings.noise};
  if (settings.noise > 0) {
    SeededNormals normals(settings.seed);
    if (by_flows()) normals.next(static_cast<size_t>(kDurationChannels * batch * tokens));
    // The library draws them for means that it has transposed.
    source.normals = normals.next_of_transposed(static_cast<size_t>(batch * frames * width));
  }
  ForwardInputs result{.shape = {.batch = batch, .source = frames}};
  result.shape.more.assign(kMoreSizes, 0);
  std::array<std::vector<float>, 2> halves;
  for (int64_t i = 0; i < batch; ++i) {
    const std::span<const int64_t> own(durations.data() + i * tokens, static_cast<size_t>(tokens));
    const std::span<const float> rows(prior.data() + i * tokens * 2 * width,
                                      static_cast<size_t>(tokens * 2 * width));
    append_frames(source, i, lengths[static_cast<size_t>(i)], own, rows, halves);
  }
  for (size_t half = 0; half < 2; ++half) {
    result.words[layer_of("latents", static_cast<int64_t>(half))] = float_words(halves[half]);
  }
  const bool padded = *std::min_element(lengths.begin(), lengths.end()) < frames;
  result.shape.more[kMasked] = padded ? 1 : 0;
  std::vector<uint32_t>& rows = result.words[kFrameRows];
  for (int64_t i = 0; padded && i < batch; ++i) {
    for (int64_t t = 0; t < frames; ++t) {
      rows.push_back(t < lengths[static_cast<size_t>(i)] ? u32(i * frames + t) : ~0u);
    }
  }
  if (settings.speaker >= 0) {
    result.shape.more[kSpeakerChosen] = 1;
    result.words[kSpeaker] = {static_cast<uint32_t>(settings.speaker)};
  }
  outputs["durations"] = Tensor::from_ints({batch, tokens}, durations);
  outputs["sequence_lengths"] = Tensor::from_ints({batch}, samples);
  return result;
}

Result<ForwardShape> Vits::second_shape(const ForwardShape& first, int64_t frames) const {
  if (static_cast<double>(frames) > kMostFrames) {
    return invalid_argument(message({"[sizes] ", frames, " frames of speech are more than the ",
                                     static_cast<int64_t>(kMostFrames),
                                     " that one text may have; speak it in parts."}));
  }
  ForwardShape shape{.batch = first.batch, .source = frames};
  shape.more.assign(kMoreSizes, 0);
  shape.more[kSpeakerChosen] = size_of(first, kSpeakerChosen) ? 1 : 0;
  return shape;
}

// x (B, T, D) through the WaveNet of a flow -> the sum of what its layers give.
Result<TensorId> Vits::add_wave_net(ModelBuilder& b, const ForwardShape& shape, int64_t flow,
                                    const Hide& hide, TensorId x) const {
  Graph& g = b.graph();
  const int64_t d = c_.stack.width;
  const std::string rows = layer_of("flow", flow);
  TensorId conditions = kNoTensor;  // of all layers, (1, 2 D L)
  if (size_of(shape, kSpeakerChosen)) {
    VKF_ASSIGN(conditions, add_condition(b, rows + ".speaker"));
  }
  TensorId sum = kNoTensor;
  for (int64_t i = 0; i < c_.wave_layers; ++i) {
    const std::string layer = layer_of(rows, i);
    VKF_ASSIGN(TensorId h, add_wave_conv(b, wave_conv(flow, i), x));
    if (conditions != kNoTensor) {
      g.set_scope(layer + ".speaker");
      VKF_ASSIGN(
          const TensorId own,
          add_columns(g, conditions, {u32(2 * d * i), u32(2 * d * c_.wave_layers)}, {1, 2 * d}));
      VKF_ASSIGN(h, add_to_all(b, own, h));
    }
    g.set_scope(layer + ".gate");
    VKF_ASSIGN(h, add_gated_activation(
                      g, h, {.kind = ActivationKind::kTanh, .up = ActivationKind::kSigmoid}));
    VKF_ASSIGN(sum, add_named_linear(b, layer + ".skip", h, {.residual = sum}));
    if (i + 1 == c_.wave_layers) break;
    VKF_ASSIGN(x, add_named_linear(b, layer + ".next", h, {.residual = x}));
    VKF_ASSIGN(x, hide(x));
  }
  return hide(sum);
}

Status Vits::build_second(ModelBuilder& b, const ForwardShape& shape) const {
  Graph& g = b.graph();
  const int64_t half = c_.flow_width / 2;
  const Hide hide = [&](TensorId x) -> Result<TensorId> {
    if (!size_of(shape, kMasked)) return x;
    TensorId rows = g.find_external(kFrameRows);
    if (rows == kNoTensor) {
      rows = g.add_external(kFrameRows, DType::kU32, {shape.batch, shape.source});
      b.feed(kFrameRows, rows);
    }
    g.set_scope(kFrameRows);
    return add_gather_rows(g, {.x = x, .indices = rows});
  };
  std::array<TensorId, 2> halves{};
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = layer_of("latents", static_cast<int64_t>(i));
    halves[i] = g.add_external(name, DType::kF32, {shape.batch, shape.source, half});
    b.feed(name, halves[i]);
  }
  // Instead of reversing all channels before each flow, every other flow takes the halves the other
  // way around, and its weights in reverse order.
  for (int64_t k = c_.flows - 1; k >= 0; --k) {
    const std::string flow = layer_of("flow", k);
    const size_t first = (c_.flows - k) % 2 != 0 ? 1 : 0;
    VKF_ASSIGN(TensorId h, add_named_linear(b, flow + ".in", halves[first]));
    VKF_ASSIGN(h, hide(h));
    VKF_ASSIGN(h, add_wave_net(b, shape, k, hide, h));
    VKF_ASSIGN(h, add_named_linear(b, flow + ".out", h));
    TensorId& second = halves[1 - first];
    g.set_scope(flow + ".rest");
    VKF_ASSIGN(second, add_combine(g, second, h, {.beta = -1.0f}));
    VKF_ASSIGN(second, hide(second));
  }
  g.set_scope("vocoder.features");
  VKF_ASSIGN(const TensorId features, add_concat_columns(g, halves[0], halves[1]));
  HifiGanCondition condition;
  if (size_of(shape, kSpeakerChosen)) {
    condition = [&](TensorId x) { return add_speaker(b, shape, "vocoder.speaker", x); };
  }
  VKF_ASSIGN(const TensorId waveform, add_hifi_gan(b, c_.vocoder, features, condition));
  b.mark_output(waveform, "waveform");
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_vits(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "vits", .kind = ModelKind::kEncoder};
  facts.head = HeadKind::kSpeech;
  facts.passes = ModelFacts::Passes::kTwo;
  VKF_ASSIGN(facts.architecture, get_architecture(config, "VitsModel"));
  if (facts.architecture != "VitsModel") {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', which is not supported; of this family ", "VitsModel is."}));
  }
  VKF_ASSIGN(VitsConfig vits, read_vits_config(config));
  VKF_ASSIGN(facts.source_vocab, get_size_or(config, "vocab_size", 38, kMostVocabulary));
  VKF_ASSIGN(facts.sampling_rate, get_size_or(config, "sampling_rate", 16000, kMostSamplingRate));
  facts.width = vits.stack.width;
  facts.encoder_layers = vits.stack.layers;
  facts.encoder_heads = vits.stack.heads;
  facts.max_source = kMostTokens;
  facts.speakers = vits.speakers;
  return std::unique_ptr<ModelFamily>(new Vits(std::move(facts), std::move(vits)));
}

}  // namespace vkformer
