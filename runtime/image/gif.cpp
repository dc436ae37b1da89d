#include "image/gif.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/message.h"
#include "image/picture_processor.h"

namespace vkformer {
namespace {

// The format: CompuServe, "Graphics Interchange Format, version 89a" (1990).
constexpr uint8_t kExtension = 0x21, kGraphicControl = 0xF9, kImage = 0x2C;
constexpr int kLongestCode = 12;

using Palette = std::array<uint8_t, 256 * 3>;

// Bytes from the front; after the end it gives zeros and remembers that.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool past_end() const { return past_end_; }
  uint8_t byte() {
    if (at_ < bytes_.size()) return static_cast<uint8_t>(bytes_[at_++]);
    past_end_ = true;
    return 0;
  }
  int word() {
    const int low = byte();
    return low | byte() << 8;
  }
  void skip(size_t count) {
    past_end_ = past_end_ || count > bytes_.size() - at_;
    at_ += std::min(count, bytes_.size() - at_);
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool past_end_ = false;
};

// Codes of changing length out of the blocks that hold them, lowest bit first.
class CodeReader {
 public:
  explicit CodeReader(ByteReader& bytes) : bytes_(bytes) {}

  // The next code, or -1 after the last block.
  int code(int bits) {
    while (count_ < bits) {
      if (left_ == 0) left_ = bytes_.byte();
      if (left_ == 0) return -1;
      --left_;
      held_ |= static_cast<uint32_t>(bytes_.byte()) << count_;
      count_ += 8;
    }
    const int value = static_cast<int>(held_ & ((1u << bits) - 1));
    held_ >>= bits;
    count_ -= bits;
    return value;
  }

 private:
  ByteReader& bytes_;
  uint32_t held_ = 0;
  int count_ = 0;  // bits in held_
  int left_ = 0;   // bytes in this block
};

// Welch, "A technique for high-performance data compression" (1984), with GIF's clear codes.
class LzwDecoder {
 public:
  explicit LzwDecoder(int first_bits) : clear_(1 << first_bits), bits_(first_bits + 1) {
    next_ = clear_ + 2;
    for (int i = 0; i < clear_; ++i) last_[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
  }

  // Fills `indices`. Gives how many it could before the data ended or broke.
  size_t decode(CodeReader& codes, std::span<uint8_t> indices) {
    size_t done = 0;
    while (done < indices.size()) {
      const int code = codes.code(bits_);
      if (code < 0 || code == clear_ + 1) break;
      if (code == clear_) {
        bits_ = first_bits() + 1;
        next_ = clear_ + 2;
        previous_ = -1;
        continue;
      }
      if (code > next_ || (code == next_ && previous_ < 0)) break;
      done += emit(code, indices.subspan(done));
    }
    return done;
  }

 private:
  static constexpr int kCodes = 1 << kLongestCode;

  int first_bits() const {
    int bits = 0;
    while (1 << bits < clear_) ++bits;
    return bits;
  }

  // Writes the string of a code, backwards from its end, and learns the string that follows from
  // it. That is the previous one and this one's first index.
  size_t emit(int code, std::span<uint8_t> out) {
    size_t size = 0;
    int at = code;
    if (code == next_) {  // the string being learnt: the previous one and its own first index
      stack_[size++] = first_;
      at = previous_;
    }
    for (; at >= clear_; at = parent_[static_cast<size_t>(at)]) {
      stack_[size++] = last_[static_cast<size_t>(at)];
    }
    first_ = last_[static_cast<size_t>(at)];
    stack_[size++] = first_;
    learn();
    previous_ = code;
    const size_t written = std::min(size, out.size());
    for (size_t i = 0; i < written; ++i) out[i] = stack_[size - 1 - i];
    return written;
  }

  void learn() {
    if (previous_ < 0 || next_ >= kCodes) return;
    parent_[static_cast<size_t>(next_)] = static_cast<int16_t>(previous_);
    last_[static_cast<size_t>(next_)] = first_;
    ++next_;
    if (next_ == 1 << bits_ && bits_ < kLongestCode) ++bits_;
  }

  const int clear_;
  int bits_;
  int next_ = 0;       // the code to be learnt
  int previous_ = -1;  // none after a clear code
  uint8_t first_ = 0;  // first index of the previous string
  std::array<int16_t, kCodes> parent_ = {};
  std::array<uint8_t, kCodes> last_ = {};
  // A string has a parent for each index but the first, and parents have smaller codes.
  std::array<uint8_t, kCodes + 1> stack_ = {};
};

void read_palette(ByteReader& reader, int flags, Palette& palette) {
  const size_t bytes = size_t{3} << ((flags & 7) + 1);
  palette = {};
  for (size_t i = 0; i < bytes; ++i) palette[i] = reader.byte();
}

// Skips to the first image, picking up the transparent index on the way; false if there is none.
bool find_image(ByteReader& reader, int& transparent) {
  while (!reader.past_end()) {
    const uint8_t kind = reader.byte();
    if (kind == kImage) return true;
    if (kind != kExtension) return false;
    const uint8_t label = reader.byte();
    for (size_t size = reader.byte(); size != 0; size = reader.byte()) {
      if (label == kGraphicControl && size == 4) {
        const int flags = reader.byte();
        reader.skip(2);
        const int index = reader.byte();
        transparent = (flags & 1) != 0 ? index : -1;
      } else {
        reader.skip(size);
      }
    }
  }
  return false;
}

// Where the rows of an interlaced frame go: every 8th, the ones between, and so on.
std::vector<int> row_order(int rows, bool interlaced) {
  std::vector<int> order;
  constexpr std::array<std::array<int, 2>, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  for (const auto& [start, step] : kPasses) {
    for (int y = start; interlaced && y < rows; y += step) order.push_back(y);
  }
  for (int y = 0; !interlaced && y < rows; ++y) order.push_back(y);
  return order;
}

struct Frame {
  int left = 0, top = 0, width = 0, height = 0;  // pixels
  bool interlaced = false;
};

void paint(const Frame& frame, std::span<const uint8_t> indices, const Palette& palette,
           RgbPicture& picture) {
  const uint8_t* index = indices.data();
  for (const int y : row_order(frame.height, frame.interlaced)) {
    const auto row = static_cast<size_t>(frame.top + y) * static_cast<size_t>(picture.width);
    uint8_t* out = picture.pixels.data() + (row + static_cast<size_t>(frame.left)) * 3;
    for (int x = 0; x < frame.width; ++x, out += 3) std::memcpy(out, &palette[*index++ * 3u], 3);
  }
}

}  // namespace

Result<RgbPicture> decode_gif(std::span<const std::byte> bytes, const std::string& name,
                              int64_t most_pixels) {
  const auto broken = [&](const std::string& why) {
    return invalid_file(
        message({"Picture ", name, " is a damaged GIF file: ", why, "; give one that is whole."}));
  };
  ByteReader reader(bytes);
  reader.skip(6);
  const int screen_w = reader.word(), screen_h = reader.word();
  const int flags = reader.byte();
  reader.skip(2);
  Palette palette = {};
  // Without a palette, indices are shades of gray.
  for (size_t i = 0; i < palette.size(); ++i) palette[i] = static_cast<uint8_t>(i / 3);
  if ((flags & 0x80) != 0) read_palette(reader, flags, palette);
  int transparent = -1;
  if (!find_image(reader, transparent)) return broken("it holds no frame");
  Frame frame;
  frame.left = reader.word();
  frame.top = reader.word();
  frame.width = reader.word();
  frame.height = reader.word();
  const int frame_flags = reader.byte();
  frame.interlaced = (frame_flags & 0x40) != 0;
  if ((frame_flags & 0x80) != 0) read_palette(reader, frame_flags, palette);
  const int first_bits = reader.byte();
  if (reader.past_end()) return broken("it ends before its first pixel");
  if (first_bits < 1 || first_bits > 8) {
    return broken("its codes start at " + std::to_string(first_bits) + " bits, not 1 to 8");
  }
  RgbPicture picture;
  picture.width = std::max(screen_w, frame.left + frame.width);
  picture.height = std::max(screen_h, frame.top + frame.height);
  VKF_CHECK(check_picture_size(picture.width, picture.height, name, most_pixels));
  VKF_CHECK(check_picture_size(frame.width, frame.height, name, most_pixels));
  std::vector<uint8_t> indices(static_cast<size_t>(frame.width) *
                               static_cast<size_t>(frame.height));
  CodeReader codes(reader);
  const size_t done = LzwDecoder(first_bits).decode(codes, indices);
  if (done < indices.size() || reader.past_end()) {
    return broken("only " + std::to_string(done) + " of the " + std::to_string(indices.size()) +
                  " pixels of its first frame can be decoded");
  }
  const size_t background = transparent < 0 ? 0 : static_cast<size_t>(transparent);
  picture.pixels.resize(static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height) *
                        3);
  for (size_t i = 0; i < picture.pixels.size(); i += 3) {
    std::memcpy(&picture.pixels[i], &palette[background * 3], 3);
  }
  paint(frame, indices, palette, picture);
  return picture;
}

}  // namespace vkformer
