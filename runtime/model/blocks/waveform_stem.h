// Frames of audio by convolutions over samples, and the convolution that tells frames their
// positions (Baevski et al., 2020, "wav2vec 2.0"). wav2vec2 and the models after it have them.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/blocks/waveform_input.h"
#include "ops/activation.h"

namespace vkformer {

// Convolutions of samples. Rows: conv.<i>, and conv.<i>.norm where there is one.
struct WaveformStem {
  std::vector<SoundConv> convs;
  // kGroup: every channel of the first convolution is normed over time; kLayer: every frame of
  // every convolution.
  enum class Norm : uint8_t { kGroup, kLayer } norm = Norm::kGroup;
  enum class Bias : uint8_t { kNo, kYes } bias = Bias::kNo;
  ActivationKind activation = ActivationKind::kGelu;
};

// Reads conv_dim, conv_kernel, conv_stride, conv_bias, feat_extract_norm, feat_extract_activation.
Status read_waveform_stem(const JsonConfig& config, WaveformStem& stem);
// `from` is the module of the convolutions: "feature_extractor.conv_layers.".
void add_stem_rows(const WaveformStem& stem, const std::string& from, WeightTable& table);
// Samples (B, 1, N) -> features (B, T, C).
Result<TensorId> add_stem(ModelBuilder& builder, const WaveformStem& stem, TensorId samples);

// The convolution for positions, with a row `positions`.
struct PositionConv {
  int64_t width = 0;  // D
  int64_t kernel = 0;
  int64_t groups = 1;
  ActivationKind activation = ActivationKind::kGelu;
};

// Reads num_conv_pos_embeddings and num_conv_pos_embedding_groups; the caller sets the rest.
Status read_position_conv(const JsonConfig& config, PositionConv& conv);
// `from` is its module: "encoder.pos_conv_embed.conv.".
Result<WeightRow> position_conv_row(const Checkpoint& checkpoint, const std::string& from,
                                    const PositionConv& conv);
// x (B, T, D) -> what the frames around each one say of its position (B, T, D).
Result<TensorId> add_position_conv(ModelBuilder& builder, const PositionConv& conv, TensorId x);

}  // namespace vkformer
