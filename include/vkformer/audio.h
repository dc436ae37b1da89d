// Sound: WAV files to mono samples and back, and samples to the log-mel features of speech models.
//
// Threading: a Sound is a plain value, and extractors are immutable; any thread may read and
// extract. Lifetime: a Sound and an extractor own what they hold; files are not read again. An
// extractor is move-only. Nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/result.h"
#include "vkformer/tensor.h"

namespace vkformer {

class LogMel;

// One channel of sound.
struct Sound {
  // Samples, -1 to 1 by custom. (N), N the number of samples
  std::vector<float> samples;
  // Samples per second, in hertz.
  int32_t sampling_rate = 16000;
};

// Stands for the sampling rate that a file has.
inline constexpr int32_t kRateOfFile = 0;

// Reads a WAV file: integers of 8, 16, 24 or 32 bits or floats of 32 or 64, any number of channels,
// which are averaged. The sound is resampled to `sampling_rate` hertz.
VKFORMER_API Result<Sound> load_wav(const std::string& path, int32_t sampling_rate = kRateOfFile);
// The same from a file's bytes in memory; `name` stands for the path in messages.
VKFORMER_API Result<Sound> decode_wav_bytes(std::span<const std::byte> bytes,
                                            const std::string& name,
                                            int32_t sampling_rate = kRateOfFile);

// The sound as a WAV file of one channel in 16 bits; what lies outside of -1 to 1 is cut off.
VKFORMER_API Result<std::vector<std::byte>> encode_wav(const Sound& sound);
// Writes such a file.
VKFORMER_API Status save_wav(const std::string& path, const Sound& sound);

// The sound at another sampling rate of 1,000 to 768,000 hertz. What the lower of both rates cannot
// hold is filtered out.
VKFORMER_API Result<Sound> resample_sound(const Sound& sound, int32_t sampling_rate);

// Makes the input of Whisper and its like, as the model directory describes it.
class VKFORMER_API LogMelExtractor {
 public:
  // Reads `preprocessor_config.json` in a model directory or, where there is none, the
  // [feature_extractor] of its `processor_config.json`.
  static Result<LogMelExtractor> load(const std::string& model_dir);

  LogMelExtractor(LogMelExtractor&& other) noexcept;
  LogMelExtractor& operator=(LogMelExtractor&& other) noexcept;
  LogMelExtractor(const LogMelExtractor&) = delete;
  LogMelExtractor& operator=(const LogMelExtractor&) = delete;
  ~LogMelExtractor();

  // The features of one stretch of sound, named "input_features" among a model's inputs. They are
  // cut or filled up to the length that the model expects, 30 seconds for Whisper. A sound of
  // another sampling rate is resampled. (1, M, T), M mel bands and T frames
  Result<Tensor> extract(const Sound& sound) const;

  // Samples per second that the model works with, in hertz.
  int32_t sampling_rate() const;
  // Samples that one result covers; longer audio is cut there.
  int64_t chunk_samples() const;
  // Rows of the result.
  int64_t mel_bands() const;
  // Columns of the result.
  int64_t frames() const;

 private:
  friend struct HandleAccess;
  explicit LogMelExtractor(std::unique_ptr<const LogMel> impl);

  std::unique_ptr<const LogMel> impl_;
};

}  // namespace vkformer
