#include "audio/wav.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Values of the format field.
constexpr uint16_t kFormatPcm = 1;
constexpr uint16_t kFormatFloat = 3;
constexpr uint16_t kFormatExtensible = 0xFFFE;

// What follows the format in an extensible header's subformat, for the formats that are numbers.
constexpr std::array<uint8_t, 14> kSubformatTail = {0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80,
                                                    0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71};

using Bytes = std::span<const std::byte>;

uint64_t little_endian(Bytes bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return value;
}

uint16_t read_16(Bytes bytes, size_t at) {
  return static_cast<uint16_t>(little_endian(bytes, at, 2));
}

uint32_t read_32(Bytes bytes, size_t at) {
  return static_cast<uint32_t>(little_endian(bytes, at, 4));
}

std::string_view tag_at(Bytes bytes, size_t at) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, 4};
}

// A tag as printable ASCII.
std::string tag_text(std::string_view tag) {
  std::string text(tag);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

struct Format {
  bool is_float = false;
  uint32_t channels = 0;
  uint32_t sample_bytes = 0;   // of one channel
  uint32_t sampling_rate = 0;  // hertz
};

Result<Format> parse_format(Bytes chunk, const std::string& name) {
  const auto damaged = [&](const std::string& what) {
    return invalid_file(message({"[", name, "] The format chunk of the WAV file ", what}));
  };
  if (chunk.size() < 16) {
    return damaged("has " + std::to_string(chunk.size()) + " bytes; it needs at least 16.");
  }
  Format format;
  uint16_t kind = read_16(chunk, 0);
  format.channels = read_16(chunk, 2);
  format.sampling_rate = read_32(chunk, 4);
  const uint32_t frame_bytes = read_16(chunk, 12);
  const uint32_t bits = read_16(chunk, 14);
  if (kind == kFormatExtensible) {
    if (chunk.size() < 40) {
      return damaged("is extensible and has " + std::to_string(chunk.size()) +
                     " bytes; it needs at least 40.");
    }
    kind = read_16(chunk, 24);
    if (std::memcmp(chunk.data() + 26, kSubformatTail.data(), kSubformatTail.size()) != 0) {
      return unsupported(
          message({"[", name,
                   "] The WAV file has a subformat that is not a number; convert it to "
                   "PCM or float samples."}));
    }
  }
  if (kind != kFormatPcm && kind != kFormatFloat) {
    return unsupported(
        message({"[", name, "] The WAV file has the sample format ", kind,
                 "; this build reads 1 (PCM) and 3 (float), convert the file to one of them."}));
  }
  format.is_float = kind == kFormatFloat;
  format.sample_bytes = (bits + 7) / 8;
  const bool good_bits = format.is_float ? bits == 32 || bits == 64 : bits >= 1 && bits <= 32;
  if (!good_bits) {
    return unsupported(
        message({"[", name, "] The WAV file has ", bits, " bits a sample; this build reads ",
                 (format.is_float ? "floats of 32 or 64 bits." : "integers of 1 to 32.")}));
  }
  if (format.channels == 0) return damaged("names 0 channels; it needs at least 1.");
  if (format.sampling_rate == 0 || format.sampling_rate > INT32_MAX) {
    return damaged("names a sampling rate of " + std::to_string(format.sampling_rate) +
                   " Hz; it must be 1 to 2147483647.");
  }
  if (frame_bytes != format.channels * format.sample_bytes) {
    return damaged("gives " + std::to_string(format.channels) + " samples of " +
                   std::to_string(bits) + " bits a block of " + std::to_string(frame_bytes) +
                   " bytes; they need " + std::to_string(format.channels * format.sample_bytes) +
                   ".");
  }
  return format;
}

// The format and data chunks of a file.
struct Chunks {
  std::optional<Bytes> format;
  std::optional<Bytes> data;
};

// A program that writes into a pipe does not know the length when it writes the header. It writes
// the largest number there, or 0: the data then go to the end of the file. With the right size of
// the file, 0 means no samples.
bool is_streamed(Bytes file, size_t data_size) {
  const bool finished = uint64_t{read_32(file, 4)} + 8 == file.size();
  return data_size == 0xffffffffu || (data_size == 0 && !finished);
}

Result<Chunks> find_chunks(Bytes bytes, const std::string& name) {
  if (bytes.size() < 12 || tag_at(bytes, 8) != "WAVE" || tag_at(bytes, 0) != "RIFF") {
    return invalid_file(message({"[", name,
                                 "] is no RIFF/WAVE file: its first 12 bytes are not RIFF, a size "
                                 "and WAVE. Convert it to a WAV file."}));
  }
  Chunks found;
  size_t at = 12;
  while (bytes.size() - at >= 8 && !(found.format && found.data)) {
    const std::string_view tag = tag_at(bytes, at);
    size_t size = read_32(bytes, at + 4);
    at += 8;
    if (tag == "data" && is_streamed(bytes, size)) {
      // Whole frames of it: what was written last may have been cut.
      const size_t frame =
          found.format && found.format->size() >= 14 ? read_16(*found.format, 12) : 0;
      size = bytes.size() - at;
      if (frame > 0) size -= size % frame;
    }
    if (size > bytes.size() - at) {
      return invalid_file(
          message({"[", name, "] The chunk [", tag_text(tag), "] of the WAV file claims ", size,
                   " bytes, but only ", bytes.size() - at,
                   " follow; the file was cut short, fetch or record it again."}));
    }
    const Bytes chunk = bytes.subspan(at, size);
    if (tag == "fmt " && !found.format) found.format = chunk;
    if (tag == "data" && !found.data) found.data = chunk;
    // Chunks start at even places; the last one's padding is often omitted.
    at += std::min(size + size % 2, bytes.size() - at);
  }
  for (const auto& [chunk, tag] :
       {std::pair(found.format, "fmt "), std::pair(found.data, "data")}) {
    if (!chunk) {
      return invalid_file(message(
          {"[", name, "] The WAV file has no chunk [", tag, "]; it was cut short or is damaged."}));
    }
  }
  return found;
}

// A sample of `bytes` bytes scaled to -1 to 1. Shorter ones stand at the top of their bytes, and
// those of one byte count from 128.
double integer_sample(Bytes data, size_t at, uint32_t bytes) {
  const uint64_t raw = little_endian(data, at, bytes);
  if (bytes == 1) return (static_cast<double>(raw) - 128.0) / 128.0;
  // Moved to the top of 32 bits, so that the sign falls into place.
  const auto wide = static_cast<uint32_t>(raw << (32 - 8 * bytes));
  return static_cast<double>(static_cast<int32_t>(wide)) / 2147483648.0;
}

double float_sample(Bytes data, size_t at, uint32_t bytes) {
  if (bytes == 4) return static_cast<double>(std::bit_cast<float>(read_32(data, at)));
  return std::bit_cast<double>(little_endian(data, at, 8));
}

}  // namespace

Result<WavSound> decode_wav(std::span<const std::byte> bytes, const std::string& name) {
  VKF_ASSIGN(const Chunks chunks, find_chunks(bytes, name));
  VKF_ASSIGN(const Format format, parse_format(*chunks.format, name));
  const Bytes data = *chunks.data;
  const size_t frame_bytes = size_t{format.channels} * format.sample_bytes;
  if (data.size() % frame_bytes != 0) {
    return invalid_file(
        message({"[", name, "] The data chunk of the WAV file has ", data.size(),
                 " bytes, which is not a multiple of the ", frame_bytes,
                 " that one sample of every channel takes; the file was cut short."}));
  }
  WavSound sound;
  sound.sampling_rate = static_cast<int32_t>(format.sampling_rate);
  sound.samples.reserve(data.size() / frame_bytes);
  for (size_t frame = 0; frame < data.size(); frame += frame_bytes) {
    double sum = 0.0;
    for (uint32_t c = 0; c < format.channels; ++c) {
      const size_t at = frame + size_t{c} * format.sample_bytes;
      sum += format.is_float ? float_sample(data, at, format.sample_bytes)
                             : integer_sample(data, at, format.sample_bytes);
    }
    sound.samples.push_back(static_cast<float>(sum / format.channels));
  }
  return sound;
}

namespace {

constexpr size_t kHeaderBytes = 44;
constexpr size_t kMostSamples = (size_t{1} << 31) - 64;  // of a file whose sizes have 32 bits

void append(std::vector<std::byte>& out, std::string_view tag) {
  for (const char c : tag) out.push_back(static_cast<std::byte>(c));
}

void append(std::vector<std::byte>& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xffu));
}

}  // namespace

Result<std::vector<std::byte>> encode_wav_file(std::span<const float> samples,
                                               int32_t sampling_rate) {
  if (sampling_rate < 1) {
    return invalid_argument(message({"[sampling_rate] is ", sampling_rate,
                                     ", but a WAV file has at least 1 sample a second."}));
  }
  if (samples.size() > kMostSamples) {
    return invalid_argument(message({"[samples] are ", samples.size(), ", but a WAV file holds at ",
                                     "most ", kMostSamples, "; write several files."}));
  }
  constexpr uint32_t kSampleBytes = 2;
  const auto rate = static_cast<uint32_t>(sampling_rate);
  const auto data = static_cast<uint32_t>(samples.size()) * kSampleBytes;
  std::vector<std::byte> out;
  out.reserve(kHeaderBytes + data);
  append(out, "RIFF");
  append(out, static_cast<uint32_t>(kHeaderBytes) - 8 + data, 4);
  append(out, "WAVEfmt ");
  append(out, 16, 4);
  append(out, kFormatPcm, 2);
  append(out, 1, 2);  // channels
  append(out, rate, 4);
  append(out, rate * kSampleBytes, 4);
  append(out, kSampleBytes, 2);
  append(out, 8 * kSampleBytes, 2);
  append(out, "data");
  append(out, data, 4);
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] != samples[i]) {
      return invalid_argument(message({"[samples] hold a value that is not a number at ", i, "."}));
    }
    const float value = std::clamp(samples[i], -1.0f, 1.0f) * 32767.0f;
    append(out, static_cast<uint32_t>(std::lround(value)), 2);
  }
  return out;
}

}  // namespace vkformer
