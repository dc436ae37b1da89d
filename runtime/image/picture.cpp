#include "image/picture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/mapped_file.h"
#include "checkpoint/message_text.h"
#include "image/gif.h"
#include "image/jpeg_segments.h"
#include "image/picture_processor.h"
#include "image/pnm.h"
#include "image/stb_decoder.h"

namespace vkformer {
namespace {

using std::to_string;

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";

enum class Format : uint8_t { kPng, kJpeg, kBmp, kGif, kPnm };

struct Signature {
  std::string_view bytes;
  Format format;
};
constexpr std::array kSignatures = {
    Signature{kPngSignature, Format::kPng}, Signature{"\xff\xd8\xff", Format::kJpeg},
    Signature{"GIF87a", Format::kGif},      Signature{"GIF89a", Format::kGif},
    Signature{"P1", Format::kPnm},          Signature{"P2", Format::kPnm},
    Signature{"P3", Format::kPnm},          Signature{"P4", Format::kPnm},
    Signature{"P5", Format::kPnm},          Signature{"P6", Format::kPnm},
    Signature{"BM", Format::kBmp},
};

// Formats that people try, to be named when refused: where the signature is, and the name.
struct Foreign {
  size_t at;
  std::string_view bytes;
  const char* name;
};
constexpr std::array kForeign = {
    Foreign{8, "WEBP", "WebP"},       Foreign{4, "ftypavif", "AVIF"},
    Foreign{4, "ftypheic", "HEIC"},   Foreign{0, {"II*\0", 4}, "TIFF"},
    Foreign{0, {"MM\0*", 4}, "TIFF"}, Foreign{0, "%PDF", "PDF"},
    Foreign{0, "<svg", "SVG"},        Foreign{0, "8BPS", "Photoshop"},
};

Result<Format> format_of(std::string_view file, const std::string& name) {
  for (const Signature& signature : kSignatures) {
    if (file.starts_with(signature.bytes)) return signature.format;
  }
  const char* found = "in a format that is not known here";
  for (const Foreign& foreign : kForeign) {
    if (file.substr(std::min(foreign.at, file.size())).starts_with(foreign.bytes)) {
      found = foreign.name;
    }
  }
  return unsupported(
      message({"Picture ", name, " is ", found,
               "; only PNG, JPEG, BMP, GIF and PNM can be read, so convert it to one of them."}));
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

// CRC-32 of ISO 3309, as in annex D of the PNG specification.
uint32_t crc32(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table = {};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0xEDB88320u ^ c >> 1 : c >> 1;
      table[i] = c;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 255] ^ crc >> 8;
  return ~crc;
}

// stb looks at no checksum. Chunks that a picture can do without (lower case) are not checked.
// Unknown ones that it cannot do without end here: stb would write their name into shared memory.
Status check_png_chunks(std::string_view file, const std::string& name) {
  const auto broken = [&](const std::string& why) {
    return invalid_file(
        message({"Picture ", name, " is a damaged PNG file: ", why, "; give one that is whole."}));
  };
  constexpr std::array<std::string_view, 4> kKnown = {"IHDR", "PLTE", "IDAT", "IEND"};
  size_t at = kPngSignature.size();
  while (file.size() - at >= 12) {
    const uint32_t size = big_endian(file.substr(at));
    const std::string_view type = file.substr(at + 4, 4);
    if (size > file.size() - at - 12) {
      return broken("the chunk " + bracketed(type) + " of " + to_string(size) +
                    " bytes reaches beyond the end of the file");
    }
    const std::string_view covered = file.substr(at + 4, size_t{4} + size);
    const bool critical = (static_cast<uint8_t>(type[0]) & 0x20u) == 0;
    if (critical && std::find(kKnown.begin(), kKnown.end(), type) == kKnown.end()) {
      return broken("its chunk " + bracketed(type) + " is not one of the format");
    }
    if (critical && crc32(covered) != big_endian(file.substr(at + 8 + size))) {
      return broken("the checksum of its chunk " + bracketed(type) + " is wrong");
    }
    if (type == "IEND") return {};
    at += size_t{12} + size;
  }
  return broken("it ends before its last chunk");
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

// stb makes pixels of what follows the end, byte by byte: a header alone may claim 200 MB.
// Fields of BITMAPCOREHEADER (12 bytes) and BITMAPINFOHEADER; run lengths (1, 2) may be shorter.
Status check_bmp_length(std::string_view file, const std::string& name) {
  constexpr size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
  const bool core =
      little_endian(file.substr(std::min(kFileHeader, file.size()), 4)) == kCoreHeader;
  if (file.size() < kFileHeader + (core ? kCoreHeader : kInfoHeader)) {
    return invalid_file(
        message({"Picture ", name, " is a damaged BMP file: it ends in its header, after ",
                 file.size(), " bytes; give one that is whole."}));
  }
  const uint64_t width = little_endian(file.substr(18, core ? 2 : 4));
  const uint64_t signed_height = little_endian(core ? file.substr(20, 2) : file.substr(22, 4));
  const uint64_t height = std::min(signed_height, (uint64_t{1} << 32) - signed_height);
  const uint64_t bits = little_endian(file.substr(core ? 24 : 28, 2));
  const uint64_t packing = core ? 0 : little_endian(file.substr(30, 4));
  if (packing == 1 || packing == 2 || height == 0 || width > kMaxPictureSide ||
      height > kMaxPictureSide)
    return {};
  // The last row may lack what fills it up to a whole word.
  const uint64_t needed = (width * bits + 31) / 32 * 4 * (height - 1) + (width * bits + 7) / 8;
  if (needed <= file.size()) return {};
  return invalid_file(message({"Picture ", name, " is a damaged BMP file: its pixels take ", needed,
                               " bytes, but it has ", file.size(), "; give one that is whole."}));
}

// Places of red, green and blue in a pixel, and its bytes.
struct PixelLayout {
  std::array<uint8_t, 3> places;
  int bytes;
};

PixelLayout layout_of(PixelFormat format) {
  switch (format) {
    case PixelFormat::kRgb8:
      return {{0, 1, 2}, 3};
    case PixelFormat::kBgr8:
      return {{2, 1, 0}, 3};
    case PixelFormat::kBgra8:
      return {{2, 1, 0}, 4};
    case PixelFormat::kGray8:
      return {{0, 0, 0}, 1};
    default:
      return {{0, 1, 2}, 4};
  }
}

}  // namespace

Result<RgbPicture> decode_picture(std::span<const std::byte> bytes, const std::string& name,
                                  int64_t most_pixels) {
  const std::string what = bracketed(name);
  if (bytes.empty())
    return invalid_file(message({"Picture ", what, " is empty; give a whole file."}));
  if (bytes.size() > kMaxPictureFile) {
    return invalid_argument(
        message({"Picture ", what, " has ", bytes.size(), " bytes, over the limit of ",
                 kMaxPictureFile, "; make it smaller."}));
  }
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  VKF_ASSIGN(const Format format, format_of(file, what));
  switch (format) {
    case Format::kGif:
      return decode_gif(bytes, what, most_pixels);
    case Format::kPnm:
      return decode_pnm(bytes, what, most_pixels);
    case Format::kJpeg: {
      VKF_ASSIGN(const std::vector<std::byte> jpeg, checked_jpeg(bytes, what));
      return decode_with_stb(jpeg, "JPEG", what, most_pixels);
    }
    case Format::kBmp:
      VKF_CHECK(check_bmp_length(file, what));
      return decode_with_stb(bytes, "BMP", what, most_pixels);
    default:
      VKF_CHECK(check_png_chunks(file, what));
      return decode_with_stb(bytes, "PNG", what, most_pixels);
  }
}

Result<RgbPicture> load_picture(const std::string& path) {
  VKF_ASSIGN(const MappedFile file, MappedFile::open(path));
  return decode_picture(file.bytes(), path);
}

Result<RgbPicture> copy_frame(const PixelView& frame) {
  VKF_CHECK(check_picture_size(frame.width, frame.height, "[frame]"));
  if (frame.format > PixelFormat::kGray8) {
    return invalid_argument(
        message({"The [frame] has pixel format ", static_cast<int>(frame.format),
                 ", which does not exist; give one of PixelFormat."}));
  }
  const PixelLayout layout = layout_of(frame.format);
  const int64_t row_bytes = int64_t{frame.width} * layout.bytes;
  const int64_t stride = frame.stride == 0 ? row_bytes : frame.stride;
  constexpr int64_t kMaxStride = int64_t{1} << 30;
  if (stride < row_bytes || stride > kMaxStride) {
    return invalid_argument(message(
        {"The [frame] has a stride of ", stride, " bytes, but a row takes ", row_bytes,
         " and a stride is at most ", kMaxStride, "; give the bytes from one row to the next."}));
  }
  const auto needed = static_cast<uint64_t>(stride * (frame.height - 1) + row_bytes);
  if (frame.bytes.size() < needed) {
    return invalid_argument(
        message({"The [frame] holds ", frame.bytes.size(), " bytes, but ", frame.height,
                 " rows of ", frame.width, " pixels take ", needed,
                 "; make width, height, stride and format agree with the bytes."}));
  }
  RgbPicture picture;
  picture.width = frame.width;
  picture.height = frame.height;
  picture.pixels.resize(static_cast<size_t>(frame.width) * static_cast<size_t>(frame.height) * 3);
  uint8_t* out = picture.pixels.data();
  for (int y = 0; y < frame.height; ++y) {
    const uint8_t* in = frame.bytes.data() + stride * y;
    for (int x = 0; x < frame.width; ++x, in += layout.bytes) {
      for (const uint8_t place : layout.places) *out++ = in[place];
    }
  }
  return picture;
}

}  // namespace vkformer
