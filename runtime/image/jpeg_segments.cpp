#include "image/jpeg_segments.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

using Bytes = std::span<const std::byte>;

// Markers of ITU-T T.81, table B.1.
constexpr uint8_t kHuffmanTables = 0xC4, kEndOfImage = 0xD9, kStartOfScan = 0xDA;
constexpr uint8_t kQuantization = 0xDB, kLineCount = 0xDC, kRestartInterval = 0xDD;
constexpr uint8_t kJfif = 0xE0, kAdobe = 0xEE;
// Progressive files of real encoders have about ten scans; each one costs a pass over the picture.
constexpr int kMaxScans = 256;
constexpr uint64_t kMaxScannedPixels = uint64_t{1} << 30;
// A block of 8 x 8 takes a bit at least. With the oddest sampling (4 x 1 beside 1 x 4), 32 x 32
// pixels have eight blocks.
constexpr uint64_t kMaxPixelsPerByte = 1024;

bool is_restart(uint8_t marker) {
  return marker >= 0xD0 && marker <= 0xD7;
}

// Markers without a length: TEM, the restarts and the start of an image.
bool stands_alone(uint8_t marker) {
  return marker == 0x01 || is_restart(marker) || marker == 0xD8;
}

bool starts_frame(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != kHuffmanTables && marker != 0xC8 &&
         marker != 0xCC;
}

bool starts_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, std::byte b) { return static_cast<uint8_t>(a) == uint8_t(b); });
}

class JpegSegments {
 public:
  JpegSegments(Bytes file, const std::string& name) : file_(file), name_(name) {}

  Result<std::vector<std::byte>> run() {
    at_ = 2;
    put(0xD8);
    while (true) {
      const uint8_t marker = next_marker();
      if (marker == 0) return cut();
      if (stands_alone(marker)) continue;
      if (marker == kEndOfImage) break;
      if (left() < 2) return cut();
      const size_t size = static_cast<size_t>(byte(at_) << 8 | byte(at_ + 1));
      if (size < 2) return broken("a segment has a length of " + std::to_string(size));
      if (size > left()) return cut();
      const Bytes body = file_.subspan(at_ + 2, size - 2);
      at_ += size;
      VKF_CHECK(segment(marker, body));
      if (marker != kStartOfScan) continue;
      if (++scans_ > kMaxScans) {
        return broken("it has more than " + std::to_string(kMaxScans) + " scans");
      }
      const size_t before = out_.size();
      if (!scan_data()) return cut();
      scan_bytes_ += out_.size() - before;
    }
    put(kEndOfImage);
    VKF_CHECK(check_cost());
    return std::move(out_);
  }

 private:
  size_t left() const { return file_.size() - at_; }
  uint8_t byte(size_t at) const { return static_cast<uint8_t>(file_[at]); }
  void put(uint8_t marker) {
    out_.push_back(std::byte{0xFF});
    out_.push_back(static_cast<std::byte>(marker));
  }
  void put_segment(uint8_t marker, Bytes body) {
    put(marker);
    const size_t size = body.size() + 2;
    out_.push_back(static_cast<std::byte>(size >> 8));
    out_.push_back(static_cast<std::byte>(size & 255));
    out_.insert(out_.end(), body.begin(), body.end());
  }
  Error broken(const std::string& why) const {
    return invalid_file(message(
        {"Picture ", name_, " is a damaged JPEG file: ", why, "; give one that is whole."}));
  }
  Error cut() const { return broken("it ends before its end marker"); }

  // The next marker, skipping what is none; 0 after the end.
  uint8_t next_marker() {
    while (left() >= 2) {
      const uint8_t marker = byte(at_ + 1);
      if (byte(at_) == 0xFF && marker != 0 && marker != 0xFF) {
        at_ += 2;
        return marker;
      }
      ++at_;
    }
    return 0;
  }

  Status segment(uint8_t marker, Bytes body) {
    if (starts_frame(marker) && marker > 0xC2) {
      return unsupported(message(
          {"Picture ", name_, " is a JPEG file of kind ", marker - 0xC0,
           ", and only baseline (0, 1) and progressive (2) ones can be read; save it as PNG."}));
    }
    // Precision, height, width.
    if (starts_frame(marker) && body.size() >= 5) {
      const uint64_t height = static_cast<uint64_t>(body[1]) << 8 | static_cast<uint64_t>(body[2]);
      const uint64_t width = static_cast<uint64_t>(body[3]) << 8 | static_cast<uint64_t>(body[4]);
      pixels_ = std::max(pixels_, width * height);
    }
    if (marker == kHuffmanTables) {
      VKF_CHECK(check_huffman(body));
    }
    const bool needed = starts_frame(marker) || marker == kHuffmanTables ||
                        marker == kStartOfScan || marker == kQuantization || marker == kLineCount ||
                        marker == kRestartInterval;
    if (needed) put_segment(marker, body);
    // Of these, only what says how colors are coded.
    constexpr size_t kJfifTag = 5, kAdobeFields = 12;
    if (marker == kJfif && starts_with(body, {"JFIF", kJfifTag})) {
      put_segment(marker, body.first(kJfifTag));
    }
    if (marker == kAdobe && starts_with(body, "Adobe") && body.size() >= kAdobeFields) {
      put_segment(marker, body.first(kAdobeFields));
    }
    return {};
  }

  // The decoder that follows makes pixels of data that are not there, for as long as the frame
  // says.
  Status check_cost() const {
    if (pixels_ > kMaxPixelsPerByte * scan_bytes_) {
      return broken("it claims " + std::to_string(pixels_) + " pixels, and its scans have " +
                    std::to_string(scan_bytes_) + " bytes, too few for that number");
    }
    if (pixels_ * static_cast<uint64_t>(scans_) > kMaxScannedPixels) {
      return broken(std::to_string(scans_) + " scans of " + std::to_string(pixels_) +
                    " pixels are over the limit of " + std::to_string(kMaxScannedPixels) +
                    " in all");
    }
    return {};
  }

  // Tables of 16 counts and their symbols. They have no more than 256 symbols, and codes of n bits
  // are below 2^n (annex C of T.81).
  Status check_huffman(Bytes body) {
    while (!body.empty()) {
      if (body.size() < 17) return broken("a Huffman table is cut short");
      size_t symbols = 0;
      uint32_t code = 0;
      for (size_t bits = 1; bits <= 16; ++bits) {
        const auto count = static_cast<uint32_t>(body[bits]);
        symbols += count;
        code += count;
        if (code > 1u << bits) return broken("a Huffman table has more codes than their bits hold");
        code <<= 1;
      }
      if (symbols > 256 || symbols > body.size() - 17) {
        return broken("a Huffman table claims " + std::to_string(symbols) + " symbols");
      }
      body = body.subspan(17 + symbols);
    }
    return {};
  }

  // Copies entropy-coded bytes up to the marker after them; false if the file ends first.
  bool scan_data() {
    while (left() >= 2) {
      const uint8_t next = byte(at_ + 1);
      if (byte(at_) != 0xFF) {
        out_.push_back(file_[at_++]);
      } else if (next == 0xFF) {
        ++at_;  // a fill byte
      } else if (next == 0 || is_restart(next)) {
        out_.push_back(file_[at_++]);
        out_.push_back(file_[at_++]);
      } else {
        return true;
      }
    }
    return false;
  }

  Bytes file_;
  const std::string& name_;
  size_t at_ = 0;
  uint64_t pixels_ = 0;  // that the frame claims
  uint64_t scan_bytes_ = 0;
  int scans_ = 0;
  std::vector<std::byte> out_;
};

}  // namespace

Result<std::vector<std::byte>> checked_jpeg(Bytes file, const std::string& name) {
  return JpegSegments(file, name).run();
}

}  // namespace vkformer
