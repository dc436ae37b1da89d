// Changes of the sampling rate by a windowed sinc. Needs: Result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// Sampling rates that sound is resampled from and to, in hertz.
inline constexpr int32_t kLeastSamplingRate = 1000;
inline constexpr int32_t kMostSamplingRate = 768000;

// `samples` (N), taken `from` times a second, as they are `to` times a second. There are ceil(N to
// / from) samples. What lies outside the sound counts as silence. Frequencies that the lower of
// both rates cannot hold are removed: flat up to 87 % of half that rate, 100 dB down from there on.
Result<std::vector<float>> resample(std::span<const float> samples, int32_t from, int32_t to);

}  // namespace vkformer
