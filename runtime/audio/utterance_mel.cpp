#include "audio/utterance_mel.h"

#include <algorithm>
#include <cmath>

#include "audio/log_mel_settings.h"
#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

constexpr float kLogFloor = 0x1p-24f;  // added to energies, whose logarithm it keeps finite
constexpr double kDeviationFloor = 1e-5;
constexpr int64_t kMostFeatureValues = int64_t{1} << 28;  // of features

Status check_utterance_settings(const UtteranceMelSettings& s) {
  const FeatureLimit limits[] = {
      {"feature_size", s.mel_bands, 1, 1024},
      {"sampling_rate", s.sampling_rate, 1000, 768000},
      {"hop_length", s.hop_length, 1, 1 << 20},
      {"n_fft", s.fft_length, 2, FrameFft::kMostLength},
      {"win_length", s.window_length, 2, s.fft_length},
  };
  VKF_CHECK(check_feature_limits(limits));
  if (!(std::abs(s.preemphasis) <= 1.0)) {
    return invalid_file(message(
        {"[preemphasis] of the feature extractor is ", s.preemphasis, "; it must be -1 to 1."}));
  }
  return {};
}

// The window in the middle of a frame of zeros.
std::vector<float> centered_window(const UtteranceMelSettings& s) {
  const std::vector<float> window = hann_window(s.window_length, HannWindow::kSymmetric);
  std::vector<float> frame(static_cast<size_t>(s.fft_length), 0.0f);
  const int64_t begin = (s.fft_length - s.window_length) / 2;
  std::copy(window.begin(), window.end(), frame.begin() + static_cast<ptrdiff_t>(begin));
  return frame;
}

// Moves and scales values of a band: mean 0, variance 1.
void normalize_band(std::span<float> values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0, square = 0;
  for (const float value : values) mean += static_cast<double>(value) / count;
  for (const float value : values) {
    const double off = static_cast<double>(value) - mean;
    square += off * off;
  }
  const double deviation = std::sqrt(square / (count - 1.0)) + kDeviationFloor;
  for (float& value : values) {
    value = static_cast<float>((static_cast<double>(value) - mean) / deviation);
  }
}

}  // namespace

UtteranceMel::UtteranceMel(const UtteranceMelSettings& settings, MelFrames mel)
    : settings_(settings), mel_(std::move(mel)) {}

Result<UtteranceMel> UtteranceMel::create(const UtteranceMelSettings& settings) {
  VKF_CHECK(check_utterance_settings(settings));
  VKF_ASSIGN(MelFrames mel,
             MelFrames::create({.bands = settings.mel_bands,
                                .sampling_rate = settings.sampling_rate,
                                .hop_length = settings.hop_length,
                                .top = static_cast<double>(settings.sampling_rate) / 2.0},
                               centered_window(settings)));
  return UtteranceMel(settings, std::move(mel));
}

int64_t UtteranceMel::frames(size_t samples) const {
  return static_cast<int64_t>(samples) / settings_.hop_length;
}

Result<std::vector<float>> UtteranceMel::extract(std::span<const float> sound) const {
  const int64_t frames = this->frames(sound.size());
  if (sound.size() < least_samples() || frames > kMostFeatureValues / settings_.mel_bands) {
    return invalid_argument(
        message({"The sound has ", sound.size(), " samples; it must have ", least_samples(),
                 " and at most ", kMostFeatureValues, " values of features."}));
  }
  const auto margin = static_cast<size_t>(settings_.fft_length / 2);
  std::vector<float> padded(sound.size() + 2 * margin, 0.0f);
  const auto weight = static_cast<float>(settings_.preemphasis);
  for (size_t i = 0; i < sound.size(); ++i) {
    if (!std::isfinite(sound[i])) {
      return invalid_argument(message(
          {"Sample [", i, "] of the sound is NaN or infinite; samples must be finite numbers."}));
    }
    padded[margin + i] = i == 0 ? sound[0] : sound[i] - weight * sound[i - 1];
  }
  std::vector<float> bands = mel_.energies(padded, frames);
  for (float& value : bands) {
    value = std::log(value + kLogFloor);
    if (std::isfinite(value)) continue;
    return invalid_argument(
        "The [sound] is too loud: its power is infinite in single precision. "
        "Samples are expected between -1 and 1.");
  }
  std::vector<float> features(bands.size());
  const auto width = static_cast<size_t>(settings_.mel_bands), length = static_cast<size_t>(frames);
  for (size_t band = 0; band < width; ++band) {
    const std::span<float> values = std::span(bands).subspan(band * length, length);
    normalize_band(values);
    for (size_t t = 0; t < length; ++t) features[t * width + band] = values[t];
  }
  return features;
}

Result<UtteranceMel> load_utterance_mel(const FileStore& files) {
  VKF_ASSIGN(const JsonConfig config, load_feature_config(files));
  const char* known = "ParakeetFeatureExtractor";
  VKF_ASSIGN(const std::string type, config.get_string_or("feature_extractor_type", known));
  if (type != known) {
    return unsupported(message({"[feature_extractor_type] in ", config.where(), " is '", type,
                                "'; this model's features are made by ", known, "."}));
  }
  UtteranceMelSettings s;
  const std::pair<const char*, int64_t*> sizes[] = {{"feature_size", &s.mel_bands},
                                                    {"sampling_rate", &s.sampling_rate},
                                                    {"hop_length", &s.hop_length},
                                                    {"n_fft", &s.fft_length},
                                                    {"win_length", &s.window_length}};
  for (const auto& [key, value] : sizes) {
    VKF_ASSIGN(*value, config.get_int_or(key, *value));
  }
  VKF_ASSIGN(s.preemphasis, config.get_double_or("preemphasis", s.preemphasis));
  auto made = UtteranceMel::create(s);
  if (!made) return made.error().with_context(message({"[", config.where(), "]"}));
  return made;
}

}  // namespace vkformer
