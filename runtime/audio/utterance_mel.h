// UtteranceMel: log-mel features of a whole recording, as Parakeet and other models of NeMo take
// them. Each band has a mean of 0 and a variance of 1.
#pragma once

#include "audio/mel_frames.h"
#include "checkpoint/file_store.h"

namespace vkformer {

struct UtteranceMelSettings {
  int64_t mel_bands = 80;         // columns of the result
  int64_t sampling_rate = 16000;  // hertz
  int64_t hop_length = 160;       // samples from frame to frame
  int64_t fft_length = 512;       // samples
  int64_t window_length = 400;    // samples in the middle of a transform

  // Each sample loses this much of the one before it.
  double preemphasis = 0.97;
};

// A prepared extraction. Immutable; threads may share it.
class UtteranceMel {
 public:
  static Result<UtteranceMel> create(const UtteranceMelSettings& settings);

  const UtteranceMelSettings& settings() const { return settings_; }
  // Frames that these samples make: none where they are fewer than a hop.
  int64_t frames(size_t samples) const;
  // Samples of two frames, without which a band has no variance.
  size_t least_samples() const { return static_cast<size_t>(2 * settings_.hop_length); }

  // The features of `sound` (N) frame by frame: (frames(N), mel_bands).
  Result<std::vector<float>> extract(std::span<const float> sound) const;

 private:
  UtteranceMel(const UtteranceMelSettings& settings, MelFrames mel);

  UtteranceMelSettings settings_;
  MelFrames mel_;
};

// The settings of ParakeetFeatureExtractor in preprocessor_config.json or, where there is none, in
// the feature_extractor of processor_config.json; an error names the file.
Result<UtteranceMel> load_utterance_mel(const FileStore& files);

}  // namespace vkformer
