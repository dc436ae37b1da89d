// Waveform: samples of sound as models take them that read no features. Needs: FileStore.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/file_store.h"

namespace vkformer {

struct WaveformSettings {
  int64_t sampling_rate = 16000;  // hertz
  // kUnit: samples are moved and scaled to a mean of 0 and a variance of 1.
  enum class Scale : uint8_t { kAsIs, kUnit } scale = Scale::kAsIs;
};

// The settings of Wav2Vec2FeatureExtractor and SpeechT5FeatureExtractor in preprocessor_config.json
// or, where there is none, in the feature_extractor of processor_config.json; an error names the
// file.
Result<WaveformSettings> load_waveform_settings(const FileStore& files);

// The samples (N), which have the settings' sampling rate, as the model's input (N). A sample that
// is not finite is an error.
Result<std::vector<float>> waveform_values(const WaveformSettings& settings,
                                           std::span<const float> samples);

}  // namespace vkformer
