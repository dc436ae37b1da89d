// WAV files for the tests of tests/audio, put together from parts.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace vkformer::test {

// `value` as `count` bytes, lowest first.
inline std::string little_endian_bytes(uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// A chunk with its padding.
inline std::string wav_chunk(const std::string& tag, const std::string& content) {
  return tag + little_endian_bytes(content.size(), 4) + content +
         (content.size() % 2 == 1 ? std::string(1, '\0') : std::string());
}

struct WavFormat {
  uint16_t kind = 1;
  uint16_t channels = 1;
  uint32_t rate = 16000;
  uint16_t bits = 16;
};

inline std::string format_chunk(const WavFormat& format, const std::string& extension = "") {
  const uint32_t block = format.channels * ((format.bits + 7u) / 8u);
  return wav_chunk(
      "fmt ", little_endian_bytes(format.kind, 2) + little_endian_bytes(format.channels, 2) +
                  little_endian_bytes(format.rate, 4) +
                  little_endian_bytes(uint64_t{format.rate} * block, 4) +
                  little_endian_bytes(block, 2) + little_endian_bytes(format.bits, 2) + extension);
}

inline std::string riff(const std::string& chunks) {
  return "RIFF" + little_endian_bytes(chunks.size() + 4, 4) + "WAVE" + chunks;
}

inline std::string wav_file(const WavFormat& format, const std::string& data) {
  return riff(format_chunk(format) + wav_chunk("data", data));
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace vkformer::test
