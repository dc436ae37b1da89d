// What config.json says of a VITS.
#pragma once

#include "model/blocks/hifi_gan.h"
#include "model/blocks/stack.h"

namespace vkformer {

// Convolutions of each channel by itself, each wider than the one before, with a dense layer after
// each (dilated depth-separable convolutions).
struct SeparableConvs {
  int64_t width = 0;  // D
  int64_t kernel = 3;
  int64_t layers = 3;

  int64_t dilation(int64_t layer) const;
};

struct VitsConfig {
  StackConfig stack;       // of the text encoder; post-norm
  int64_t window = 4;      // tokens; farther ones have no embedding of their distance
  int64_t ffn_kernel = 3;  // tokens
  enum class Bias : uint8_t { kNo, kYes } bias = Bias::kYes;  // of attention
  int64_t speakers = 0;                                       // 0: the model's own voice alone
  int64_t speaker_width = 0;                                  // of their embeddings

  int64_t flow_width = 192;  // F, of a frame
  int64_t flows = 4;
  int64_t wave_layers = 4;  // of a flow's WaveNet
  int64_t wave_kernel = 5;
  int64_t wave_dilation = 1;  // of layer i this to the power of i
  HifiGan vocoder;

  // kFlows: log durations are sampled by flows; kConvs: convolutions tell them.
  enum class Durations : uint8_t { kFlows, kConvs } durations = Durations::kFlows;
  int64_t duration_kernel = 3;
  int64_t duration_width = 256;  // of kConvs
  int64_t duration_flows = 4;    // of kFlows, the first of which is for training
  int64_t duration_layers = 3;   // of its separable convolutions
  int64_t spline_bins = 10;
  double spline_bound = 5.0;

  // What a pass takes where its caller says nothing else.
  double noise = 0.667;
  double duration_noise = 0.8;
  double speaking_rate = 1.0;

  SeparableConvs separable() const {
    return {.width = stack.width, .kernel = duration_kernel, .layers = duration_layers};
  }
};

// Sizes of the text encoder, and all else.
Result<VitsConfig> read_vits_config(const JsonConfig& config);

}  // namespace vkformer
