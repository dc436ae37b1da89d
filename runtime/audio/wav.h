// RIFF/WAVE files to mono samples, and back. Needs: Result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// One channel of sound.
struct WavSound {
  std::vector<float> samples;  // -1 to 1 for integer formats; (N), N samples
  int32_t sampling_rate = 0;   // hertz
};

// Decodes integer PCM of 8, 16, 24 or 32 bits and float samples of 32 or 64 bits, the mean of all
// channels. `name` stands for the file in messages. The bytes may be hostile.
Result<WavSound> decode_wav(std::span<const std::byte> bytes, const std::string& name);

// A file of one channel in 16 bits; what lies outside of -1 to 1 is cut off. An error for a rate
// that no file has, for samples that are no numbers, and for more than 4 GB of them.
Result<std::vector<std::byte>> encode_wav_file(std::span<const float> samples,
                                               int32_t sampling_rate);

}  // namespace vkformer
