// Log-mel features: what Whisper sees of a sound (Radford et al., "Robust Speech Recognition via
// Large-Scale Weak Supervision", 2022, section 2.2). Needs: FrameFft.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "audio/mel_frames.h"
#include "vkformer/result.h"

namespace vkformer {

struct LogMelSettings {
  int64_t mel_bands = 80;         // rows of the result
  int64_t sampling_rate = 16000;  // hertz
  int64_t hop_length = 160;       // samples from one frame to the next
  int64_t fft_length = 400;       // samples a frame
  int64_t chunk_length = 30;      // seconds of sound that a result covers
  double padding_value = 0.0;     // pads audio that is too short
  bool pads_left = false;         // the padding comes before the audio
};

// A prepared extraction. Immutable; threads may share it.
class LogMel {
 public:
  static Result<LogMel> create(const LogMelSettings& settings);

  const LogMelSettings& settings() const { return settings_; }
  // Samples that are looked at, and frames that come out.
  int64_t samples() const { return settings_.chunk_length * settings_.sampling_rate; }
  int64_t frames() const { return frames_; }

  // The features of `sound` (N), cut or filled up to samples(), row by row: (mel_bands, frames()).
  Result<std::vector<float>> extract(std::span<const float> sound) const;

 private:
  LogMel(const LogMelSettings& settings, MelFrames mel);

  // The sound of samples() samples with its ends reflected, half a frame on either side.
  Result<std::vector<float>> framed_sound(std::span<const float> sound) const;

  LogMelSettings settings_;
  MelFrames mel_;
  int64_t frames_ = 0;
};

}  // namespace vkformer
