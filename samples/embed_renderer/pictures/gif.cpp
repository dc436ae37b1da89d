#include "pictures/gif.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "pictures/palette.h"

namespace sample {

namespace {

constexpr int kDither = 3;      // the most that is added to a channel
constexpr uint8_t kSame = 255;  // index of the color that leaves a pixel as it is
constexpr int kUnseen = 5;      // a smaller change of a channel is not written

Rgb pixel_at(const std::vector<uint8_t>& rgb, size_t pixel) {
  return {rgb[3 * pixel], rgb[3 * pixel + 1], rgb[3 * pixel + 2]};
}

// Ordered dithering (Bayer 1973): the threshold of a place is always the same, so what does not
// change keeps its pixels.
Rgb dithered(const Rgb& color, int x, int y) {
  constexpr int kBayer[4][4] = {{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};
  const int off = (2 * kBayer[y & 3][x & 3] - 15) * kDither / 15;
  Rgb moved{};
  for (size_t c = 0; c < 3; ++c) {
    moved[c] = static_cast<uint8_t>(std::clamp(color[c] + off, 0, 255));
  }
  return moved;
}

// A file's bytes; numbers are little-endian.
class Bytes {
 public:
  void byte(size_t value) { data_.push_back(static_cast<char>(value & 255)); }
  void word(size_t value) {
    byte(value);
    byte(value >> 8);
  }
  void text(const char* letters) { data_.append(letters); }
  void block(const std::vector<uint8_t>& bytes) {
    // Sub-blocks of at most 255 bytes, and an empty one.
    for (size_t at = 0; at < bytes.size(); at += 255) {
      const size_t count = std::min<size_t>(255, bytes.size() - at);
      byte(count);
      for (size_t i = 0; i < count; ++i) byte(bytes[at + i]);
    }
    byte(0);
  }
  const std::string& data() const { return data_; }

 private:
  std::string data_;
};

// GIF's variant of LZW (Welch 1984): codes grow from 9 to 12 bits, then the table starts anew.
class Lzw {
 public:
  std::vector<uint8_t> pack(const std::vector<uint8_t>& indices) {
    start_table();
    int prefix = indices.front();
    for (size_t i = 1; i < indices.size(); ++i) {
      int16_t& next = table_[static_cast<size_t>(prefix) * 256 + indices[i]];
      if (next >= 0) {
        prefix = next;
        continue;
      }
      put(prefix);
      next = static_cast<int16_t>(codes_);
      if (codes_ == 1 << bits_) ++bits_;
      ++codes_;
      if (codes_ == 4096) start_table();
      prefix = indices[i];
    }
    put(prefix);
    put(kEnd);
    if (held_ > 0) out_.push_back(static_cast<uint8_t>(hold_));
    return std::move(out_);
  }

 private:
  static constexpr int kClear = 256, kEnd = 257;

  void start_table() {
    if (bits_ > 0) {
      put(kClear);
    } else {
      bits_ = 9;
      put(kClear);
    }
    table_.assign(4096 * 256, int16_t{-1});
    codes_ = kEnd + 1;
    bits_ = 9;
  }
  void put(int code) {
    hold_ |= static_cast<uint32_t>(code) << held_;
    for (held_ += bits_; held_ >= 8; held_ -= 8) {
      out_.push_back(static_cast<uint8_t>(hold_));
      hold_ >>= 8;
    }
  }

  std::vector<int16_t> table_;
  std::vector<uint8_t> out_;
  int codes_ = 0, bits_ = 0, held_ = 0;
  uint32_t hold_ = 0;
};

// The part of a frame that is written: the smallest rectangle around what changed.
struct Part {
  int left = 0, top = 0, width = 1, height = 1;
  std::vector<uint8_t> indices;
};

// Finds it, and brings `shown` up to date with what will be seen.
Part changed_part(const std::vector<uint8_t>& rgb, std::vector<uint8_t>& shown, int width,
                  int height) {
  int left = width, top = height, right = -1, bottom = -1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const size_t at = 3 * static_cast<size_t>(y * width + x);
      const bool changed = std::abs(rgb[at] - shown[at]) > kUnseen ||
                           std::abs(rgb[at + 1] - shown[at + 1]) > kUnseen ||
                           std::abs(rgb[at + 2] - shown[at + 2]) > kUnseen;
      if (!changed) continue;
      left = std::min(left, x), right = std::max(right, x);
      top = std::min(top, y), bottom = std::max(bottom, y);
    }
  }
  if (right < 0) return {0, 0, 1, 1, {}};
  return {left, top, right - left + 1, bottom - top + 1, {}};
}

void index_part(Part& part, const std::vector<uint8_t>& rgb, std::vector<uint8_t>& shown, int width,
                const Palette& palette) {
  for (int y = part.top; y < part.top + part.height; ++y) {
    for (int x = part.left; x < part.left + part.width; ++x) {
      const auto pixel = static_cast<size_t>(y * width + x);
      const Rgb now = pixel_at(rgb, pixel), before = pixel_at(shown, pixel);
      int change = 0;
      for (size_t c = 0; c < 3; ++c) change = std::max(change, std::abs(now[c] - before[c]));
      if (change <= kUnseen) {
        part.indices.push_back(kSame);
        continue;
      }
      part.indices.push_back(palette.nearest(dithered(now, x, y)));
      for (size_t c = 0; c < 3; ++c) shown[3 * pixel + c] = now[c];
    }
  }
}

void put_header(Bytes& file, int width, int height, const Palette& palette) {
  file.text("GIF89a");
  file.word(static_cast<size_t>(width));
  file.word(static_cast<size_t>(height));
  file.byte(0xF7);  // a palette of 256 colors
  file.byte(0);
  file.byte(0);
  for (size_t i = 0; i < 256; ++i) {
    const Rgb color = i < palette.colors().size() ? palette.colors()[i] : Rgb{0, 0, 0};
    for (const uint8_t channel : color) file.byte(channel);
  }
  // Repeats for ever.
  file.byte(0x21);
  file.byte(0xFF);
  file.byte(11);
  file.text("NETSCAPE2.0");
  file.byte(3);
  file.byte(1);
  file.word(0);
  file.byte(0);
}

void put_frame(Bytes& file, const Part& part, int hundredths) {
  file.byte(0x21);
  file.byte(0xF9);
  file.byte(4);
  file.byte(0x05);  // the next frame is drawn over this one; kSame is transparent
  file.word(static_cast<size_t>(hundredths));
  file.byte(kSame);
  file.byte(0);
  file.byte(0x2C);
  for (const int value : {part.left, part.top, part.width, part.height}) {
    file.word(static_cast<size_t>(value));
  }
  file.byte(0);
  file.byte(8);  // bits of an index
  file.block(Lzw().pack(part.indices));
}

}  // namespace

void Gif::add(const PixelRows& pixels, double seconds) {
  width_ = std::min(most_width_, pixels.width);
  height_ = std::max(1, pixels.height * width_ / pixels.width);
  Image image{std::vector<uint8_t>(3 * static_cast<size_t>(width_ * height_)), seconds};
  for (int y = 0; y < height_; ++y) {
    const int y0 = y * pixels.height / height_, y1 = (y + 1) * pixels.height / height_;
    for (int x = 0; x < width_; ++x) {
      const int x0 = x * pixels.width / width_, x1 = (x + 1) * pixels.width / width_;
      std::array<int, 3> sum{};
      for (int v = y0; v < y1; ++v) {
        for (int u = x0; u < x1; ++u) {
          const uint8_t* from = pixels.rgba + 4 * (static_cast<ptrdiff_t>(v) * pixels.width + u);
          for (size_t c = 0; c < 3; ++c) sum[c] += from[c];
        }
      }
      const int count = (y1 - y0) * (x1 - x0);
      for (size_t c = 0; c < 3; ++c) {
        image.rgb[3 * static_cast<size_t>(y * width_ + x) + c] =
            static_cast<uint8_t>((sum[c] + count / 2) / count);
      }
    }
  }
  images_.push_back(std::move(image));
}

vkformer::Status Gif::write(const std::string& path) const {
  if (images_.empty()) {
    return vkformer::Error{vkformer::ErrorCode::kInvalidArgument,
                           "[" + path + "] would have no frame; render at least one."};
  }
  std::vector<Rgb> pixels;
  for (size_t i = 0; i < images_.size(); i += std::max<size_t>(images_.size() / 8, 1)) {
    for (size_t p = i % 3; p < images_[i].rgb.size() / 3; p += 3) {
      pixels.push_back(pixel_at(images_[i].rgb, p));
    }
  }
  const Palette palette(std::move(pixels));
  Bytes file;
  put_header(file, width_, height_, palette);
  // What a viewer sees so far; the first frame differs from it everywhere.
  std::vector<uint8_t> shown = images_.front().rgb;
  Part whole{0, 0, width_, height_, {}};
  for (size_t p = 0; p < shown.size() / 3; ++p) {
    const auto place = static_cast<int>(p);
    whole.indices.push_back(
        palette.nearest(dithered(pixel_at(shown, p), place % width_, place / width_)));
  }
  double time = 0.0;
  int shown_hundredths = 0;
  for (size_t i = 0; i < images_.size(); ++i) {
    time += images_[i].seconds;
    const int hundredths = static_cast<int>(std::lround(100.0 * time)) - shown_hundredths;
    shown_hundredths += hundredths;
    Part part = i == 0 ? std::move(whole) : changed_part(images_[i].rgb, shown, width_, height_);
    if (i > 0) index_part(part, images_[i].rgb, shown, width_, palette);
    put_frame(file, part, hundredths);
  }
  file.byte(0x3B);
  std::ofstream stream(path, std::ios::binary);
  stream.write(file.data().data(), static_cast<std::streamsize>(file.data().size()));
  stream.close();
  if (stream) return {};
  return vkformer::Error{vkformer::ErrorCode::kInvalidArgument,
                         "[" + path + "] could not be written; does its folder exist?"};
}

}  // namespace sample
