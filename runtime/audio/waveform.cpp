#include "audio/waveform.h"

#include <cmath>

#include "audio/log_mel_settings.h"
#include "audio/resample.h"
#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

constexpr double kLeastVariance = 1e-7;  // added to the variance

}  // namespace

Result<WaveformSettings> load_waveform_settings(const FileStore& files) {
  VKF_ASSIGN(const JsonConfig config, load_feature_config(files));
  VKF_ASSIGN(const auto type,
             config.get_string_or("feature_extractor_type", "Wav2Vec2FeatureExtractor"));
  const bool speecht5 = type == "SpeechT5FeatureExtractor";
  if (!speecht5 && type != "Wav2Vec2FeatureExtractor") {
    return unsupported(
        message({"[", config.where(), "] describes a feature extractor of type [", type,
                 "], but this model reads samples; supported are Wav2Vec2FeatureExtractor and "
                 "SpeechT5FeatureExtractor."}));
  }
  WaveformSettings settings;
  VKF_ASSIGN(settings.sampling_rate, config.get_int_or("sampling_rate", settings.sampling_rate));
  if (settings.sampling_rate < kLeastSamplingRate || settings.sampling_rate > kMostSamplingRate) {
    return invalid_file(
        message({"[sampling_rate] in ", config.where(), " is ", settings.sampling_rate,
                 ", but must be ", kLeastSamplingRate, " to ", kMostSamplingRate, " hertz."}));
  }
  VKF_ASSIGN(const bool unit, config.get_bool_or("do_normalize", !speecht5));
  if (unit) settings.scale = WaveformSettings::Scale::kUnit;
  return settings;
}

Result<std::vector<float>> waveform_values(const WaveformSettings& settings,
                                           std::span<const float> samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    if (std::isfinite(samples[i])) continue;
    return invalid_argument(message(
        {"Sample [", i, "] of the sound is NaN or infinite; samples must be finite numbers."}));
  }
  std::vector<float> values(samples.begin(), samples.end());
  if (settings.scale == WaveformSettings::Scale::kAsIs || values.empty()) return values;
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const float value : values) mean += static_cast<double>(value);
  mean /= count;
  double variance = 0;
  for (const float value : values) {
    const double apart = static_cast<double>(value) - mean;
    variance += apart * apart;
  }
  const double scale = 1.0 / std::sqrt(variance / count + kLeastVariance);
  for (float& value : values) {
    value = static_cast<float>((static_cast<double>(value) - mean) * scale);
  }
  return values;
}

}  // namespace vkformer
