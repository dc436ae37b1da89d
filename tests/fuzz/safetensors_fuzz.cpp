// Fuzz target: safetensors files.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = vkformer::SafetensorsFile::from_bytes({bytes.begin(), bytes.end()}, "fuzz");
  if (!file.ok()) return 0;
  size_t shown = 0;
  unsigned sum = 0;
  for (const auto& item : file->tensors()) {
    for (const std::byte b : item.second.bytes) sum += static_cast<unsigned>(b);
    shown += item.second.bytes.size();
  }
  // The views share no byte, so together they are no longer than the file. The sum is used so that
  // no compiler drops the reads.
  if (shown > size || sum > shown * 255) __builtin_trap();
  return 0;
}
