#include "audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Whisper's filters end here whatever the sampling rate, in hertz.
constexpr double kTopFrequency = 8000.0;
// Powers below are taken for this.
constexpr float kLeastPower = 1e-10f;
// Values so far below the greatest are raised, in powers of ten.
constexpr float kRange = 8.0f;

// Samples, values of a result, and samples that all frames have together, at most.
constexpr int64_t kMostValues = int64_t{1} << 28;
constexpr int64_t kMostFrameValues = int64_t{1} << 33;

Status check_settings(const LogMelSettings& settings) {
  const FeatureLimit limits[] = {
      {"feature_size", settings.mel_bands, 1, 1024},
      {"sampling_rate", settings.sampling_rate, 1000, 768000},
      {"hop_length", settings.hop_length, 1, 1 << 20},
      {"n_fft", settings.fft_length, 2, FrameFft::kMostLength},
      {"chunk_length", settings.chunk_length, 1, 3600},
  };
  VKF_CHECK(check_feature_limits(limits));
  const int64_t samples = settings.chunk_length * settings.sampling_rate;
  if (samples <= settings.fft_length / 2 || samples < settings.hop_length) {
    return invalid_file(message({"[chunk_length] of the feature extractor gives ", samples,
                                 " samples, too few for its n_fft of ", settings.fft_length,
                                 " and hop_length of ", settings.hop_length, "."}));
  }
  const int64_t frames = samples / settings.hop_length;
  if (samples > kMostValues || frames > kMostValues / settings.mel_bands ||
      frames > kMostFrameValues / settings.fft_length) {
    return invalid_file(
        message({"[chunk_length] of the feature extractor gives ", samples, " samples and ", frames,
                 " frames of ", settings.fft_length, " samples and ", settings.mel_bands,
                 " bands; the limits are ", kMostValues, " samples or values and ",
                 kMostFrameValues, " samples of frames."}));
  }
  if (!std::isfinite(settings.padding_value)) {
    return invalid_file("[padding_value] of the feature extractor is not finite.");
  }
  return {};
}

}  // namespace

LogMel::LogMel(const LogMelSettings& settings, MelFrames mel)
    : settings_(settings), mel_(std::move(mel)) {}

Result<LogMel> LogMel::create(const LogMelSettings& settings) {
  VKF_CHECK(check_settings(settings));
  const int64_t length = settings.fft_length;
  VKF_ASSIGN(MelFrames mel, MelFrames::create({.bands = settings.mel_bands,
                                               .sampling_rate = settings.sampling_rate,
                                               .hop_length = settings.hop_length,
                                               .top = kTopFrequency},
                                              hann_window(length, HannWindow::kPeriodic)));
  LogMel made(settings, std::move(mel));
  const int64_t padded = made.samples() + length / 2 * 2;
  // The last frame that fits is dropped, as in the original.
  made.frames_ = (padded - length) / settings.hop_length;
  if (made.frames_ < 1) {
    return invalid_file(message({"[hop_length] of the feature extractor leaves no frame of its ",
                                 made.samples(), " samples."}));
  }
  return made;
}

Result<std::vector<float>> LogMel::framed_sound(std::span<const float> sound) const {
  const auto count = static_cast<size_t>(samples());
  const auto margin = static_cast<size_t>(settings_.fft_length / 2);
  const auto given = sound.first(std::min(sound.size(), count));
  for (size_t i = 0; i < given.size(); ++i) {
    if (std::isfinite(given[i])) continue;
    return invalid_argument(message(
        {"Sample [", i, "] of the sound is NaN or infinite; samples must be finite numbers."}));
  }
  std::vector<float> padded(count + 2 * margin, static_cast<float>(settings_.padding_value));
  const size_t begin = settings_.pads_left ? count - given.size() : 0;
  std::copy(given.begin(), given.end(), padded.begin() + static_cast<ptrdiff_t>(margin + begin));
  for (size_t i = 1; i <= margin; ++i) {
    padded[margin - i] = padded[margin + i];
    padded[margin + count - 1 + i] = padded[margin + count - 1 - i];
  }
  return padded;
}

Result<std::vector<float>> LogMel::extract(std::span<const float> sound) const {
  VKF_ASSIGN(const auto padded, framed_sound(sound));
  std::vector<float> out = mel_.energies(padded, frames_);
  for (float& value : out) value = std::log10(std::max(value, kLeastPower));
  const float floor = *std::max_element(out.begin(), out.end()) - kRange;
  for (float& value : out) value = (std::max(value, floor) + 4.0f) / 4.0f;
  for (const float value : out) {
    if (std::isfinite(value)) continue;
    return invalid_argument(
        "The [sound] is too loud: its power is infinite in single precision. "
        "Samples are expected between -1 and 1.");
  }
  return out;
}

}  // namespace vkformer
