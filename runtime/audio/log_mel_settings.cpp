#include "audio/log_mel_settings.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

constexpr const char* kOwnFile = "preprocessor_config.json";
constexpr const char* kSharedFile = "processor_config.json";

// The count of samples and of frames in the file are left aside: they follow from the rest, and
// Whisper's own extractor ignores them too. So does the order of dither, which is noise.
Result<LogMelSettings> read_settings(const JsonConfig& config) {
  VKF_ASSIGN(const auto type,
             config.get_string_or("feature_extractor_type", "WhisperFeatureExtractor"));
  if (type != "WhisperFeatureExtractor") {
    return unsupported(message({"[", config.where(), "] describes a feature extractor of type [",
                                type, "]; this build knows WhisperFeatureExtractor."}));
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
    return invalid_file(message(
        {"[", config.where(), "] has the padding_side [", side, "]; it must be left or right."}));
  }
  settings.pads_left = side == "left";
  return settings;
}

}  // namespace

Result<JsonConfig> load_feature_config(const FileStore& files) {
  if (files.has(kOwnFile) || !files.has(kSharedFile)) {
    return JsonConfig::load_from(files, kOwnFile);
  }
  VKF_ASSIGN(const JsonConfig shared, JsonConfig::load_from(files, kSharedFile));
  if (!shared.has("feature_extractor")) return JsonConfig::load_from(files, kOwnFile);
  const JsonConfig nested = shared.object("feature_extractor");
  VKF_CHECK(nested.status());
  return nested;
}

Result<LogMel> load_log_mel(const FileStore& files) {
  VKF_ASSIGN(const JsonConfig config, load_feature_config(files));
  VKF_ASSIGN(const LogMelSettings settings, read_settings(config));
  auto made = LogMel::create(settings);
  if (!made) return made.error().with_context(message({"[", config.where(), "]"}));
  return made;
}

}  // namespace vkformer
