// libFuzzer entry for picture files. Not part of the default build; from the source root:
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Iruntime \
//     tests/fuzz/picture_fuzz.cpp runtime/image/picture.cpp runtime/image/gif.cpp \
//     runtime/image/jpeg_segments.cpp runtime/image/pnm.cpp runtime/checkpoint/mapped_file.cpp -o
//     picture_fuzz
//   ./picture_fuzz -max_len=65536 -rss_limit_mb=4096 a_directory_of_small_pictures
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
