// The configuration of wav2vec2, hubert, wavlm and wav2vec2-conformer models, as config.json gives
// it.
#pragma once

#include "model/blocks/waveform_stem.h"
#include "ops/relative_positions.h"

namespace vkformer {

struct ConformerConfig {
  WaveformStem stem;
  ActivationKind activation = ActivationKind::kGelu;
  float epsilon = 1e-5f;
  int64_t layers = 0, width = 0, heads = 0, ffn = 0;
  // kPost and kPre: plain layers after a convolution for positions.
  enum class Layers : uint8_t { kConformer, kPost, kPre } kind = Layers::kConformer;
  int64_t kernel = 0;     // of the depthwise convolution
  PositionConv position;  // of plain layers
  enum class FeatureNorm : uint8_t { kNo, kYes } feature_norm = FeatureNorm::kYes;
  enum class FeatureTap : uint8_t { kNo, kYes } feature_tap = FeatureTap::kYes;
  // kByFile: relative where the file has weights for them.
  enum class Positions : uint8_t {
    kNone,
    kRelative,
    kRotary,
    kByFile
  } positions = Positions::kRelative;
  double base = 10000.0;  // of rotary positions
  // Of plain layers: a bias by distance that every layer gates (WavLM); no buckets: none.
  T5Buckets gated{.buckets = 0};
  int64_t classes = 0;  // of the head
  std::string head;     // its module
  int64_t blank = 0;    // the class of a CTC head that is no character
};

// Reads sizes and switches, and into `facts` the architecture, its head and labels. `classes` is
// what the library's class names begin with: "Wav2Vec2Conformer". The caller has set
// `result.kind`, any value but kConformer of which is read anew, and the defaults of
// `result.gated`, where layers have it.
Status read_conformer(const JsonConfig& config, const std::string& classes, ModelFacts& facts,
                      ConformerConfig& result);

}  // namespace vkformer
