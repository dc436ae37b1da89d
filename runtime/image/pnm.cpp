#include "image/pnm.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/message.h"
#include "image/picture_processor.h"

namespace vkformer {
namespace {

// The format: pbm(5), pgm(5) and ppm(5) of Netpbm.
class PnmReader {
 public:
  explicit PnmReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // The next decimal number, or -1 if there is none below 2^24. Space and comments before it, and
  // one character after it, are skipped.
  int64_t number() {
    skip_space();
    int64_t value = -1;
    while (at_ < bytes_.size() && is_digit(peek())) {
      value = (value < 0 ? 0 : value * 10) + (peek() - '0');
      if (value >= kTooLarge) return -1;
      ++at_;
    }
    if (value >= 0 && at_ < bytes_.size()) ++at_;
    return value;
  }
  // The next digit 0 or 1 of a plain bitmap, where space between digits is optional, or -1.
  int64_t bit() {
    skip_space();
    if (at_ == bytes_.size() || (peek() != '0' && peek() != '1')) return -1;
    return static_cast<uint8_t>(bytes_[at_++]) - '0';
  }
  // Precondition: a byte is left.
  uint8_t byte() { return static_cast<uint8_t>(bytes_[at_++]); }
  size_t left() const { return bytes_.size() - at_; }
  void skip(size_t count) { at_ += count; }

 private:
  static constexpr int64_t kTooLarge = 1 << 24;

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  char peek() const { return static_cast<char>(bytes_[at_]); }
  void skip_space() {
    bool comment = false;
    for (; at_ < bytes_.size(); ++at_) {
      const char c = peek();
      if (c == '#') comment = true;
      if (c == '\n' || c == '\r') comment = false;
      const bool space = c == ' ' || (c >= '\t' && c <= '\r');
      if (!comment && !space) return;
    }
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

struct PnmHeader {
  int kind = 0;  // 1 to 6, as in P1 to P6
  int64_t width = 0, height = 0, maximum = 1;

  bool plain() const { return kind <= 3; }
  bool bitmap() const { return kind == 1 || kind == 4; }
  int channels() const { return kind == 3 || kind == 6 ? 3 : 1; }
};

// Reads a row of samples; false if the file ends or a number is none.
bool read_row(PnmReader& reader, const PnmHeader& header, std::vector<int64_t>& samples) {
  uint8_t bits = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (header.plain()) {
      samples[i] = header.bitmap() ? reader.bit() : reader.number();
    } else if (header.bitmap()) {
      if (i % 8 == 0) bits = reader.byte();
      samples[i] = bits >> (7 - i % 8) & 1;
    } else {
      samples[i] = reader.byte();
      if (header.maximum > 255) samples[i] = samples[i] << 8 | reader.byte();
    }
    if (samples[i] < 0 || (header.plain() && samples[i] > header.maximum)) return false;
    // In a bitmap 1 is black.
    if (header.bitmap()) samples[i] = 1 - samples[i];
  }
  return true;
}

// Bytes that binary samples take.
size_t binary_size(const PnmHeader& header) {
  if (header.bitmap()) return static_cast<size_t>((header.width + 7) / 8 * header.height);
  const int64_t sample = header.maximum > 255 ? 2 : 1;
  return static_cast<size_t>(header.width * header.height * header.channels() * sample);
}

// The byte of each sample value: 255 * sample / maximum, halves to even, and no more than 255.
std::vector<uint8_t> scale_table(int64_t maximum) {
  std::vector<uint8_t> table(maximum > 255 ? 65536 : 256, 255);
  for (size_t i = 0; i < static_cast<size_t>(maximum); ++i) {
    const double exact = static_cast<double>(i) / static_cast<double>(maximum) * 255.0;
    table[i] = static_cast<uint8_t>(std::nearbyint(exact));
  }
  return table;
}

}  // namespace

Result<RgbPicture> decode_pnm(std::span<const std::byte> bytes, const std::string& name,
                              int64_t most_pixels) {
  const auto broken = [&](const std::string& why) {
    return invalid_file(
        message({"Picture ", name, " is a damaged PNM file: ", why, "; give one that is whole."}));
  };
  PnmReader reader(bytes);
  reader.skip(1);
  PnmHeader header;
  header.kind = static_cast<uint8_t>(bytes[1]) - '0';
  reader.skip(1);
  header.width = reader.number();
  header.height = reader.number();
  if (!header.bitmap()) header.maximum = reader.number();
  if (header.width < 0 || header.height < 0 || header.maximum < 1 || header.maximum > 65535) {
    return broken("its header needs a width, a height and a largest value from 1 to 65535");
  }
  VKF_CHECK(check_picture_size(header.width, header.height, name, most_pixels));
  // A plain sample is a digit at least.
  const auto samples = static_cast<size_t>(header.width * header.height * header.channels());
  const size_t needed = header.plain() ? samples : binary_size(header);
  if (reader.left() < needed) {
    return broken("its pixels take " + std::to_string(needed) + " bytes, but only " +
                  std::to_string(reader.left()) + " follow its header");
  }
  RgbPicture picture;
  picture.width = static_cast<int>(header.width);
  picture.height = static_cast<int>(header.height);
  picture.pixels.reserve(static_cast<size_t>(header.width * header.height) * 3);
  const std::vector<uint8_t> scaled = scale_table(header.maximum);
  std::vector<int64_t> row(static_cast<size_t>(header.width * header.channels()));
  const int copies = header.channels() == 3 ? 1 : 3;
  for (int64_t y = 0; y < header.height; ++y) {
    if (!read_row(reader, header, row)) {
      return broken("row " + std::to_string(y) + " holds something else than numbers up to " +
                    std::to_string(header.maximum) + ", or too few of them");
    }
    for (const int64_t sample : row) {
      picture.pixels.insert(picture.pixels.end(), static_cast<size_t>(copies),
                            scaled[static_cast<size_t>(sample)]);
    }
  }
  return picture;
}

}  // namespace vkformer
