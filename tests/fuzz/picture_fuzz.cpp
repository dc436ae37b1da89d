// Fuzz target: picture files.
#include <cstddef>
#include <cstdint>
#include <span>

#include "image/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto picture = vkformer::decode_picture(std::as_bytes(std::span(data, size)), "fuzz");
  if (!picture.ok()) return 0;
  uint64_t sum = 0;
  for (const uint8_t value : picture->pixels) sum += value;
  const auto pixels = static_cast<size_t>(picture->width) * static_cast<size_t>(picture->height);
  // The sum is used so that no compiler drops the reads.
  if (picture->pixels.size() != pixels * 3 || sum > pixels * 3 * 255) __builtin_trap();
  return 0;
}
