// The configuration of wav2vec2-conformer models, as config.json gives it.
#pragma once

#include "model/model.h"
#include "ops/activation.h"

namespace vkformer {

// A convolution over time.
struct SoundConv {
  int64_t in = 1, out = 0;
  int64_t kernel = 1, stride = 1;
};

struct ConformerConfig {
  std::vector<SoundConv> convs;
  enum class ConvNorm : uint8_t { kGroup, kLayer } norm = ConvNorm::kGroup;
  enum class ConvBias : uint8_t { kNo, kYes } bias = ConvBias::kNo;
  ActivationKind conv_activation = ActivationKind::kGelu;
  ActivationKind activation = ActivationKind::kGelu;
  float epsilon = 1e-5f;
  int64_t layers = 0, width = 0, heads = 0, ffn = 0;
  int64_t kernel = 0;  // of the depthwise convolution
  // kByFile: relative where the file has weights for them.
  enum class Positions : uint8_t {
    kNone,
    kRelative,
    kRotary,
    kByFile
  } positions = Positions::kRelative;
  double base = 10000.0;  // of rotary positions
  int64_t classes = 0;    // of the head
  std::string head;       // its module
};

// Reads sizes and switches, and into `facts` the architecture, its head and labels.
Status read_conformer(const JsonConfig& config, ModelFacts& facts, ConformerConfig& result);

}  // namespace vkformer
