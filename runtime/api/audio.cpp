#include "vkformer/audio.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "audio/log_mel_settings.h"
#include "audio/resample.h"
#include "audio/wav.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "checkpoint/mapped_file.h"
#include "checkpoint/pack_file.h"

namespace vkformer {
namespace {

constexpr const char* kTooLong = "The [sound] does not fit into memory; give a shorter one.";

}  // namespace

Result<Sound> resample_sound(const Sound& sound, int32_t sampling_rate) {
  return guarded(kTooLong, [&]() -> Result<Sound> {
    Sound out;
    out.sampling_rate = sampling_rate;
    VKF_ASSIGN(out.samples, resample(sound.samples, sound.sampling_rate, sampling_rate));
    return out;
  });
}

Result<Sound> decode_wav_bytes(std::span<const std::byte> bytes, const std::string& name,
                               int32_t sampling_rate) {
  return guarded(kTooLong, [&]() -> Result<Sound> {
    VKF_ASSIGN(WavSound wav, decode_wav(bytes, name));
    Sound sound{std::move(wav.samples), wav.sampling_rate};
    if (sampling_rate == kRateOfFile || sampling_rate == sound.sampling_rate) return sound;
    auto resampled = resample_sound(sound, sampling_rate);
    if (!resampled) return resampled.error().with_context(message({"[", name, "]"}));
    return resampled;
  });
}

Result<Sound> load_wav(const std::string& path, int32_t sampling_rate) {
  return guarded(kTooLong, [&]() -> Result<Sound> {
    VKF_ASSIGN(const MappedFile file, MappedFile::open(path));
    return decode_wav_bytes(file.bytes(), path, sampling_rate);
  });
}

Result<std::vector<std::byte>> encode_wav(const Sound& sound) {
  return guarded(kTooLong, [&] { return encode_wav_file(sound.samples, sound.sampling_rate); });
}

Status save_wav(const std::string& path, const Sound& sound) {
  return guarded(kTooLong, [&]() -> Status {
    VKF_ASSIGN(const std::vector<std::byte> bytes, encode_wav(sound));
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                               &std::fclose);
    const bool written = file &&
                         std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size() &&
                         std::fflush(file.get()) == 0;
    if (written) return {};
    return invalid_argument(message(
        {"File [", path, "] cannot be written: ", std::strerror(errno), "; give another path."}));
  });
}

LogMelExtractor::LogMelExtractor(std::unique_ptr<const LogMel> impl) : impl_(std::move(impl)) {}
LogMelExtractor::LogMelExtractor(LogMelExtractor&&) noexcept = default;
LogMelExtractor& LogMelExtractor::operator=(LogMelExtractor&&) noexcept = default;
LogMelExtractor::~LogMelExtractor() = default;

Result<LogMelExtractor> LogMelExtractor::load(const std::string& model_dir) {
  return guarded(kTooLong, [&]() -> Result<LogMelExtractor> {
    VKF_ASSIGN(LogMel features, load_log_mel(*make_plain_store(model_dir)));
    return HandleAccess::make<LogMelExtractor>(std::make_unique<const LogMel>(std::move(features)));
  });
}

Result<Tensor> LogMelExtractor::extract(const Sound& sound) const {
  return guarded(kTooLong, [&]() -> Result<Tensor> {
    std::vector<float> resampled;
    std::span<const float> samples = sound.samples;
    if (sound.sampling_rate != sampling_rate()) {
      VKF_ASSIGN(resampled, resample(samples, sound.sampling_rate, sampling_rate()));
      samples = resampled;
    }
    VKF_ASSIGN(const std::vector<float> values, impl_->extract(samples));
    return Tensor::from_floats({1, mel_bands(), frames()}, values);
  });
}

int32_t LogMelExtractor::sampling_rate() const {
  return static_cast<int32_t>(impl_->settings().sampling_rate);
}

int64_t LogMelExtractor::chunk_samples() const {
  return impl_->samples();
}

int64_t LogMelExtractor::mel_bands() const {
  return impl_->settings().mel_bands;
}

int64_t LogMelExtractor::frames() const {
  return impl_->frames();
}

}  // namespace vkformer
