#include "vkformer/audio.h"

#include <new>
#include <utility>

#include "audio/log_mel.h"
#include "audio/resample.h"
#include "audio/wav.h"
#include "base/check.h"
#include "checkpoint/json_config.h"
#include "checkpoint/mapped_file.h"

namespace vkformer {
namespace {

// What `make` gives, or an error where memory ran out on the way.
template <class Make>
auto within_memory(const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory,
                 "The [sound] does not fit into memory; give a shorter one."};
  }
}

Result<JsonConfig> load_feature_config(const std::string& model_dir) {
  const auto path = [&](const char* file) { return (path_from_utf8(model_dir) / file).string(); };
  auto own = JsonConfig::load(path("preprocessor_config.json"));
  if (own.ok() || own.error().code != ErrorCode::kNotFound) return own;
  const auto shared = JsonConfig::load(path("processor_config.json"));
  if (!shared.ok() || !shared->has("feature_extractor")) return own;
  const JsonConfig nested = shared->object("feature_extractor");
  VKF_CHECK(nested.status());
  return nested;
}

// The count of samples and of frames in the file are left aside: they follow from the rest, and
// Whisper's own extractor ignores them too. So does the order of dither, which is noise.
Result<LogMelSettings> read_settings(const JsonConfig& config) {
  VKF_ASSIGN(const auto type,
             config.get_string_or("feature_extractor_type", "WhisperFeatureExtractor"));
  if (type != "WhisperFeatureExtractor") {
    return unsupported("[" + config.where() + "] describes a feature extractor of type [" + type +
                       "]; this build knows WhisperFeatureExtractor.");
  }
  LogMelSettings settings;
  VKF_ASSIGN(settings.mel_bands, config.get_int_or("feature_size", settings.mel_bands));
  VKF_ASSIGN(settings.sampling_rate, config.get_int_or("sampling_rate", settings.sampling_rate));
  VKF_ASSIGN(settings.hop_length, config.get_int_or("hop_length", settings.hop_length));
  VKF_ASSIGN(settings.fft_length, config.get_int_or("n_fft", settings.fft_length));
  VKF_ASSIGN(settings.chunk_length, config.get_int_or("chunk_length", settings.chunk_length));
  VKF_ASSIGN(settings.padding_value, config.get_double_or("padding_value", settings.padding_value));
  VKF_ASSIGN(const auto side, config.get_string_or("padding_side", "right"));
  if (side != "right" && side != "left") {
    return invalid_file("[" + config.where() + "] has the padding_side [" + side +
                        "]; it must be left or right.");
  }
  settings.pads_left = side == "left";
  return settings;
}

}  // namespace

Result<Sound> resample_sound(const Sound& sound, int32_t sampling_rate) {
  return within_memory([&]() -> Result<Sound> {
    Sound out;
    out.sampling_rate = sampling_rate;
    VKF_ASSIGN(out.samples, resample(sound.samples, sound.sampling_rate, sampling_rate));
    return out;
  });
}

Result<Sound> decode_wav_bytes(std::span<const std::byte> bytes, const std::string& name,
                               int32_t sampling_rate) {
  return within_memory([&]() -> Result<Sound> {
    VKF_ASSIGN(WavSound wav, decode_wav(bytes, name));
    Sound sound{std::move(wav.samples), wav.sampling_rate};
    if (sampling_rate == kRateOfFile || sampling_rate == sound.sampling_rate) return sound;
    auto resampled = resample_sound(sound, sampling_rate);
    if (!resampled) return resampled.error().with_context("[" + name + "]");
    return resampled;
  });
}

Result<Sound> load_wav(const std::string& path, int32_t sampling_rate) {
  VKF_ASSIGN(const MappedFile file, MappedFile::open(path));
  return decode_wav_bytes(file.bytes(), path, sampling_rate);
}

LogMelExtractor::LogMelExtractor(std::unique_ptr<const LogMel> features)
    : features_(std::move(features)) {}
LogMelExtractor::LogMelExtractor(LogMelExtractor&&) noexcept = default;
LogMelExtractor& LogMelExtractor::operator=(LogMelExtractor&&) noexcept = default;
LogMelExtractor::~LogMelExtractor() = default;

Result<LogMelExtractor> LogMelExtractor::load(const std::string& model_dir) {
  return within_memory([&]() -> Result<LogMelExtractor> {
    VKF_ASSIGN(const JsonConfig config, load_feature_config(model_dir));
    VKF_ASSIGN(const LogMelSettings settings, read_settings(config));
    auto features = LogMel::create(settings);
    if (!features) return features.error().with_context("[" + config.where() + "]");
    return LogMelExtractor(std::make_unique<const LogMel>(std::move(features).value()));
  });
}

Result<Tensor> LogMelExtractor::extract(const Sound& sound) const {
  return within_memory([&]() -> Result<Tensor> {
    std::vector<float> resampled;
    std::span<const float> samples = sound.samples;
    if (sound.sampling_rate != sampling_rate()) {
      VKF_ASSIGN(resampled, resample(samples, sound.sampling_rate, sampling_rate()));
      samples = resampled;
    }
    VKF_ASSIGN(const std::vector<float> values, features_->extract(samples));
    return Tensor::from_floats({1, mel_bands(), frames()}, values);
  });
}

int32_t LogMelExtractor::sampling_rate() const {
  return static_cast<int32_t>(features_->settings().sampling_rate);
}

int64_t LogMelExtractor::chunk_samples() const {
  return features_->samples();
}

int64_t LogMelExtractor::mel_bands() const {
  return features_->settings().mel_bands;
}

int64_t LogMelExtractor::frames() const {
  return features_->frames();
}

}  // namespace vkformer
