// MelFrames: the energy of mel bands in frames of a sound, which feature extractors take logarithms
// of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "audio/frame_fft.h"

namespace vkformer {

struct MelFrameSettings {
  int64_t bands = 80;             // rows of the result
  int64_t sampling_rate = 16000;  // hertz
  int64_t hop_length = 160;       // samples from one frame to the next
  double top = 8000.0;            // where the last band ends, in hertz
};

// A whole number of a feature extractor's settings, its key in the file, and its limits.
struct FeatureLimit {
  const char* key;
  int64_t value;
  int64_t least;
  int64_t most;
};
// An error names the first value outside its limits.
Status check_feature_limits(std::span<const FeatureLimit> limits);

// Immutable once made; threads may share it.
class MelFrames {
 public:
  // Frames are as long as `window`, whose values multiply their samples. Bands are triangles of
  // area 1 on Slaney's scale ("Auditory Toolbox", 1998).
  static Result<MelFrames> create(const MelFrameSettings& settings, std::vector<float> window);

  // Energies of `frames` frames row by row, (bands, frames). `padded` has all their samples.
  std::vector<float> energies(std::span<const float> padded, int64_t frames) const;

 private:
  // A triangle over the bins from `first` on.
  struct Filter {
    size_t first = 0;
    std::vector<float> weights;
  };

  MelFrames(const MelFrameSettings& settings, FrameFft fft, std::vector<float> window);
  void make_filters();
  // Writes the bands of 2 * kLanes frames from `frame` on; those beyond the last are omitted.
  void transform(std::span<const float> padded, int64_t frame, int64_t frames,
                 std::vector<float>& out) const;

  MelFrameSettings settings_;
  FrameFft fft_;
  std::vector<float> window_;
  std::vector<Filter> filters_;  // one per band
};

// A Hann window: of `length` samples of a period, which does not end with its first value again, or
// symmetric.
enum class HannWindow : uint8_t { kPeriodic, kSymmetric };
std::vector<float> hann_window(int64_t length, HannWindow kind);

}  // namespace vkformer
