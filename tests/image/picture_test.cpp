// Picture files against what Pillow reads from them, and files that are refused.
#include "vkformer/picture.h"

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/temp_dir.h"
#include "image/picture_samples.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Pixels = std::vector<uint8_t>;

Pixels pixels_of(const Result<Picture>& picture) {
  REQUIRE_MESSAGE(picture.ok(), (picture ? "" : picture.error().message));
  return {picture->rgb().begin(), picture->rgb().end()};
}

Pixels decoded(std::string_view file) {
  return pixels_of(Picture::decode(file_bytes(file), "sample"));
}

void refuse_picture(std::string_view file, ErrorCode code, const std::string& part) {
  const auto picture = Picture::decode(file_bytes(file), "sample");
  REQUIRE(!picture.ok());
  CAPTURE(picture.error().message);
  CHECK(picture.error().code == code);
  CHECK(contains(picture.error().message, "[sample]"));
  CHECK(contains(picture.error().message, part));
  CHECK(picture.error().message.ends_with("."));
}

std::string text_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("picture: files are decoded to the pixels of the reference") {
    const TensorMap golden = golden_pictures();
    int files = 0;
    for (const auto& [bound_name, tensor] : golden) {
      const auto& name = bound_name;
      if (!name.starts_with("file.")) continue;
      CAPTURE(name);
      ++files;
      const RgbPicture expected = to_picture(golden.at("pixels." + name.substr(5)));
      const auto picture = Picture::decode(tensor.bytes, name);
      const Pixels actual = pixels_of(picture);
      REQUIRE(picture->width() == expected.width);
      REQUIRE(picture->height() == expected.height);
      int worst = 0;
      for (size_t i = 0; i < actual.size(); ++i) {
        worst = std::max(worst, std::abs(actual[i] - expected.pixels[i]));
      }
      // JPEG leaves the rounding of its transform and of YCbCr to the decoder.
      CHECK(worst <= (name.ends_with(".jpg") ? 3 : 0));
    }
    CHECK(files == 17);
  }

  TEST_CASE("picture: a file gives the same as its bytes") {
    const TensorMap golden = golden_pictures();
    const TempDir dir;
    const std::string path = dir.write("a.png", text_of(golden.at("file.rgb.png")));
    CHECK(pixels_of(Picture::load(path)) ==
          pixels_of(Picture::decode(golden.at("file.rgb.png").bytes, "a")));
    const auto missing = Picture::load(dir.file("none.png"));
    REQUIRE(!missing.ok());
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(contains(missing.error().message, dir.file("none.png")));
    const auto folder = Picture::load(dir.path());
    CHECK(!folder.ok());
  }

  TEST_CASE("picture: every kind of PNM") {
    CHECK(decoded("P1 # a comment\n3 2\n10 1\n0 1 0") ==
          Pixels{0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 255, 255});
    CHECK(decoded("P4\n3 1\n\xa0") == Pixels{0, 0, 0, 255, 255, 255, 0, 0, 0});
    CHECK(decoded("P2\n2 1\n3\n1 # one\n3") == Pixels{85, 85, 85, 255, 255, 255});
    CHECK(decoded("P3 1 1 15 1 2 15") == Pixels{17, 34, 255});
    CHECK(decoded(std::string("P5\n4 1\n100\n\x00\x01\x32\x65", 15)) ==
          Pixels{0, 0, 0, 3, 3, 3, 128, 128, 128, 255, 255, 255});
    CHECK(decoded("P6 1 1 255\nabc") == Pixels{'a', 'b', 'c'});
    CHECK(decoded(std::string("P6 1 1 65535\n\x01\x01\x80\x00\xff\xff", 19)) ==
          Pixels{1, 128, 255});
    CHECK(decoded(std::string("P5 2 1 1000\n\x01\xf4\x03\xe8", 16)) ==
          Pixels{128, 128, 128, 255, 255, 255});
  }

  TEST_CASE("picture: damaged PNM files") {
    refuse_picture("P5", ErrorCode::kInvalidFile, "header");
    refuse_picture("P5 2 2 0\nabcd", ErrorCode::kInvalidFile, "65535");
    refuse_picture("P5 2 2 70000\nabcdabcd", ErrorCode::kInvalidFile, "65535");
    refuse_picture("P5 0 2 255\n", ErrorCode::kInvalidArgument, "0 x 2");
    refuse_picture("P5 2 2 255\nabc", ErrorCode::kInvalidFile, "only 3");
    refuse_picture("P5 99999999999 1 255\nabc", ErrorCode::kInvalidFile, "header");
    refuse_picture("P2 2 1 9\n1 10", ErrorCode::kInvalidFile, "row 0");
    refuse_picture("P2 2 1 9\n1 x", ErrorCode::kInvalidFile, "row 0");
    refuse_picture("P2 2 1 9\n111", ErrorCode::kInvalidFile, "row 0");
    refuse_picture("P1 2 1 12", ErrorCode::kInvalidFile, "row 0");
  }

  TEST_CASE("picture: a size over the limit is refused before a pixel is read") {
    refuse_picture("P5 16385 1 255\n", ErrorCode::kInvalidArgument, "16385 x 1");
    refuse_picture("P5 16384 16384 255\n", ErrorCode::kInvalidArgument, "67108864");
    refuse_picture(
        std::string("GIF87a\xff\xff\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02"
                    "\x02\x44\x01\x00;",
                    29),
        ErrorCode::kInvalidArgument, "65535 x 1");
    std::string bmp = text_of(golden_pictures().at("file.rgb.bmp"));
    bmp.replace(18, 4, std::string("\x01\x40\x00\x00", 4));
    refuse_picture(bmp, ErrorCode::kInvalidArgument, "16385");
    bmp.replace(18, 4, std::string("\x00\x00\x00\x01", 4));
    refuse_picture(bmp, ErrorCode::kInvalidArgument, "16384");
  }

  TEST_CASE("picture: a caller's limit of pixels holds for every kind of file") {
    for (const auto& [bound_name, tensor] : golden_pictures()) {
      const auto& name = bound_name;
      if (!name.starts_with("file.")) continue;
      CAPTURE(name);
      const auto whole = Picture::decode(tensor.bytes, name);
      REQUIRE(whole.ok());
      const int64_t pixels = int64_t{whole->width()} * whole->height();
      CHECK(Picture::decode(tensor.bytes, name, pixels).ok());
      const auto refused = Picture::decode(tensor.bytes, name, pixels - 1);
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == ErrorCode::kInvalidArgument);
      CHECK(contains(refused.error().message, std::to_string(pixels - 1) + " in all"));
    }
  }

  TEST_CASE("picture: other content is named") {
    refuse_picture("", ErrorCode::kInvalidFile, "empty");
    refuse_picture("hello", ErrorCode::kUnsupported, "not known");
    refuse_picture("P7\nWIDTH 1", ErrorCode::kUnsupported, "PNM");
    refuse_picture(std::string("RIFF\0\0\0\0WEBPVP8 ", 16), ErrorCode::kUnsupported, "WebP");
    refuse_picture(std::string("II*\0\0\0\0\0", 8), ErrorCode::kUnsupported, "TIFF");
    refuse_picture("BM", ErrorCode::kInvalidFile, "BMP");
    refuse_picture(std::string("BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\0\x10\0\0\0\x10\0", 26),
                   ErrorCode::kInvalidFile, "in its header, after 26 bytes");
    refuse_picture("\xff\xd8\xff", ErrorCode::kInvalidFile, "JPEG");
    refuse_picture("\x89PNG\r\n\x1a\n", ErrorCode::kInvalidFile, "PNG");
    refuse_picture("GIF89a", ErrorCode::kInvalidFile, "GIF");
  }

  TEST_CASE("picture: a file cut short anywhere is an error, never half a picture") {
    for (const auto& [bound_name, tensor] : golden_pictures()) {
      const auto& name = bound_name;
      if (!name.starts_with("file.") || name.ends_with(".gif")) continue;
      CAPTURE(name);
      // A bitmap of 13 columns ends with a byte of padding, which nobody misses.
      const std::string whole =
          text_of(tensor).substr(0, tensor.bytes.size() - name.ends_with("bmp"));
      for (size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        const auto picture = Picture::decode(file_bytes(whole.substr(0, size)), "cut");
        REQUIRE(!picture.ok());
        REQUIRE(contains(picture.error().message, "[cut]"));
      }
    }
  }

  TEST_CASE("picture: a PNG whose checksum is wrong is an error") {
    std::string png = text_of(golden_pictures().at("file.rgb.png"));
    const size_t data = png.find("IDAT");
    REQUIRE(data != std::string::npos);
    png[data + 9] ^= 1;
    refuse_picture(png, ErrorCode::kInvalidFile, "[IDAT]");
    png.replace(data, 4, "IDOT");
    refuse_picture(png, ErrorCode::kInvalidFile, "[IDOT]");
  }

  TEST_CASE("picture: a JPEG whose tables or scans no decoder should see is an error") {
    const std::string whole = text_of(golden_pictures().at("file.444.jpg"));
    const size_t table = whole.find("\xff\xc4");
    REQUIRE(table != std::string::npos);
    // The counts of codes by length follow marker, length and table number.
    for (const size_t bits : {0, 7, 15}) {
      std::string jpeg = whole;
      jpeg[table + 5 + bits] = '\xff';
      refuse_picture(jpeg, ErrorCode::kInvalidFile, "Huffman");
    }
    std::string lossless = whole;
    lossless[whole.find("\xff\xc0") + 1] = '\xc3';
    refuse_picture(lossless, ErrorCode::kUnsupported, "of kind 3");
    const size_t scan = whole.find("\xff\xda");
    std::string many = whole.substr(0, scan);
    for (int i = 0; i < 300; ++i) many += whole.substr(scan, whole.size() - scan - 2);
    refuse_picture(many + "\xff\xd9", ErrorCode::kInvalidFile, "256 scans");
    std::string large = whole;  // height and width follow marker, length and precision
    large.replace(whole.find("\xff\xc0") + 5, 4, "\x1f\xff\x1f\xff");
    refuse_picture(large, ErrorCode::kInvalidFile, "too few for that number");
    std::string slow = large.substr(0, scan);
    for (int i = 0; i < 17; ++i) {
      slow += whole.substr(scan, whole.size() - scan - 2) + std::string(4096, '\1');
    }
    refuse_picture(slow + "\xff\xd9", ErrorCode::kInvalidFile, "17 scans");
  }

  TEST_CASE("picture: thumbnails and comments of a JPEG change nothing") {
    const std::string whole = text_of(golden_pictures().at("file.444.jpg"));
    const std::string segments("\xff\xe1\x00\x06\xff\xc4\xff\xd9\xff\xff\xfe\x00\x04hi", 15);
    CHECK(decoded(whole.substr(0, 2) + segments + whole.substr(2)) == decoded(whole));
  }

  TEST_CASE("picture: GIF frames beside, inside and beyond the screen") {
    // Codes of 3 bits: clear, 1, 2, end.
    const std::string codes("\x8c\x0a", 2);
    const std::string word_1("\x01\0", 2), word_2("\x02\0", 2), word_0("\0\0", 2);
    const Pixels first = {10, 20, 30}, red = {200, 0, 0}, green = {0, 200, 0};
    const auto join = [](const std::vector<Pixels>& parts) {
      Pixels all;
      for (const Pixels& part : parts) all.insert(all.end(), part.begin(), part.end());
      return all;
    };
    const std::string plain("\0", 1);
    CHECK(decoded(gif_file(word_2 + word_1, word_0 + word_0 + word_2 + word_1, plain, codes)) ==
          join({red, green}));
    CHECK(decoded(gif_file(word_2 + word_2, word_0 + word_1 + word_2 + word_1, plain, codes)) ==
          join({first, first, red, green}));
    CHECK(decoded(gif_file(word_1 + word_1, word_1 + word_0 + word_2 + word_1, plain, codes)) ==
          join({first, red, green}));
    refuse_picture(gif_file(word_2 + word_1, word_0 + word_0 + word_2 + word_2, plain, codes),
                   ErrorCode::kInvalidFile, "2 of the 4");
    refuse_picture(gif_file(word_2 + word_1, word_0 + word_0 + word_0 + word_1, plain, codes),
                   ErrorCode::kInvalidArgument, "0 x 1");
  }

  TEST_CASE("picture: raw frames in every order, with and without a stride") {
    const std::array<uint8_t, 13> bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    const auto frame = [&](size_t count, int width, int height, int64_t stride,
                           PixelFormat format) {
      return Picture::from_pixels({std::span(bytes).first(count), width, height, stride, format});
    };
    CHECK(pixels_of(frame(6, 2, 1, 0, PixelFormat::kRgb8)) == Pixels{1, 2, 3, 4, 5, 6});
    CHECK(pixels_of(frame(6, 2, 1, 0, PixelFormat::kBgr8)) == Pixels{3, 2, 1, 6, 5, 4});
    CHECK(pixels_of(frame(8, 2, 1, 0, PixelFormat::kRgba8)) == Pixels{1, 2, 3, 5, 6, 7});
    CHECK(pixels_of(frame(8, 1, 2, 0, PixelFormat::kBgra8)) == Pixels{3, 2, 1, 7, 6, 5});
    CHECK(pixels_of(frame(2, 1, 2, 0, PixelFormat::kGray8)) == Pixels{1, 1, 1, 2, 2, 2});
    CHECK(pixels_of(frame(12, 1, 2, 8, PixelFormat::kBgra8)) == Pixels{3, 2, 1, 11, 10, 9});
    CHECK(!frame(11, 1, 2, 8, PixelFormat::kBgra8).ok());
    CHECK(!frame(12, 1, 2, 3, PixelFormat::kBgra8).ok());
    CHECK(!frame(12, 1, 2, -8, PixelFormat::kBgra8).ok());
    CHECK(!frame(12, 1, 2, int64_t{1} << 62, PixelFormat::kBgra8).ok());
    CHECK(!frame(12, 0, 2, 0, PixelFormat::kBgra8).ok());
    CHECK(!frame(12, -1, -1, 0, PixelFormat::kRgb8).ok());
    CHECK(!frame(12, 1, 1, 0, static_cast<PixelFormat>(9)).ok());
    CHECK(pixels_of(Picture::from_rgb(1, 2, std::span(bytes).first(6))) ==
          Pixels{1, 2, 3, 4, 5, 6});
    const auto few = Picture::from_rgb(2, 2, std::span(bytes).first(11));
    REQUIRE(!few.ok());
    CHECK(contains(few.error().message, "11 bytes"));
  }

  TEST_CASE("picture: one that was moved away is empty") {
    const std::array<uint8_t, 3> bytes = {1, 2, 3};
    auto picture = Picture::from_rgb(1, 1, bytes);
    REQUIRE(picture.ok());
    const Picture other = std::move(*picture);
    CHECK(other.width() == 1);
    CHECK(picture->width() == 0);
    CHECK(picture->rgb().empty());
  }
}
