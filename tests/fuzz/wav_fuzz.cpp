// Fuzz target: WAV files, and what is made of the short ones: another sampling rate.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "audio/wav.h"
#include "vkformer/audio.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto sound = vkformer::decode_wav(std::as_bytes(std::span(data, size)), "fuzz");
  if (!sound.ok()) return 0;
  // No format has more samples than bytes.
  if (sound->sampling_rate <= 0 || sound->samples.size() > size) __builtin_trap();
  if (sound->samples.size() > 4096 || sound->sampling_rate < 1000) return 0;
  (void)vkformer::resample_sound({sound->samples, sound->sampling_rate}, 16000);
  return 0;
}
